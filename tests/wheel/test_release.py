"""`./run release` builds the same bytes twice, with correct checksums, and refuses a checkout that does not fit."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

from tests.wheel.support import REPOSITORY, install

pytestmark = pytest.mark.long
VERSION = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
PERSON = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}


class Checkout:
    """A clone of this repository, with its built pages, at a commit that is ready for a release."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run(["git", "clone", "--quiet", "--no-tags", f"file://{REPOSITORY}", folder], check=True)
        static = Path("deepgrid/gateway/static")
        shutil.copytree(REPOSITORY / static, folder / static, dirs_exist_ok=True)

    def date_the_changelog(self) -> None:
        """Commit a changelog whose section of this version has a date."""
        path = self.folder / "CHANGELOG.md"
        path.write_text(path.read_text().replace(f"## {VERSION} (unreleased)", f"## {VERSION} (2026-01-31)"))
        self.run("git", "commit", "--quiet", "--allow-empty", "--all", "--message", "release: date the changelog")

    def release(self, to: Path, version: str = VERSION) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "tools.release", version, "--to", str(to), check=False)

    def run(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder.parent), **PERSON}
        return subprocess.run(
            argv, cwd=self.folder, env=environment, capture_output=True, text=True, check=check, timeout=300
        )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout(tmp_path_factory.mktemp("release") / "checkout")


def test_what_does_not_fit_is_refused(checkout: Checkout, tmp_path: Path) -> None:
    assert f"has the version {VERSION}, not 9.9.9" in checkout.release(tmp_path, "9.9.9").stderr
    changes = (checkout.folder / "CHANGELOG.md").read_text()
    if f"## {VERSION} (unreleased)" in changes:
        assert f"calls {VERSION} unreleased" in checkout.release(tmp_path).stderr
    (checkout.folder / "stray").touch()
    refused = checkout.release(tmp_path)
    (checkout.folder / "stray").unlink()
    assert (refused.returncode, "not committed" in refused.stderr) == (1, True)
    assert not list(tmp_path.iterdir())


def test_a_release_is_whole_and_the_same_twice(checkout: Checkout, tmp_path: Path) -> None:
    checkout.date_the_changelog()
    built = []
    for name in ("first", "second"):
        done = checkout.release(tmp_path / name)
        assert done.returncode == 0, done.stderr
        built.append({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()})
    assert built[0] == built[1]
    folder = tmp_path / "first"
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True, capture_output=True)
    tagged = checkout.run("git", "rev-list", "-n", "1", f"v{VERSION}").stdout
    assert tagged == checkout.run("git", "rev-parse", "HEAD").stdout
    with tarfile.open(folder / f"deepgrid-{VERSION}.tar.gz") as archive:
        assert f"deepgrid-{VERSION}/run" in archive.getnames()
    (wheel,) = folder.glob("*.whl")
    installed = install(wheel, tmp_path / "venv")
    assert installed.run("dps", "--version").stdout == f"dps {VERSION}\n"
    assert list(installed.site.glob("deepgrid/gateway/static/index.html"))
