"""Makes a workflow file of a Slurm batch script, with a remark for each line that has no counterpart."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

from deepgrid.errors import InputError
from deepgrid.workflow import slurm_options
from deepgrid.workflow.slurm_scripts import FIELDS

DIRECTIVE = re.compile(r"#SBATCH[ \t]+(.*)")
LEAST_MB = 1000  # memory of a script that asks for none: clusters differ in what they give then
ONE_NODE_CPUS = 64  # up to this many tasks, a script without a number of nodes is assumed to need one node
_SHELLS = ("/bin/bash", "/bin/sh", "/bin/ash")
_REPLACED = dict.fromkeys(("bash", "ksh", "zsh"), "/bin/bash") | {"sh": "/bin/sh", "dash": "/bin/sh", "ash": "/bin/ash"}
_COMPONENTS = ("hetjob", "packjob")
_STARTS_TASKS = re.compile(r"\b(srun|mpirun|mpiexec)\b|\bSLURM_")
_ELSEWHERE = re.compile(r"(^|[\s=\"'])(~|\$\{?(HOME|SCRATCH|WORK)\b|/(?:home|scratch|work)/)", re.MULTILINE)
_UNSET = re.compile(r"\$\{?(SLURM_ARRAY_\w+)")
_NUMBERS = ("ntasks", "cpus-per-task", "cpus-per-gpu", "nodes", "ntasks-per-node", "ntasks-per-gpu")
_MEMORY = ("mem-per-cpu", "mem", "mem-per-gpu")
_GPUS = ("gpus", "gpus-per-task", "gpus-per-node", "gres")


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
    if not lines[0].startswith("#!"):
        raise InputError("This is no batch script: its first line must name its shell, such as #!/bin/bash.")
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise InputError(f"This is no batch script: line {number} contains NUL.")
    script = _Script(lines)
    return Imported(script.workflow(), sorted(script.remarks))


@dataclass(frozen=True)
class _Size:
    """What a script asks for: nodes, tasks on all of them, CPUs of each task, MB of each CPU, and GPUs in all."""

    nodes: int
    tasks: int
    cpus: int
    memory: int
    gpus: int
    is_one_node: bool

    def of_job(self) -> dict[str, int]:
        """Return the job's resources. On one node the script itself is the only task, and has all of them."""
        tasks, cpus = (1, self.tasks * self.cpus) if self.is_one_node else (self.tasks, self.cpus)
        return {"tasks": tasks, "cpusPerTask": cpus, "memPerCpu": self.memory, "gpus": self.gpus}

    def of_step(self) -> dict[str, int]:
        """Return what the step needs in addition to the job's CPUs and memory. By default a step gets no GPU."""
        wanted = self.gpus if self.is_one_node else max(self.gpus // self.tasks, min(self.gpus, 1))
        return {"gpusPerTask": wanted} if wanted else {}

    def of_tasks(self) -> str:
        """Return the resources of a step that starts all tasks, as a workflow file writes them."""
        per_task = self.gpus // self.tasks
        return f"{{tasks: {self.tasks}{f', gpusPerTask: {per_task}' if per_task else ''}}}"


class _Script:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        commands = (at for at, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#"))
        self._head = next(commands, len(lines))  # sbatch looks for options only before the first command
        self.remarks: list[tuple[int, str]] = []
        self._asked: dict[str, tuple[int, str]] = {}
        for number, name, value in self._options():
            self._take(number, name, value)

    def _options(self) -> Iterator[tuple[int, str, str]]:
        """Yield line, name and value of each option."""
        for number, line in enumerate(self._lines[: self._head], 1):
            found = DIRECTIVE.fullmatch(line)
            if found and found[1].strip() in _COMPONENTS:
                self._remark(number, "all tasks of a job have one size; the further parts of this script are left out")
                return
            if found:
                yield from ((number, *pair) for pair in slurm_options.pairs(found[1]))

    def _remark(self, line: int, what: str) -> None:
        self.remarks.append((line, what))

    def _take(self, number: int, name: str, value: str) -> None:
        if name in ("output", "error", "open-mode"):
            self._remark(number, f"--{name}: the grid keeps the output (enableLogging); see dps job logs")
        elif name == "time":
            self._remark_on_time(number, value)
        elif name == "job-name":
            self._remark(number, f"--job-name: submit with --job-name {shlex.quote(value)}")
        elif name == "array":
            self._remark(number, f"--array={value}: submit with --array, which sets SLURM_ARRAY_TASK_ID")
        elif name == "nodes":
            self._remark(number, "--nodes: the cluster chooses the nodes; ask for tasks, CPUs and memory")
        elif name == "exclusive" and value not in ("user", "mcs", "topo"):
            self._remark(number, "--exclusive means whole nodes; write how many CPUs and how much memory it needs")
        elif name not in (*_NUMBERS, *_MEMORY, *_GPUS, "chdir"):
            place = next((place for place, options in FIELDS.items() if name in options), None)
            option = f"--{name}" if len(name) > 1 else f"-{name}"
            self._remark(number, f"{option}: {f'see {place}' if place else 'it has no counterpart'}")
        self._asked[name] = number, value

    def _remark_on_time(self, number: int, value: str) -> None:
        if value == "0" or value.lower() in ("unlimited", "infinite"):
            self._remark(number, f"--time={value}: a job runs for the time that is paid for; submit with --time TIME")
        else:
            self._remark(number, f"--time: submit with --time {value}{'m' if value.isdigit() else ''}")

    def _misread(self, name: str, what: str) -> None:
        number, value = self._asked[name]
        self._remark(number, f"--{name}={value}: is not understood; {what}")

    def _count(self, name: str, what: str) -> int:
        """Return a number that the script asks for; 0 for none."""
        if name not in self._asked:
            return 0
        text = self._asked[name][1]
        found = slurm_options.count(text.partition("-")[0] if name == "nodes" else text)  # nodes may be a range
        if found is None:
            self._misread(name, f"{what} is 1")
        return found or 0

    def _size(self) -> _Size:
        tasks, on_node = self._count("ntasks", "tasks"), self._count("ntasks-per-node", "tasks of each node")
        named = self._count("nodes", "nodes")
        nodes = named or (-(-tasks // on_node) if tasks and on_node else 1)
        tasks, gpus = self._tasks_and_gpus(nodes, tasks, on_node)
        of_gpus = -(-self._count("cpus-per-gpu", "CPUs of each GPU") * gpus // tasks)
        cpus = self._count("cpus-per-task", "cpusPerTask") or of_gpus or 1
        is_one_node = tasks == 1 or (nodes == 1 and (named == 1 or tasks * cpus <= ONE_NODE_CPUS))
        return _Size(nodes, tasks, cpus, self._memory(nodes, tasks * cpus, gpus), gpus, is_one_node)

    def _tasks_and_gpus(self, nodes: int, named: int, on_node: int) -> tuple[int, int]:
        """Return the numbers of tasks and GPUs. With `--ntasks-per-gpu`, one of them may follow from the other."""
        tasks = named or nodes * (on_node or 1)
        gpus = self._gpus(nodes, tasks)
        number, text = self._asked.get("ntasks-per-gpu", (0, ""))
        by_gpu = slurm_options.count(text) or 0
        if by_gpu and named and not any(one in self._asked and "gpu" in one + self._asked[one][1] for one in _GPUS):
            gpus = -(-tasks // by_gpu)
        elif by_gpu and gpus and not (named or on_node):
            tasks = gpus * by_gpu
        elif number and tasks != gpus * by_gpu:
            self._remark(number, f"--ntasks-per-gpu={text}: is not used; tasks is {tasks}, gpus is {gpus}")
        return tasks, gpus

    def _memory(self, nodes: int, cpus: int, gpus: int) -> int:
        """Return the memory of each CPU in MB."""
        for name, times, parts in (("mem-per-cpu", 1, 1), ("mem", nodes, cpus), ("mem-per-gpu", gpus, cpus)):
            if name not in self._asked:
                continue
            number, text = self._asked[name]
            found = slurm_options.megabytes(text)
            if found and times:
                return -(-found * times // parts)
            if found == 0:
                self._remark(number, f"--{name}=0 means a whole node; write how much it needs")
            else:
                self._misread(name, f"memPerCpu is {LEAST_MB} MB")
            return LEAST_MB
        self._remark(0, f"the script asks for no memory: memPerCpu is {LEAST_MB} MB, which is a guess")
        return LEAST_MB

    def _gpus(self, nodes: int, tasks: int) -> int:
        for name, times in (("gpus", 1), ("gpus-per-task", tasks), ("gpus-per-node", nodes), ("gres", nodes)):
            if name not in self._asked:
                continue
            number, text = self._asked[name]
            found = slurm_options.gpus(name, text)
            if found is None:
                self._misread(name, "gpus is 0")
                continue
            count, types, others = found
            for kind in dict.fromkeys(types):
                self._remark(0, f"GPUs of the type {kind}: submit with --uses gpu={kind}")
            for other in others:
                self._remark(number, f"--{name}={other}: it has no counterpart")
            if count:
                return count * times
        return 0

    def workflow(self) -> str:
        size = self._size()
        lines = [line for line in self._lines[1 : self._head] if not DIRECTIVE.fullmatch(line)]
        command = "\n".join([*lines, *self._lines[max(1, self._head) :]]).strip("\n") + "\n"
        self._remark_on_commands(command, size)
        shell, command = self._run_by(command)
        if size.is_one_node and size.tasks > 1 and _STARTS_TASKS.search(command):
            command = _all_tasks(size) + command
        made = ["enableLogging: true", "", "resources:", *_fields(size.of_job(), "  ")]
        made += ["", "steps:", "  - run:", f"      shell: {shell}"]
        if resources := size.of_step():
            made += ["      resources:", *_fields(resources, "        ")]
        chdir = self._chdir()
        if not chdir.startswith("/"):
            self._remark(0, f"--chdir={chdir}: a job begins in its own folder; use cd in the command")
        elif chdir != "/":
            made.append(f"      workDir: {json.dumps(chdir)}")
        return "\n".join([*made, *_command(command)]) + "\n"

    def _chdir(self) -> str:
        return self._asked.get("chdir", (0, "/"))[1]

    def _run_by(self, command: str) -> tuple[str, str]:
        """Return the shell of the step, and its command. Other interpreters get the script as a here-document."""
        words = self._interpreter()
        name = PurePath(words[0]).name if words else "bash"
        shell = words[0] if words and words[0] in _SHELLS else _REPLACED.get(name)
        if shell is None:
            self._remark(1, f"the script is read by {name}, which the cluster must have; or use a container")
            end = "END_OF_SCRIPT"
            while end in command:
                end += "_"
            return "/bin/bash", f"{shlex.join(words)} /dev/stdin <<'{end}'\n{command}{end}\n"
        if name not in ("sh", "bash") and words[0] not in _SHELLS:
            self._remark(1, f"the shell {name} is replaced by {shell}")
        kept, left_out = slurm_options.shell_options(words[1:])
        for option in left_out:
            self._remark(1, f"the option {option} of the shell is left out")
        return shell, f"set {' '.join(kept)}\n{command}" if kept else command

    def _interpreter(self) -> list[str]:
        """Return the words of the first line, without `env` and its options."""
        words = self._lines[0][2:].split()
        if not words or PurePath(words[0]).name != "env":
            return words
        words = words[1:]
        while words and (words[0].startswith("-") or "=" in words[0]):
            word = words.pop(0)
            if split := re.fullmatch(r"(?:-S|--split-string=?)(.*)", word):
                words[:0] = [split[1]] if split[1] else []
            else:
                self._remark(1, f"{word} of env is left out")
        return words

    def _remark_on_commands(self, command: str, size: _Size) -> None:
        is_apart = False
        for number, line in enumerate(self._lines, 1):
            bare = line.strip()
            if re.match(r"(module|ml)\s", bare):
                self._remark(number, "modules of a site are not on other clusters; use a container, or uses")
            elif re.match(r"(srun|mpirun|mpiexec)\b", bare) and not size.is_one_node:
                self._remark(number, f"the step has one task; make this line a step with resources: {size.of_tasks()}")
                is_apart = True
        if not size.is_one_node and not is_apart:
            self._remark(0, f"the step has one task; what all tasks run is a step with resources: {size.of_tasks()}")
        elif size.tasks > 1 and size.is_one_node:
            self._remark(0, f"the script runs on one node, as one task with all {size.tasks * size.cpus} CPUs")
        found = set(_UNSET.findall(command))
        if "array" in self._asked:
            found.discard("SLURM_ARRAY_TASK_ID")
        if found:
            self._remark(0, f"the grid does not set {', '.join(sorted(found))}")
        if _ELSEWHERE.search(f"{command}\n{self._chdir()}"):
            self._remark(0, "paths of one's home or scratch do not exist at other sites; use input and output")


def _all_tasks(size: _Size) -> str:
    """Return lines after which `srun` and `mpirun` start all tasks of the script. They follow Slurm's variables.

    The variables of newer releases for each task name the whole step, which is one task.
    """
    tasks = " ".join(f"SLURM_{name}={size.tasks}" for name in ("NTASKS", "NPROCS", "TASKS_PER_NODE"))
    cpus = " ".join(f"{who}_CPUS_PER_TASK={size.cpus}" for who in ("SLURM", "SRUN"))
    return f"export {tasks} {cpus}\nunset SLURM_TRES_PER_TASK SLURM_GPUS_PER_TASK\n"


def _fields(values: dict[str, int], indent: str) -> list[str]:
    return [f"{indent}{name}: {value}" for name, value in values.items()]


def _command(command: str) -> list[str]:
    """Return the lines of the field `command`. A block of YAML cannot have other control characters than tabs."""
    lines = command.removesuffix("\n").split("\n")
    if not all(line.replace("\t", "").isprintable() for line in lines):
        return [f"      command: {json.dumps(command)}"]
    indent = "2" if command[:1] in (" ", "\t") else ""  # YAML would take more for the indent of all lines
    return [f"      command: |{indent}", *(f"        {line}" if line else "" for line in lines)]
