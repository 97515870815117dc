"""Access to a login node: one SSH transport, commands on channels, keys, Unix accounts, and calls of our scripts.

`login.Login` runs a command and returns its result, or raises an error of `deepgrid.errors`. It never waits forever.
"""
