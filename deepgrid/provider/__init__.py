"""The steps of a provider: it registers its cluster, claims jobs, carries them to settlement, and cleans up.

`session` is what is open for one cluster. `claims` drives each claimed job, with what is `shared` by all of them.
`zombies` and `cleanup` end what is left behind. `doctor` checks the set-up.
"""
