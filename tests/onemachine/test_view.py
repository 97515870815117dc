"""The printed view of the grid, and the file that users source."""

from __future__ import annotations

import subprocess
from pathlib import Path

from deployments.onemachine.view import Row, environment_file, table


def test_any_value_survives_being_sourced(tmp_path: Path) -> None:
    strange = 'it\'s $HOME; `id` "x" \\\\ end'
    file = tmp_path / "some.env"
    file.write_text(environment_file({"STRANGE": strange}, tmp_path / "my bin"))
    script = f'set -eu; . "{file}"; printf "%s\\n%s" "$STRANGE" "$PATH"'
    shown = subprocess.run(
        ["sh", "-c", script], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    assert shown.stdout == f"{strange}\n{tmp_path}/my bin:/usr/bin:/bin"


def test_the_table_is_aligned_and_names_the_dead() -> None:
    rows = [Row("a", 7, "127.0.0.1:1", Path("/log/a")), Row("longer", None, "", Path("/log/b"))]
    lines = table(rows).splitlines()
    assert [line.index("/log/") for line in lines[1:]] == [lines[0].index("LOG")] * 2
    assert lines[2].split() == ["longer", "dead", "/log/b"]
