"""Makes a workflow file of a Slurm batch script, with a remark for each line that has no counterpart."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

from deepgrid.errors import InputError
from deepgrid.workflow.models.fields import megabytes_in
from deepgrid.workflow.slurm_scripts import FIELDS

DIRECTIVE = re.compile(r"#SBATCH[ \t]+(.*)")
LEAST_MB = 1000  # memory of a script that asks for none: clusters differ in what they give then
_SHORT = {
    "n": "ntasks", "c": "cpus-per-task", "N": "nodes", "G": "gpus", "J": "job-name", "t": "time", "a": "array",
    "o": "output", "e": "error", "p": "partition", "D": "chdir",
}  # fmt: skip
_GPUS = re.compile(r"(?:gpu:)?(?:([A-Za-z][\w.-]*):)?([0-9]{1,6})|gpu")
_SHELLS = ("/bin/bash", "/bin/sh", "/bin/ash")
_REPLACED = {
    "bash": "/bin/bash",
    "sh": "/bin/sh",
    "dash": "/bin/sh",
    "ash": "/bin/ash",
    "ksh": "/bin/bash",
    "zsh": "/bin/bash",
}
_ALONE = ("exclusive", "overcommit", "oversubscribe", "requeue", "no-requeue", "hold", "wait", "parsable", "contiguous")


@dataclass
class Imported:
    """A workflow, and what a person must know of it: the line of the script (0: none), and a sentence."""

    workflow: str
    remarks: list[tuple[int, str]] = field(default_factory=list)


def is_batch_script(text: str) -> bool:
    """Return whether a text is a Slurm batch script, not a workflow."""
    return text.startswith("#!") and re.search(r"^#SBATCH\b", text, re.MULTILINE) is not None


def import_script(text: str) -> Imported:
    """Return the workflow of a batch script. Raises InputError for a script without a first line for its shell."""
    lines = text.replace("\r\n", "\n").split("\n")
    if not lines or not lines[0].startswith("#!"):
        raise InputError("This is no batch script: its first line must name its shell, such as #!/bin/bash.")
    script = _Script(lines)
    return Imported(script.workflow(), sorted(script.remarks))


class _Script:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self.remarks: list[tuple[int, str]] = []
        self._asked: dict[str, str] = {}
        for number, name, value in self._options():
            self._take(number, name, value)

    def _options(self) -> Iterator[tuple[int, str, str]]:
        """Yield line, name and value of each option. Like sbatch, stop at the first command."""
        for number, line in enumerate(self._lines, 1):
            if found := DIRECTIVE.fullmatch(line):
                yield from ((number, *pair) for pair in _pairs(found[1]))
            elif "\0" in line:
                raise InputError(f"This is no batch script: line {number} contains NUL.")
            elif line.strip() and not line.startswith("#"):
                return

    def _take(self, number: int, name: str, value: str) -> None:
        if name in ("output", "error", "open-mode"):
            self.remarks.append((number, f"--{name}: the grid keeps the output (enableLogging); see dps job logs"))
        elif name == "time":
            self.remarks.append((number, f"--time: submit with --min-time {value}, or with enough credits for it"))
        elif name == "job-name":
            self.remarks.append((number, f"--job-name: submit with --job-name {shlex.quote(value)}"))
        elif name == "array":
            self.remarks.append((number, f"--array={value}: submit with --array, which sets SLURM_ARRAY_TASK_ID"))
        elif name == "nodes":
            self.remarks.append((number, "--nodes: the cluster chooses the nodes; ask for tasks, CPUs and memory"))
        elif name not in _COUNTS:
            place = next((place for place, options in FIELDS.items() if name in options), None)
            instead = f"see {place}" if place else "it has no counterpart"
            self.remarks.append((number, f"--{name}: {instead}"))
        self._asked[name] = value

    def _count(self, name: str, otherwise: int) -> int:
        text = self._asked.get(name, "").partition("-")[0]  # nodes may be a range
        return max(1, int(text)) if text.isdigit() and len(text) < 7 else otherwise

    def workflow(self) -> str:
        nodes = self._count("nodes", 1)
        tasks = self._count("ntasks", nodes * self._count("ntasks-per-node", 1))
        cpus = self._count("cpus-per-task", 1)
        memory, gpus = self._memory(nodes, tasks * cpus), self._gpus(nodes, tasks)
        resources = {"tasks": tasks, "cpusPerTask": cpus, "memPerCpu": memory, "gpus": gpus}
        command = "\n".join(line for line in self._lines[1:] if not DIRECTIVE.fullmatch(line)).strip("\n") + "\n"
        self._remark_on_commands(command)
        shell, command = self._run_by(command)
        made = ["enableLogging: true", "", "resources:", *(f"  {name}: {value}" for name, value in resources.items())]
        made += ["", "steps:", "  - run:", f"      shell: {shell}"]
        chdir = self._asked.get("chdir", "/")
        if not chdir.startswith("/"):
            self.remarks.append((0, f"--chdir={chdir}: a job begins in its own folder; use cd in the command"))
        elif chdir != "/":
            made.append(f"      workDir: {json.dumps(chdir)}")
        made += _command(command)
        return "\n".join(made) + "\n"

    def _run_by(self, command: str) -> tuple[str, str]:
        """Return the shell of the step, and its command. Other interpreters get the script as a here-document."""
        words = self._lines[0][2:].split()
        if words and PurePath(words[0]).name == "env":
            words = [word for word in words[1:] if not word.startswith("-")]
        name = PurePath(words[0]).name if words else "bash"
        if words and words[0] in _SHELLS:
            return words[0], command
        if name in _REPLACED:
            if name not in ("sh", "bash"):
                self.remarks.append((1, f"the shell {name} is replaced by {_REPLACED[name]}"))
            return _REPLACED[name], command
        self.remarks.append((1, f"the script is read by {name}, which the cluster must have; or use a container"))
        end = "END_OF_SCRIPT"
        while end in command:
            end += "_"
        return "/bin/bash", f"{shlex.join(words)} /dev/stdin <<'{end}'\n{command}{end}\n"

    def _memory(self, nodes: int, cpus: int) -> int:
        per_cpu, per_node = (_megabytes(self._asked.get(name, "")) for name in ("mem-per-cpu", "mem"))
        if per_cpu:
            return per_cpu
        if per_node:
            return -(-per_node * nodes // cpus)
        self.remarks.append((0, f"the script asks for no memory: memPerCpu is {LEAST_MB} MB, which is a guess"))
        return LEAST_MB

    def _gpus(self, nodes: int, tasks: int) -> int:
        for name, times in (("gpus", 1), ("gpus-per-task", tasks), ("gpus-per-node", nodes), ("gres", nodes)):
            found = _GPUS.fullmatch(self._asked.get(name, ""))
            if found:
                if found[1]:
                    self.remarks.append((0, f"GPUs of the type {found[1]}: submit with --uses gpu={found[1]}"))
                return int(found[2] or 1) * times
        return 0

    def _remark_on_commands(self, command: str) -> None:
        for number, line in enumerate(self._lines, 1):
            bare = line.strip()
            if re.match(r"(module|ml)\s", bare):
                self.remarks.append((number, "modules of a site are not on other clusters; use a container, or uses"))
            elif re.match(r"(srun|mpirun|mpiexec)\b", bare):
                self.remarks.append((number, "steps with resources.tasks start their command once per task"))
        if found := sorted(set(re.findall(r"\$\{?(SLURM_SUBMIT_DIR|SLURM_ARRAY_\w+)", command))):
            self.remarks.append((0, f"the grid does not set {', '.join(found)}"))
        if re.search(r"(^|[\s=\"'])(~|\$HOME|/home/|/scratch/|/work/)", command, re.MULTILINE):
            self.remarks.append((0, "paths of one's home or scratch do not exist at other sites; use input and output"))


_COUNTS = ("ntasks", "cpus-per-task", "mem-per-cpu", "mem", "gpus", "gres", "gpus-per-task", "gpus-per-node", "nodes",
           "ntasks-per-node", "chdir")  # fmt: skip


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the options of one line: `--name=value`, `--name value`, `-n 4`, `-n4`."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        words = text.split()
    while words:
        word = words.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name:
            continue
        if not word.startswith("--"):
            name, value, equals = _SHORT.get(name[0], name[0]), name[1:], name[1:]
        if not equals and name not in _ALONE and words and not words[0].startswith("-"):
            value = words.pop(0)
        yield name, value


def _megabytes(text: str) -> int | None:
    return int(text) if text.isdigit() and len(text) < 10 else megabytes_in(text)


def _command(command: str) -> list[str]:
    """Return the lines of the field `command`. A block of YAML cannot have other control characters than tabs."""
    lines = command.removesuffix("\n").split("\n")
    if not all(line.replace("\t", "").isprintable() for line in lines):
        return [f"      command: {json.dumps(command)}"]
    indent = "2" if command[:1] in (" ", "\t") else ""  # YAML would take more for the indent of all lines
    return [f"      command: |{indent}", *(f"        {line}" if line else "" for line in lines)]
