"""The way to a login node: one SSH transport, commands on channels, keys, Unix accounts, and calls of our scripts.

`login.Login` runs a command and returns its result, or raises an error of `deepgrid.errors`. It never waits forever.
"""

from deepgrid.slurm.ssh.accounts import Become, CustomerAccounts
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.line_channel import LineChannel
from deepgrid.slurm.ssh.login import Login, LoginSettings, Runner
from deepgrid.slurm.ssh.metered import MeteredLogin
from deepgrid.slurm.ssh.public_key import authorized_key

__all__ = [
    "Become",
    "CommandResult",
    "CustomerAccounts",
    "LineChannel",
    "Login",
    "LoginSettings",
    "MeteredLogin",
    "Runner",
    "authorized_key",
]
