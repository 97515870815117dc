"""`python -m tools.release VERSION [--to FOLDER]`, called by `./run release`. Tags the commit `vVERSION`.

It refuses a dirty tree, a version that `pyproject.toml` does not have, and a changelog without a section for it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from hatchling.build import build_wheel

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "deepgrid" / "gateway" / "static" / "index.html"
SUMS = "SHA256SUMS"


class Refused(Exception):
    """The checkout cannot be released as it is. The text says why."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="./run release", description="Build and tag a release.")
    parser.add_argument("version")
    parser.add_argument("--to", type=Path, help="folder for the files; .grid/release/VERSION by default")
    arguments = parser.parse_args()
    folder = (arguments.to or ROOT / ".grid" / "release" / arguments.version).absolute()
    try:
        section = check(arguments.version)
        files = build(arguments.version, section, folder)
        tag(arguments.version)
    except Refused as reason:
        sys.exit(f"run: {reason}")
    print("\n".join(str(file) for file in files))


def check(version: str) -> str:
    """Return the changelog's section for this version. Raises Refused when the checkout does not fit it."""
    if git("status", "--porcelain"):
        raise Refused("the checkout has changes that are not committed")
    if (known := tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]) != version:
        raise Refused(f"pyproject.toml has the version {known}, not {version}")
    section = re.search(rf"^## {re.escape(version)}\b(.*?)\n(.*?)(?=^## |\Z)", text_of_changes(), re.M | re.S)
    if section is None or not section[2].strip():
        raise Refused(f"CHANGELOG.md has no section for {version}")
    if "unreleased" in section[1]:
        raise Refused(f"CHANGELOG.md calls {version} unreleased: write the date instead")
    if not PAGES.exists():
        raise Refused("the web app is not built: run `./run web build`")
    return section[2].strip() + "\n"


def build(version: str, section: str, folder: Path) -> list[Path]:
    """Write the files of the release into `folder`, with the checksums last."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["SOURCE_DATE_EPOCH"] = git("log", "-1", "--format=%ct")  # the time of all files in the wheel
    os.umask(0o022)
    os.chdir(ROOT)
    wheel = folder / build_wheel(str(folder))
    archive = folder / f"deepgrid-{version}.tar.gz"
    git("archive", "--format=tar.gz", f"--prefix=deepgrid-{version}/", f"--output={archive}", "HEAD")
    changes = folder / "CHANGES.md"
    changes.write_text(section)
    files = [wheel, archive, changes]
    sums = folder / SUMS
    sums.write_text("".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files))
    return [*files, sums]


def tag(version: str) -> None:
    """Tag this commit. Raises Refused when another one has the tag."""
    name = f"v{version}"
    if not git("tag", "--list", name):
        git("tag", "--annotate", name, "--message", f"deepgrid {version}")
    elif git("rev-list", "-n", "1", name) != git("rev-parse", "HEAD"):
        raise Refused(f"the tag {name} is on another commit")


def text_of_changes() -> str:
    return (ROOT / "CHANGELOG.md").read_text()


def git(*arguments: str) -> str:
    """Run a git command and return its output. Raises Refused with git's own words when it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    main()
