"""Setting up and checking a cluster: the doctor's checks, guards, hooks and the self-test.

`checkup`, `guards` and `selftest` return findings for `dps provider doctor`, and change nothing that
lasts. `hook_config` plans and `install` applies what `dps provider install-hooks` changes.
"""
