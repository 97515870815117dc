"""What a job used of what it asked for. Slurm's accounting measures it. Pure.

A figure that Slurm does not know is None. It travels in the signed receipt, in the text of the job's resources.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass

LEAST_S = 10  # a shorter run says nothing about the CPUs that a job needs
HINT_S = 60
HINT_SHARE = 4  # a hint from a quarter on
MB_PER_GB = 1000
_PREFIX = "used/"
_CPU, _GPU, _MEMORY, _READ, _WRITTEN, _GPU_MEMORY = (
    f"{_PREFIX}{name}" for name in ("cpu", "gpu", "mem", "read", "written", "gpumem")
)


@dataclass(frozen=True, slots=True)
class Measured:
    """What Slurm measured of a run: seconds of CPU, the highest memory, and bytes read and written, in MB.

    Of GPUs it is the highest use, 100 for one whole GPU, and the highest memory in MB.
    """

    cpu_s: int | None = None
    memory_mb: int | None = None
    read_mb: int | None = None
    written_mb: int | None = None
    gpu_percent: int | None = None
    gpu_memory_mb: int | None = None

    @property
    def tres(self) -> str:
        """The known figures, in the form of Slurm's resources: `used/cpu=12,used/mem=85M`."""
        counts = {_CPU: self.cpu_s, _GPU: self.gpu_percent}
        sizes = {
            _MEMORY: self.memory_mb,
            _READ: self.read_mb,
            _WRITTEN: self.written_mb,
            _GPU_MEMORY: self.gpu_memory_mb,
        }
        pairs = [f"{name}={count}" for name, count in counts.items() if count is not None]
        return ",".join([*pairs, *(f"{name}={size}M" for name, size in sizes.items() if size is not None)])

    @classmethod
    def of_tres(cls, text: str) -> Measured:
        """Return the figures in a text of resources. Other text in it means nothing."""
        found = dict(re.findall(r"(?:^|,)(used/[a-z]+)=([0-9]{1,12})M?(?=,|$)", text, re.ASCII))
        names = _CPU, _MEMORY, _READ, _WRITTEN, _GPU, _GPU_MEMORY
        return cls(*(int(found[name]) if name in found else None for name in names))


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """What a job used of what it asked for, as its provider's Slurm measured it. None for what is not known.

    Attributes:
        asked_cpus: CPUs of all tasks.
        asked_memory_mb: MB of memory of all tasks.
        run_s: Seconds that the job ran.
        cpu_s: Seconds of CPU that it used.
        memory_mb: MB of memory that it used at most.
        read_mb: MB that it read from files.
        written_mb: MB that it wrote to files.
        asked_gpus: GPUs of all tasks.
        gpu_percent: Use of its GPUs at the highest, 100 for one whole GPU.
        gpu_memory_mb: MB of memory of GPUs that it used at most.
    """

    asked_cpus: int
    asked_memory_mb: int
    run_s: int
    cpu_s: int | None = None
    memory_mb: int | None = None
    read_mb: int | None = None
    written_mb: int | None = None
    asked_gpus: int = 0
    gpu_percent: int | None = None
    gpu_memory_mb: int | None = None

    @property
    def used_cpus(self) -> float | None:
        """CPUs that it used on average; None also for a run of less than 10 seconds."""
        return None if self.cpu_s is None or self.run_s < LEAST_S else self.cpu_s / self.run_s

    @property
    def words(self) -> str:
        """The same as a line; empty if nothing is known."""
        parts = []
        if (cpus := self.used_cpus) is not None:
            asked = f"{self.asked_cpus} CPU{'s' * (self.asked_cpus != 1)}"
            parts.append(f"asked {asked}, used {cpus:.1f}")
        if self.memory_mb is not None:
            parts.append(f"asked {_size(self.asked_memory_mb)}, used {_size(self.memory_mb)}")
        if self.gpu_percent is not None:
            memory = "" if self.gpu_memory_mb is None else f" and {_size(self.gpu_memory_mb)} of their memory"
            asked = f"{self.asked_gpus} GPU{'s' * (self.asked_gpus != 1)}"
            parts.append(f"asked {asked}, used {self.gpu_percent / 100:.1f} at most{memory}")
        moved = {"read": self.read_mb, "wrote": self.written_mb}
        if files := ", ".join(f"{verb} {_size(size)}" for verb, size in moved.items() if size is not None):
            parts.append(files)
        return "; ".join(parts)

    @property
    def hint(self) -> str:
        """What to ask for next time, if a quarter or less was used; empty otherwise, and for less than a minute."""
        if self.run_s < HINT_S:
            return ""
        cpus, asked_percent = self.used_cpus, 100 * self.asked_gpus
        less: list[str] = []
        if cpus is not None and self.asked_cpus > 1 and HINT_SHARE * cpus <= self.asked_cpus:
            less.append("fewer CPUs")
        if self.memory_mb is not None and HINT_SHARE * self.memory_mb <= self.asked_memory_mb:
            less.append("less memory")
        if self.gpu_percent is not None and self.asked_gpus > 1 and HINT_SHARE * self.gpu_percent <= asked_percent:
            less.append("fewer GPUs")
        return f"a quarter or less was used: ask for {_list(less)}, and pay less" if less else ""


def resource_use(cpus: int, memory_mb: int, run_s: int, measured: Measured, gpus: int = 0) -> ResourceUse:
    """Return what a job used of these CPUs, this memory (MB) and these GPUs, in a run of `run_s` seconds."""
    return ResourceUse(cpus, memory_mb, run_s, asked_gpus=gpus, **asdict(measured))


def _size(megabytes: int) -> str:
    return f"{megabytes} MB" if megabytes < MB_PER_GB else f"{megabytes / MB_PER_GB:.1f} GB"


def _list(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
