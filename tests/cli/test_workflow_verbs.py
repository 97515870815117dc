"""`dps init`, `validate`, `render` and `schema`: workflow files on a machine without any grid."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from deepgrid.services.script_check import check_script
from tests.cli.support import Invoke

RESOURCES = "resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0}\n"
BROKEN = RESOURCES + "steps:\n  - {rum: {command: x}}\n"
IDLE = RESOURCES + "steps: [{for: {parallel: false, steps: []}}]\n"


def test_init_names_a_schema_that_is_there(invoke: Invoke, tmp_path: Path) -> None:
    assert invoke("init").exit_code == 0
    first = (tmp_path / "job.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=job.schema.json"
    assert (tmp_path / "job.schema.json").read_text() == invoke("schema").stdout
    assert json.loads(invoke("schema").stdout)["properties"]["steps"]["description"]


def test_init_leaves_a_schema_alone_that_is_there_already(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "job.schema.json").write_text("mine")
    assert invoke("init").exit_code == 0
    assert (tmp_path / "job.schema.json").read_text() == "mine"


def test_validate_says_what_is_wrong_and_what_is_odd(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text(BROKEN)
    broken = invoke("validate", "broken.yaml")
    assert broken.exit_code == 2
    assert "broken.yaml:3:6: steps[0].rum: unknown field (did you mean 'run'?)" in broken.stderr
    (tmp_path / "idle.yaml").write_text(IDLE)
    idle = invoke("validate", "idle.yaml")
    assert idle.exit_code == 0
    assert idle.stdout.splitlines()[0] == "valid"
    assert idle.stdout.splitlines()[1].startswith("No prices are known here: There is no address book at ")
    assert idle.stderr == "idle.yaml:2:10: steps[0].for: warning: has neither items nor range, so it never runs\n"


def test_a_workflow_is_read_from_standard_input(invoke: Invoke) -> None:
    assert invoke("validate", "-", input=RESOURCES + "steps: []\n").stdout.startswith("valid\n")
    assert invoke("validate", "-", input="a: [").stderr.startswith("dps: standard input:1:5: the file ends")
    batch = invoke("validate", "-", input="#!/bin/bash\n#SBATCH -n 2\n")
    assert batch.stderr == "dps: standard input is a Slurm batch script. Make a workflow of it: dps import SCRIPT.\n"


def test_a_batch_script_from_standard_input_becomes_a_valid_workflow(invoke: Invoke, tmp_path: Path) -> None:
    made = invoke("import", "-", input="#!/bin/bash -e\n#SBATCH -n 4 --gres=gpu:2\n#SBATCH --time=90\nsrun ./a\n")
    assert (made.exit_code, invoke("validate", "-", input=made.stdout).stdout.splitlines()[0]) == (0, "valid")
    assert "standard input:3: --time: submit with --time 90m\n" in made.stderr
    (tmp_path / "latin").write_bytes(b"#!/bin/bash\n#SBATCH -J \xe9\n")
    assert invoke("import", "latin").stderr.startswith("dps: latin is not UTF-8 text.")
    gone = invoke("import", "gone")
    assert gone.exit_code == 2
    assert gone.stderr == "dps: gone cannot be read: No such file or directory. Name another file.\n"


@pytest.mark.parametrize("options", [(), ("--storage", "/srv/grid storage")])
def test_render_shows_the_script_that_would_run(invoke: Invoke, tmp_path: Path, options: tuple[str, ...]) -> None:
    invoke("init")
    shown = invoke("render", "job.yaml", *options)
    assert shown.exit_code == 0
    check_script(shown.stdout)
    assert yaml.safe_load((tmp_path / "job.yaml").read_text())["env"][0]["value"] in shown.stdout
    assert ("/srv/grid storage/shared" in shown.stdout) == bool(options)


MODULE = """\
name: greet
description: Greets.
minimumResources: {tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0}
inputs: [{key: WHO, description: who is greeted}]
steps: [{name: "for {{ inputs.WHO }}", run: {command: 'echo "Hello $WHO"'}}]
"""


def test_modules_are_resolved_where_they_are_used(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "greet").mkdir()
    (tmp_path / "greet" / "module.yaml").write_text(MODULE)
    use = "steps: [{use: {source: ./greet, args: [{key: %s, value: Ada}], exportEnvAs: G}}]\n"
    (tmp_path / "good.yaml").write_text(RESOURCES + use % "WHO")
    (tmp_path / "bad.yaml").write_text(RESOURCES + use % "HWO")
    good = invoke("validate", "good.yaml")
    assert (good.exit_code, good.stdout.splitlines()[0]) == (0, "valid")
    assert good.stderr == (
        "good.yaml:2:78: steps[0].use.exportEnvAs: warning: has no effect: the module has no outputs\n"
    )
    assert "for Ada" in invoke("render", "good.yaml").stdout
    bad = invoke("validate", "bad.yaml")
    assert bad.exit_code == 2
    assert "the module has no input HWO (did you mean WHO?)" in bad.stderr


def test_fields_of_other_tools_are_ignored_if_asked_for(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(RESOURCES + "steps: [{nam: x, run: {command: echo said}}]\nversion: 3\n")
    assert invoke("validate", "job.yaml").exit_code == 2
    assert invoke("render", "job.yaml").exit_code == 2
    warning = "job.yaml:2:10: steps[0].nam: warning: unknown field (did you mean 'name'?), ignored\n"
    valid = invoke("validate", "job.yaml", "--ignore-unknown-fields")
    assert (valid.exit_code, valid.stdout.splitlines()[0]) == (0, "valid")
    assert warning in valid.stderr
    rendered = invoke("render", "job.yaml", "--ignore-unknown-fields")
    assert rendered.exit_code == 0
    assert "echo said" in rendered.stdout
    assert warning in rendered.stderr


def test_a_condition_that_cannot_be_evaluated_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(RESOURCES + "steps: [{if: '[ 1 = 1 ]', run: {command: x}}]\n")
    for verb in ("validate", "render"):
        refused = invoke(verb, "job.yaml")
        assert refused.exit_code == 2
        assert "job.yaml:2:14: steps[0].if: is not a test that bash's [[ ]] can evaluate" in refused.stderr


def test_a_book_that_is_named_must_be_right(invoke: Invoke, tmp_path: Path) -> None:
    invoke("init")
    assert invoke("validate", "job.yaml", "--book", tmp_path / "missing.json").exit_code == 2


def test_a_workflow_file_is_utf_8_in_any_locale(tmp_path: Path) -> None:
    (tmp_path / "script.sh").write_text("#!/bin/bash\necho 'größe 日本'\n", "utf-8")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    dps = [sys.executable, "-m", "deepgrid.cli", "import", "script.sh"]
    for more in ([], ["--output", "job.yaml"]):
        done = subprocess.run([*dps, *more], cwd=tmp_path, env=environment, check=False, capture_output=True)
        assert done.returncode == 0, done.stderr
        made = (tmp_path / "job.yaml").read_bytes() if more else done.stdout
        assert "echo 'größe 日本'" in made.decode()
