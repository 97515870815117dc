"""Describes a node: operating system, architecture, CPU with its micro-architecture, GPU.

The node prints the kernel's facts. archspec's tables, which are read here, name the micro-architecture.
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
# CPU families that archspec distinguishes by features, with the line of /proc/cpuinfo that lists the features.
_FLAGS = {"x86_64": "flags", "aarch64": "Features"}
_ARM_VENDORS: dict[str, str] = TARGETS_JSON["conversions"]["arm_vendors"]


def script() -> str:
    """Return the batch script. It prints a line with its name before each part."""
    parts = [f"echo '== {name}'\n{command}" for name, command in _PARTS.items()]
    return "\n".join(["#!/bin/bash", *parts])


def parse(output: str) -> dict[str, str]:
    """Return the labels; `gpu` only if there is one. Raises SlurmError when the output does not describe the node."""
    sections = re.split(r"^== (\w+)\n", output, flags=re.MULTILINE)[1:]
    part = {name: text.strip() for name, text in zip(sections[::2], sections[1::2], strict=True)}
    if not part.get("architecture"):
        raise SlurmError("The output does not describe the node.")
    facts = _facts(part.get("cpuinfo", ""))
    return {
        "os": part.get("system", ""),
        "arch": part["architecture"],
        "cpu": facts.get("model name") or part.get("cpu", ""),
        "cpu.microarch": microarchitecture(part["architecture"], facts),
        "gpu": part.get("gpu", ""),
    }


def microarchitecture(family: str, facts: dict[str, str]) -> str:
    """archspec's name of the newest micro-architecture whose features the CPU has; else the CPU's family.

    `archspec.cpu.host` does the same, but only for the machine on which it runs.
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
    """Return the lines of the first CPU."""
    pairs = (line.partition(":") for line in cpuinfo.splitlines())
    return {key.strip(): value.strip() for key, separator, value in pairs if separator}
