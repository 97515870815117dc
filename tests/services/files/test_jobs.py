"""From a folder of a customer to the output of a job, with a real script and `curl` on this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from deepgrid.errors import NotFound
from deepgrid.lifecycle.states import JobStatus
from deepgrid.sbatch.file_addresses import PART_BYTES
from tests.sbatch.support import Bench, lint
from tests.services.files.support import FileGrid, content_of, filled, get, grid_job

ODD = {
    "data/a.txt": b"one\n",
    "data/deep/er/b c.bin": bytes(range(256)) * 40,
    "data/empty": b"",
    "data/line\nend \\ \u20ac": b"odd name",
    "data/Icon\r": b"as macOS makes it",
    "-": b"not standard input",
    "data/" + "n" * 200: b"long name",
    "data/large": os.urandom(PART_BYTES + 12345),
}
COPY = 'cp -r "$DEEPSQUARE_INPUT"/. "$DEEPSQUARE_OUTPUT"'


async def test_a_folder_goes_to_a_job_and_its_results_come_back(files: FileGrid, bench: Bench, tmp_path: Path) -> None:
    sent = filled(tmp_path / "laptop", ODD | {"params.json": b"{}"})
    (sent / "data/a.txt").chmod(0o755)
    number = await files.send(sent / "data", sent / "-", sent / "params.json")
    definition = grid_job(COPY + '; ln -s a.txt "$DEEPSQUARE_OUTPUT/data/link"; test -x "$DEEPSQUARE_INPUT/data/a.txt"',
                          {"grid": {"files": number}})  # fmt: skip
    await files.claimed(definition)
    done = await files.run(bench, definition)
    assert done.status == 0, done.output
    assert "Downloading input" in done.output
    got = tmp_path / "back"
    await files.download(got)
    steering = str.maketrans({"\n": "%0A", "\r": "%0D", "\\": "%5C"})
    expected = {name.translate(steering): content for name, content in content_of(sent).items()}
    assert content_of(got) == expected | {"data/link": b"one\n"}
    assert os.access(got / "data/a.txt", os.X_OK)


async def test_the_output_of_a_job_is_the_input_of_the_next(files: FileGrid, bench: Bench, tmp_path: Path) -> None:
    first = grid_job('echo 42 >"$DEEPSQUARE_OUTPUT/answer"')
    await files.claimed(first)
    assert (await files.run(bench, first)).status == 0
    second = grid_job('cat "$DEEPSQUARE_INPUT/answer"', {"job": 1}, output=False)
    await files.claimed(second, 2)
    done = await files.run(bench, second, 2)
    assert (done.status, done.output.splitlines()[-1]) == (0, "42")


async def test_a_failed_job_leaves_its_output(files: FileGrid, bench: Bench) -> None:
    definition = grid_job('echo part >"$DEEPSQUARE_OUTPUT/part"; exit 3')
    await files.claimed(definition)
    assert (await files.run(bench, definition)).status == 3
    assert await files.names() == ["part"]


async def test_an_empty_output_is_kept_as_such(files: FileGrid, bench: Bench) -> None:
    await files.claimed(grid_job(":"))
    assert (await files.run(bench, grid_job(":"))).status == 0
    assert await files.names() == []


async def test_a_job_without_room_says_so_and_fails(files: FileGrid, bench: Bench, tmp_path: Path) -> None:
    terms = tmp_path / "terms.json"
    terms.write_text('{"quota_gib": 0.000001}')
    assert files.services.context.files is not None
    files.services.context.files.policy._path = terms  # the operator writes it now
    definition = grid_job('head -c 5000 /dev/zero >"$DEEPSQUARE_OUTPUT/x"')
    await files.claimed(definition)
    done = await files.run(bench, definition)
    assert done.status == 74
    assert "the grid does not take the output: the files need 5,0" in done.output
    assert "bytes with their list, and 1,073 of your 1,073" in done.output
    with pytest.raises(NotFound):
        await files.names()


@pytest.mark.parametrize("source", [{"job": 12}, {"grid": {"files": "a" * 32}}], ids=["job", "grid"])
def test_scripts_with_files_of_the_grid_pass_the_checkers(source: object) -> None:
    lint(grid_job(":", source))


async def test_lists_are_continued_where_a_connection_broke(files: FileGrid, tmp_path: Path) -> None:
    """`curl --continue-at` failed at each further try, because the services sent all of the list again."""
    number = await files.send(filled(tmp_path / "laptop", ["a", "b"]))
    await files.claimed(grid_job(":", {"grid": {"files": number}}))
    address = (await files.addresses()).input
    for what in ("manifest", "sums"):
        whole = await get(f"{address}/{what}")
        rest = await get(f"{address}/{what}", Range="bytes=5-")
        assert (whole.status_code, rest.status_code) == (200, 206)
        assert rest.content == whole.content[5:]
        out = tmp_path / what
        out.write_bytes(whole.content[:5])
        curl = ["curl", "-sf", "--continue-at", "5", "-o", str(out), f"{address}/{what}"]
        await asyncio.to_thread(subprocess.run, curl, check=True, timeout=60)
        assert out.read_bytes() == whole.content


async def copied_unless_changed(files: FileGrid, bench: Bench, number: str, changed: bytes) -> None:
    """Check that a job takes the input, and refuses it once its content is `changed`."""
    definition = grid_job(COPY, {"grid": {"files": number}})
    await files.claimed(definition)
    done = await files.run(bench, definition)
    assert done.status == 0, done.output
    room = files.services.context.files
    assert room is not None
    await room.content(await room.require(number)).put(0, changed)
    broken = await files.run(bench, definition)
    assert (broken.status != 0, "the input has other checksums" in broken.output) == (True, True)


async def test_sums_do_not_depend_on_the_version_of_sha256sum(files: FileGrid, bench: Bench, tmp_path: Path) -> None:
    """`--check` knows the escape of a carriage return from coreutils 9 on; jobs on older nodes failed."""
    program = bench.root / "bin/sha256sum"
    program.write_text(f'#!/bin/sh\ncase "$*" in *--check*) exit 1 ;; esac\nexec {shutil.which("sha256sum")} "$@"\n')
    program.chmod(0o755)
    number = await files.send(filled(tmp_path / "laptop", {"Icon\r": b"as macOS makes it"}))
    await copied_unless_changed(files, bench, number, b"as macOS broke it")


async def test_sums_of_earlier_services_are_lines(files: FileGrid, bench: Bench, tmp_path: Path) -> None:
    """They ignore `zero=true`. A supervisor that is newer failed all jobs with an input, which their customers paid."""
    curl = bench.root / "bin/curl"
    asked = 'for one; do shift; set -- "$@" "$(printf %s "$one" | sed "s/?zero=true//")"; done'
    curl.write_text(f'#!/bin/bash\n{asked}\nexec {shutil.which("curl")} "$@" 0< <(sed "s/?zero=true//")\n')
    curl.chmod(0o755)
    number = await files.send(filled(tmp_path / "laptop", {"a": b"1", "a \\ b": b"2"}))
    await copied_unless_changed(files, bench, number, b"x3")


async def test_odd_names_cost_no_other_file(files: FileGrid, bench: Bench) -> None:
    """Two names that are not UTF-8 became one, and a file in too many folders was refused with all others."""
    make = """cd "$DEEPSQUARE_OUTPUT"; for name in a '\\376' '\\377'; do echo x >"$(printf "$name")"; done
for _ in $(seq 101); do mkdir d; cd d; done; echo deep >file; cd "$DEEPSQUARE_OUTPUT"
name=$(printf '%0250d' 0); for _ in $(seq 13); do mkdir $name; cd $name; done; echo long >file"""
    definition = grid_job(make)
    await files.claimed(definition)
    done = await files.run(bench, definition)
    why = "is left out of the output, because it is in more than 100 folders, or its path has more than 3000 bytes"
    assert (done.status, done.output.count(why)) == (74, 2), done.output
    assert await files.names() == ["a", "%FE", "%FF"]


async def test_a_job_whose_files_are_deleted_while_it_runs_leaves_its_output(files: FileGrid, bench: Bench) -> None:
    """The place of its output was deleted, so what it sent at its end was refused, and it failed."""
    definition = grid_job('echo 42 >"$DEEPSQUARE_OUTPUT/answer"')
    await files.claimed(definition)
    bench.grid_files = await files.addresses()
    await files.client().delete(1)
    assert (await asyncio.to_thread(bench.run, definition)).status == 0
    assert await files.names() == ["answer"]
    files.services.chain.put(1, files.services.chain.jobs_by_id[1].definition.definition_hash, JobStatus.FINISHED)
    await files.client().delete(1)
    with pytest.raises(NotFound):
        await files.names()
