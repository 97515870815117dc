"""The beginnings of the questions of `dps provider init`, in their order."""

from __future__ import annotations

BEFORE_THE_FINGERPRINT = (
    "Name of the cluster", "URL of your Prefect", "File with user:password", "The operator's address book",
    "Key file of the provider", "Login node of the cluster", "Port of its sshd", "Account of the supervisor",
    "Jump host", "SSH private key", "File for the login node's host key",
)  # fmt: skip
FINGERPRINT = "Is this the fingerprint"
OF_THE_CLUSTER = ("Slurm partition", "Folder for the grid", "Folder on the nodes", "Unix accounts of customers")
ONE_ACCOUNT = ("One Unix account",)
OWN_ACCOUNTS = ("How it submits", "Unix account of the supervisor's own")
REST = (
    "Price per CPU", "Price per MB", "Price per GPU", "Labels", "Folder of the supervisor", "Port of health",
    "Run jobs also where guards", "Apply this plan?",
)  # fmt: skip
