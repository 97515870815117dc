"""Slurm's trackable resources (TRES), as accounting prints them: `billing=1,cpu=4,gres/gpu=1,mem=400M,node=1`."""

from __future__ import annotations

import re

from deepgrid.billing.entries import NOT_ACCOUNTED, Allocation

TRES_OF_GPUS = "gres/gpu="
_MB = {"K": 1 / 1024, "M": 1, "": 1, "G": 1024, "T": 1024**2, "P": 1024**3}


def allocation(given: str, wanted: str, *, counts_gpus: bool) -> Allocation:
    """Return the resources that a job was given, from the texts of AllocTRES and ReqTRES.

    A site counts GPUs only if it lists them in AccountingStorageTRES. Where it does (`counts_gpus`), a job without an
    entry has no GPU. A job that got nothing has no allocation: it never started.
    """
    if not given:
        return NOT_ACCOUNTED
    have = dict(part.split("=", 1) for part in given.split(",") if "=" in part)
    gpus = _count(have.get("gres/gpu"))
    return Allocation(
        cpus=_count(have.get("cpu")),
        nodes=_count(have.get("node")),
        mem_mb=_megabytes(have.get("mem")),
        gpus=0 if gpus is None and counts_gpus else gpus,
        wanted_nodes=_count(dict(part.split("=", 1) for part in wanted.split(",") if "=" in part).get("node")),
    )


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch("[0-9]{1,12}", text) else None


def _megabytes(text: str | None) -> int | None:
    found = re.fullmatch(r"([0-9]{1,12})([KMGTP]?)", text or "")
    return int(int(found[1]) * _MB[found[2]]) if found else None
