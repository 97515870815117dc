"""What the one-machine grid says of its guards in its provider blocks. The only place that decides it."""

from __future__ import annotations

# Guards that need cgroups or mount namespaces, which slurmd does not have here.
ACCEPTED_GAPS = ("proctrack", "task_plugin", "contain", "private_tmp")


def trust_fields(job_account: str | None) -> dict[str, bool | list[str]]:
    """Fields of `blocks.Provider`. Without an account for jobs all share ours: such a grid trusts its customers."""
    return {"trust_customers": job_account is None, "accepted_gaps": list(ACCEPTED_GAPS)}
