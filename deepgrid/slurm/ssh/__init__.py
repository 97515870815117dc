"""The way to a login node: one SSH transport, commands on channels, Unix accounts, and the scripts that run there."""
