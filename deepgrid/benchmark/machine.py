"""What a node is: operating system, architecture, CPU and its micro-architecture, GPU.

The node prints its facts as the kernel tells them; archspec's tables, read here, name the micro-architecture.
"""

from __future__ import annotations

import re

from archspec.cpu import TARGETS, Microarchitecture
from archspec.cpu.detect import COMPATIBILITY_CHECKS, partial_uarch
from archspec.cpu.schema import TARGETS_JSON

from deepgrid.errors import SlurmError

_PARTS = {
    "system": "uname -s",
    "architecture": "uname -m",
    "cpu": "LC_ALL=C lscpu | sed -n 's/^Model name: *//p' | head -n 1",
    "cpuinfo": "sed '/^$/q' /proc/cpuinfo",
    "gpu": "nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | head -n 1",
}
# The families whose members archspec tells apart by features; the line of /proc/cpuinfo that has them.
_FLAGS = {"x86_64": "flags", "aarch64": "Features"}
_ARM_VENDORS: dict[str, str] = TARGETS_JSON["conversions"]["arm_vendors"]


def options() -> list[str]:
    """What sbatch is asked for: one CPU of one node."""
    return ["--nodes=1", "--ntasks=1"]


def script() -> str:
    """The batch script; each part follows a line with its name."""
    parts = [f"echo '== {name}'\n{command}" for name, command in _PARTS.items()]
    return "\n".join(["#!/bin/bash", *parts])


def parse(output: str) -> dict[str, str]:
    """Labels; without `gpu` where there is none. Raises SlurmError when the node said nothing of itself."""
    sections = re.split(r"^== (\w+)\n", output, flags=re.MULTILINE)[1:]
    part = {name: text.strip() for name, text in zip(sections[::2], sections[1::2], strict=True)}
    if not part.get("architecture"):
        raise SlurmError("The node did not say what it is.")
    facts = _facts(part.get("cpuinfo", ""))
    return {
        "os": part.get("system", ""),
        "arch": part["architecture"],
        "cpu": facts.get("model name") or part.get("cpu", ""),
        "cpu.microarch": microarchitecture(part["architecture"], facts),
        "gpu": part.get("gpu", ""),
    }


def microarchitecture(family: str, facts: dict[str, str]) -> str:
    """archspec's name of the newest micro-architecture all of whose features the CPU has.

    As `archspec.cpu.host`, which knows only the machine that it runs on; the family where nothing more is known.
    """
    if family not in _FLAGS:
        return family
    vendor = facts.get("vendor_id") or _ARM_VENDORS.get(facts.get("CPU implementer", ""), "generic")
    part = facts.get("CPU part", "")
    cpu = partial_uarch(vendor=vendor, features=set(facts.get(_FLAGS[family], "").split()), cpu_part=part)
    able = [target for target in TARGETS.values() if COMPATIBILITY_CHECKS[family](cpu, target)]
    generic = max((target for target in able if target.vendor == "generic"), key=_rank, default=TARGETS[family])
    same_part = [target for target in able if part and target.cpu_part == part]
    return str(max((target for target in same_part or able if target > generic), key=_rank, default=generic).name)


def _rank(target: Microarchitecture) -> tuple[int, int]:
    return len(target.ancestors), len(target.features)


def _facts(cpuinfo: str) -> dict[str, str]:
    """The first CPU's lines."""
    pairs = (line.partition(":") for line in cpuinfo.splitlines())
    return {key.strip(): value.strip() for key, separator, value in pairs if separator}
