"""A virtual environment with the built wheel and its dependencies, and without the checkout.

The dependencies are copied from the environment of the tests, so that nothing is downloaded.
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

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[2]
RUNS = 3


@dataclass(frozen=True)
class Installation:
    """The virtual environment in `folder`. `dependencies` are the names of the packages other than deepgrid."""

    folder: Path
    dependencies: tuple[str, ...]

    @property
    def site(self) -> Path:
        return next((self.folder / "lib").glob("python3*/site-packages"))

    @property
    def size_mb(self) -> float:
        return sum(file.stat().st_size for file in self.site.rglob("*") if file.is_file()) / 1e6

    @property
    def summary(self) -> str:
        """Return the size and number of packages, in one line."""
        return f"{len(self.dependencies) + 1} packages, {self.size_mb:.0f} MB"

    def run(self, *argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment in its own folder, with no variable that could lead to the checkout."""
        program = [str(self.folder / "bin" / argv[0]), *argv[1:]]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "TZ": "UTC"} | environment
        return subprocess.run(
            program, capture_output=True, text=True, env=env, cwd=self.folder, check=False, timeout=300
        )

    def cpu_s(self, *argv: str, **environment: str) -> float:
        """Return the processor time (user and system) of a command in seconds, the best of three runs."""
        best = float("inf")
        for _ in range(RUNS):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = self.run(*argv, **environment)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert done.returncode == 0, done.stderr
            best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return best


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel of this checkout, installed."""
    folder = tmp_path_factory.mktemp("wheel")
    return install(build_wheel(folder), folder / "venv")


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout into `folder`."""
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(folder)], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    return folder / done.stdout.split()[-1]


def install(wheel: Path, folder: Path, extra: str = "") -> Installation:
    """Create a virtual environment in `folder` with the wheel, its base dependencies and one extra's."""
    venv.create(folder, symlinks=True, with_pip=False)
    installed = Installation(folder, tuple(sorted(dependencies("deepgrid", extra))))
    for name in installed.dependencies:
        _copy(distribution(name), installed.site)
    uv = REPOSITORY / ".grid" / "uv" / "bin" / "uv"
    python = str(folder / "bin" / "python")
    subprocess.run(
        [uv, "pip", "install", "--offline", "--no-deps", "--python", python, wheel], capture_output=True, check=True
    )
    return installed


def dependencies(name: str, extra: str = "") -> set[str]:
    """Return the direct and indirect dependencies of a distribution, including one extra."""
    found: set[str] = set()
    wanted = list(_requirements(distribution(name), extra))
    while wanted:
        one = wanted.pop()
        key = canonicalize_name(one.name)
        if key not in found:
            found.add(key)
        for extra in ("", *one.extras):
            wanted += [
                more for more in _requirements(distribution(key), extra) if canonicalize_name(more.name) not in found
            ]
    return found


def _requirements(package: Distribution, extra: str) -> Iterator[Requirement]:
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
