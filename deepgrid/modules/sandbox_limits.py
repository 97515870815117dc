"""Limits on the modules of one workflow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModuleLimits:
    """Bounds on the modules of one workflow; the defaults are those of `docs/reference/modules.md`.

    uses: modules in all, those in modules included.
    depth: how deep modules may use modules.
    within_s: for all modules together.
    fetch_within_s: for each call of git.
    repository_bytes: what git may write for one repository.
    git_memory_bytes: address space of each program of git, 0 for no limit.
    file_bytes: a module file, and the text that its template becomes.
    template_within_s, template_cpu_s, template_memory_bytes: to fill in one Jinja template.
    template_steps: to fill in one template of Go's syntax.
    """

    uses: int = 100
    depth: int = 8
    within_s: float = 120.0
    fetch_within_s: float = 60.0
    repository_bytes: int = 128 * 1024**2
    git_memory_bytes: int = 0
    file_bytes: int = 256 * 1024
    template_within_s: float = 10.0
    template_cpu_s: int = 5
    template_memory_bytes: int = 512 * 1024**2
    template_steps: int = 200_000
