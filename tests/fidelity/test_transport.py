"""Outputs with unreadable files and circular links, and inputs other than archives."""

from __future__ import annotations

import io
import json
import stat
import zipfile

import pytest

from deepgrid.workflow import parse
from tests.fidelity.conftest import RealSite
from tests.sbatch.bucket import Bucket, with_s5cmd
from tests.sbatch.store import Store
from tests.sbatch.support import Bench, run

OUT = " is left out of the output, because it "


def links_of(archive: zipfile.ZipFile) -> dict[str, str]:
    return {
        one.filename: archive.read(one).decode() for one in archive.infolist() if stat.S_ISLNK(one.external_attr >> 16)
    }


@pytest.mark.long
@pytest.mark.situation(
    "output", "a file and a folder of mode 000 among good files", "the rest is sent; the log names them; status 74"
)
@pytest.mark.situation("output", "a pipe and a UNIX socket in the output", "they are skipped and named")
@pytest.mark.situation("output", "`ln -s . current`", "`output.zip` has a link, and no file twice")
@pytest.mark.situation(
    "output", "links to files and folders outside, to nothing, to themselves, to `/dev/zero`",
    "a file outside is sent in place of its link; the others are left out and named",
)  # fmt: skip
async def test_what_can_be_read_is_sent_and_the_rest_is_named(site: RealSite, store: Store) -> None:
    bind = "import socket; socket.socket(socket.AF_UNIX).bind('output/socket')"
    text = f"""
output: {{http: {{url: "{store.url}/out"}}}}
steps:
  - run:
      command: |
        echo word >input/file; mkfifo output/pipe; python3 -c "{bind}"; cd output
        mkdir folder locked; echo good >folder/good
        echo secret | tee unreadable >locked/inside; chmod 0 unreadable locked
        ln -s . current; ln -s ../folder folder/up; ln -s "$DEEPSQUARE_INPUT/file" outside
        ln -s /usr usr; ln -s none none; ln -s self self; ln -s /dev/zero zero
"""
    status, lines = await site.run(text)
    left = [line.removeprefix("deepgrid: ") for line in lines if OUT in line]
    assert (status, sorted(left)) == (
        74,
        [
            f"locked{OUT}cannot be read",
            f"none{OUT}is a link to nothing that can be read",
            f"pipe{OUT}is a pipe, a socket or a device",
            f"self{OUT}is a link to nothing that can be read",
            f"socket{OUT}is a pipe, a socket or a device",
            f"unreadable{OUT}cannot be read",
            f"usr{OUT}is a link to a folder outside",
            f"zero{OUT}is a link to nothing that can be read",
        ],
    )
    assert lines[-1] == "deepgrid: the output could not be sent as a whole"
    with zipfile.ZipFile(io.BytesIO(store.received["/out"])) as archive:
        assert links_of(archive) == {"output/current": ".", "output/folder/up": "../folder"}
        files = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    assert files.items() >= {"output/folder/good": b"good\n", "output/outside": b"word\n"}.items()
    assert len(files) == 4


IN_CONTAINER = """
big=$STORAGE_PATH/big; mkdir $big; echo word >$big/file; echo tmp >$DEEPSQUARE_TMP/kept
cd "$DEEPSQUARE_OUTPUT"; mkdir run1; echo 1 >run1/x
ln -s /deepsquare/big/file file; ln -s /deepsquare/tmp/kept kept; ln -s /deepsquare/output/file chain
ln -s /deepsquare/big big; ln -s /deepsquare/output/run1 latest; ln -s "$PWD/run1" first; ln -s /deepsquare/none none
ln -s file behind
"""


@pytest.mark.situation(
    "output",
    "absolute links that a step made in a container, where the output is `/deepsquare/output`",
    "a file is sent in place of its link; links to folders are named, links in the output separately",
)
@pytest.mark.parametrize("kind", ["http", "s3"])
def test_links_that_were_made_in_a_container(bench: Bench, store: Store, bucket: Bucket, kind: str) -> None:
    with_s5cmd(bench)
    # The second step makes it a job with containers. It never runs, so no program for them is needed.
    held = {"if": "-e /none", "run": {"command": ":", "container": {"image": "busybox"}}}
    where = {"http": {"url": store.url + "/out"}} if kind == "http" else bucket.at("/out")
    resources = {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 1, "gpus": 0}
    steps = [{"run": {"command": IN_CONTAINER}}, held]
    outcome = bench.run(parse(json.dumps({"resources": resources, "output": where, "steps": steps}), "job").model)
    assert outcome.status == 0, outcome.output
    if kind == "http":
        with zipfile.ZipFile(io.BytesIO(store.received["/out"])) as archive:
            files = {one.removeprefix("output/"): archive.read(one) for one in archive.namelist() if one[-1] != "/"}
    else:
        files = {name.removeprefix("out/"): content for name, content in bucket.files().items()}
    assert files == {"file": b"word\n", "kept": b"tmp\n", "chain": b"word\n", "run1/x": b"1\n", "behind": b"word\n"}
    inner, outer = {
        "http": ("is a link to a folder of the output by its absolute path", "is a link to a folder outside"),
        "s3": ("is a link to a folder",) * 2,
    }[kind]
    assert {line.removeprefix("deepgrid: ") for line in outcome.output.splitlines() if OUT in line} == {
        f"big{OUT}{outer}", f"latest{OUT}{inner}", f"first{OUT}{inner}",
        f"none{OUT}is a link to nothing that can be read",
    }  # fmt: skip


@pytest.mark.situation(
    "output", "links in an output to a bucket", "a link to a file becomes an object; a link to a folder is named"
)
def test_a_bucket_gets_files_in_place_of_links(bench: Bench, bucket: Bucket) -> None:
    with_s5cmd(bench)
    make = 'cd "$DEEPSQUARE_OUTPUT"; echo word >file; ln -s file latest; ln -s . current; mkfifo pipe'
    outcome = run(bench, {"output": bucket.at("/out")}, make)
    assert (outcome.status, bucket.files()) == (0, {"out/file": b"word\n", "out/latest": b"word\n"})
    named = {line for line in outcome.output.splitlines() if OUT in line}
    assert named == {
        f"deepgrid: current{OUT}is a link to a folder",
        f"deepgrid: pipe{OUT}is a pipe, a socket or a device",
    }


@pytest.mark.situation(
    "output", "a line end in the name of a file, to a bucket", "the others are sent; it is named; 74"
)
def test_a_bucket_gets_the_files_that_it_can_name(bench: Bench, bucket: Bucket) -> None:
    with_s5cmd(bench)
    make = """cd "$DEEPSQUARE_OUTPUT"; echo word >file; echo x >"$(printf 'a\\nb')" """
    outcome = run(bench, {"output": bucket.at("/out")}, make)
    assert (outcome.status, bucket.files()) == (74, {"out/file": b"word\n"})
    assert f"deepgrid: $'a\\nb'{OUT}has a line end in its name" in outcome.output


@pytest.mark.parametrize(
    ("make", "status", "sent", "said"),
    [
        pytest.param(
            "ln -s results output", 0, b"word\n", "",
            marks=pytest.mark.situation("output", "the output folder becomes a link to another folder", "that is sent"),
        ),
        pytest.param(
            "echo lost >output", 74, None, "the output folder was replaced by something that is no folder",
            marks=pytest.mark.situation("output", "the output folder becomes a file", "the log says so; 74"),
        ),
        pytest.param(
            ":", 0, b"PK", "the output folder was removed, so the output is empty",
            marks=pytest.mark.situation("output", "the output folder is removed", "the log says so"),
        ),
    ],
)  # fmt: skip
def test_an_output_folder_that_is_replaced(
    bench: Bench, store: Store, make: str, status: int, sent: bytes | None, said: str
) -> None:
    head: dict[str, object] = {"output": {"http": {"url": store.url + "/out"}}}
    outcome = run(bench, head, f"rm -r output; mkdir results; echo word >results/file; {make}")
    received = store.received.get("/out")
    assert (outcome.status, received and received[: len(sent or b"")]) == (status, sent)
    assert said in outcome.output
    assert "unbound" not in outcome.output


@pytest.mark.situation(
    "output", "a sparse file of 2 TiB", "the output is not sent; the log has its size and the limit; 74"
)
def test_an_output_beyond_the_limit_costs_no_time(bench: Bench, store: Store) -> None:
    head: dict[str, object] = {"output": {"http": {"url": store.url + "/out"}}}
    outcome = run(bench, head, 'truncate -s 2T "$DEEPSQUARE_OUTPUT/sparse"')
    assert (outcome.status, store.received) == (74, {})
    assert f"the output has {2 * 2**40} bytes; at most {2**40} are sent" in outcome.output


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(
            b"", "is an empty file",
            marks=pytest.mark.situation("input", "an empty input, `empty.csv?download=1`", "the log says that"),
        ),
        pytest.param(
            b"a,b\n", "is not an archive, so it stays as it is",
            marks=pytest.mark.situation("input", "an input that is not an archive", "it stays, and the log says so"),
        ),
        pytest.param(
            b"\x1f", "is not an archive, so it stays as it is",
            marks=pytest.mark.situation("input", "an input of one byte, as in archives", "it stays as it is"),
        ),
    ],
)  # fmt: skip
def test_inputs_that_are_no_archives_are_taken_calmly(bench: Bench, store: Store, content: bytes, said: str) -> None:
    store.files["/empty.csv?download=1"] = content
    head: dict[str, object] = {"input": {"http": {"url": store.url + "/empty.csv?download=1"}}}
    outcome = run(bench, head, 'wc -c <"$DEEPSQUARE_INPUT/empty.csv"')
    assert outcome.status == 0
    assert outcome.output.splitlines()[1] == f"deepgrid: empty.csv {said}"
    assert outcome.output.splitlines()[-1] == str(len(content))


# A disk without hard links to some files, and a disk that is full.
LINKS_FAIL = """#!/bin/sh
/usr/bin/cp "$@"
for word; do case $word in */.sent/output) to=$word ;; esac; done
case $1 in -al) rm "$to/good" || exit 0; false ;; esac
"""
IS_FULL = """#!/bin/sh
/usr/bin/cp "$@"
for word; do case $word in */.sent/output) to=$word ;; esac; done
rm "$to/folder/b c" && echo >"$to/folder/b c"
false
"""


@pytest.mark.situation(
    "output",
    "a file that cannot be linked or copied, as on a full disk",
    "the log names it, the rest is sent; status 74",
)
def test_no_part_of_a_file_is_sent_as_the_file(bench: Bench, store: Store) -> None:
    make = """cd "$DEEPSQUARE_OUTPUT"; mkdir folder; echo good >good; echo third >third; echo more >'folder/b c'"""
    short = {"good": b"good\n", "third": b"third\n"}
    program = bench.root / "bin" / "cp"
    for text, status, expected in ((LINKS_FAIL, 0, {**short, "folder/b c": b"more\n"}), (IS_FULL, 74, short)):
        program.write_text(text)
        program.chmod(0o755)
        outcome = run(bench, {"output": {"http": {"url": store.url + "/out"}}}, make)
        assert outcome.status == status, outcome.output
        with zipfile.ZipFile(io.BytesIO(store.received["/out"])) as archive:
            files = {name.removeprefix("output/"): archive.read(name) for name in archive.namelist() if name[-1] != "/"}
        assert files == expected
        assert (f"folder/b c{OUT}could not be copied as a whole" in outcome.output) == bool(status)
