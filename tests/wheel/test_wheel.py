"""`pip install deepgrid` gives one package, few dependencies, and a quick command without extras."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wheel.support import REPOSITORY, Installation

MOST_PACKAGES = 70
HELP_CPU_S = 2.0  # 0.13 s on an idle machine, where 0.3 s are allowed


def test_the_wheel_holds_one_package_and_no_entry_point_of_the_project(installation: Installation) -> None:
    info = next(installation.site.glob("deepgrid-*.dist-info"))
    files = [line.split(",")[0] for line in (info / "RECORD").read_text().splitlines()]
    tops = {Path(file).parts[0] for file in files if not file.startswith("..")}
    assert tops == {"deepgrid", info.name}
    assert "deepgrid/py.typed" in files
    assert "deepgrid/chain/compiled/MetaScheduler.json" in files
    assert not [file for file in files if file.endswith((".sol", ".t.sol", "package-lock.json", ".sqlite"))]
    assert (info / "entry_points.txt").read_text().split() == [
        "[console_scripts]",
        "dps",
        "=",
        "deepgrid.cli.main:main",
    ]


def test_templates_of_the_terminal_app_are_files_and_not_links(installation: Installation) -> None:
    folder = installation.site / "deepgrid" / "tui" / "templates"
    files = {file.name: file for file in folder.glob("*.yaml")}
    assert len(files) > 5
    assert not [name for name, file in files.items() if file.is_symlink()]
    for name, file in files.items():
        assert file.read_text() == (REPOSITORY / "examples" / name).read_text()


def test_the_base_installation_is_small(installation: Installation) -> None:
    print(f"{installation.summary}: {', '.join(installation.dependencies)}")
    assert len(installation.dependencies) + 1 <= MOST_PACKAGES
    heavy = {"prefect", "pandas", "matplotlib", "paramiko", "fastapi", "sqlalchemy"}
    assert not heavy & set(installation.dependencies)


def test_help_is_quick(installation: Installation) -> None:
    seconds = installation.cpu_s("dps", "--help")
    print(f"dps --help: {seconds:.2f} s of processor time")
    assert seconds < HELP_CPU_S


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            ("provider", "serve", "x"),
            "is part of the Prefect project, which is not installed here. Run it from a checkout",
        ),
        (
            ("operator", "serve", "x"),
            "is part of the Prefect project, which is not installed here. Run it from a checkout",
        ),
        (
            ("services", "serve", "--database", "sqlite:///x", "--secret-file", "y"),
            "is not installed. Install it: pip install 'deepgrid[services]'.",
        ),
        (("web",), "is not installed. Install it: pip install 'deepgrid[web]'."),
    ],
)
def test_a_missing_part_is_named_in_one_line(installation: Installation, argv: tuple[str, ...], said: str) -> None:
    done = installation.run("dps", *argv)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "group", ["submit", "job", "validate", "credit", "gas", "key", "provider", "operator", "services"]
)
def test_every_group_of_verbs_works_without_extras(installation: Installation, group: str) -> None:
    done = installation.run("dps", group, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage: dps " in done.stdout
