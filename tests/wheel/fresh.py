"""A virtual environment that has the built wheel and what it needs, and nothing of the checkout.

The wheel's dependencies are taken from the environment of the tests, file by file, so that nothing is downloaded.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Fresh:
    """The environment in `folder`; `packages` are the names of what is installed beside deepgrid."""

    folder: Path
    packages: tuple[str, ...]

    @property
    def site(self) -> Path:
        return next((self.folder / "lib").glob("python3*/site-packages"))

    @property
    def size_mb(self) -> float:
        return sum(file.stat().st_size for file in self.site.rglob("*") if file.is_file()) / 1e6

    def run(self, *argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """A command of the environment, in an empty place and with no variable that could lead to the checkout."""
        program = [str(self.folder / "bin" / argv[0]), *argv[1:]]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "TZ": "UTC"} | environment
        return subprocess.run(
            program, capture_output=True, text=True, env=env, cwd=self.folder, check=False, timeout=300
        )

    def cpu_s(self, *argv: str, **environment: str) -> float:
        """Processor seconds of a command, the best of five."""
        best = float("inf")
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = self.run(*argv, **environment)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert done.returncode == 0, done.stderr
            best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return best


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout."""
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(folder)], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    return folder / done.stdout.split()[-1]


def install(wheel: Path, folder: Path) -> Fresh:
    """A fresh environment with the wheel and its base dependencies."""
    venv.create(folder, symlinks=True, with_pip=False)
    fresh = Fresh(folder, tuple(sorted(closure("deepgrid"))))
    for name in fresh.packages:
        _copy(distribution(name), fresh.site)
    uv = REPOSITORY / ".grid" / "uv" / "bin" / "uv"
    python = str(folder / "bin" / "python")
    subprocess.run(
        [uv, "pip", "install", "--offline", "--no-deps", "--python", python, wheel], capture_output=True, check=True
    )
    return fresh


def closure(name: str) -> set[str]:
    """What a distribution needs without extras, directly and indirectly."""
    found: set[str] = set()
    wanted = list(_needs(distribution(name), ""))
    while wanted:
        one = wanted.pop()
        key = canonicalize_name(one.name)
        if key not in found:
            found.add(key)
        for extra in ("", *one.extras):
            wanted += [more for more in _needs(distribution(key), extra) if canonicalize_name(more.name) not in found]
    return found


def _needs(package: Distribution, extra: str) -> Iterator[Requirement]:
    for text in package.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def _copy(package: Distribution, site: Path) -> None:
    for file in package.files or ():
        source = Path(str(package.locate_file(file)))
        if ".." not in file.parts and source.is_file():
            target = site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
