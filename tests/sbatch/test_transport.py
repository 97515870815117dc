"""Input and output over HTTP, with a real server."""

from __future__ import annotations

import gzip
import io
import socket
import tarfile
import zipfile
from urllib.parse import quote

import pytest

from tests.sbatch.store import SHOWN, Store
from tests.sbatch.support import Bench, job_with, lint, run

HTTP = {"http": {"url": "http://127.0.0.1:1/x"}}
S3 = {"s3": {"region": "r", "bucketUrl": "s3://b", "path": "/p", "accessKeyId": "a", "secretAccessKey": "s",
             "endpointUrl": "http://127.0.0.1:1", "deleteSync": True}}  # fmt: skip


@pytest.mark.parametrize("where", [HTTP, S3], ids=["http", "s3"])
def test_scripts_with_transfers_pass_the_checkers(where: dict[str, object]) -> None:
    lint(job_with({"input": where, "output": where, "inputMode": 511, "continuousOutputSync": True}, ":"))


def tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:bz2") as archive:
        member = tarfile.TarInfo("folder/inside")
        member.size = 4
        archive.addfile(member, io.BytesIO(b"word"))
    return buffer.getvalue()


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("folder/inside", "word")
    return buffer.getvalue()


@pytest.mark.recorder("many of a kind", deep=True)
@pytest.mark.parametrize(
    ("path", "content", "result"),
    [
        ("/some.tar.bz2", tar(), "folder/inside"),
        ("/some.zip", zipped(), "folder/inside"),
        ("/some.txt.gz", gzip.compress(b"word", mtime=0), "some.txt"),
        ("/noending", gzip.compress(b"word", mtime=0), "noending.out"),
        ("/plain.txt", b"word", "plain.txt"),
        ("/", b"word", "input"),
        ("/..", b"word", "input"),
        ("/a%20b.txt?token=[1-2]", b"word", "a b.txt"),
        ("/a%2F..%2fb%zz?x=/y", b"word", "b%zz"),
    ],
)
def test_input_over_http_is_fetched_and_unpacked(
    bench: Bench, store: Store, path: str, content: bytes, result: str
) -> None:
    store.files[{"/..": "/"}.get(path, path)] = content
    outcome = run(bench, {"input": {"http": {"url": store.url + path}}}, f'cat "$DEEPSQUARE_INPUT/{result}"')
    assert (outcome.status, outcome.output.splitlines()[-1]) == (0, "word")
    assert "Input contains:" in outcome.output
    assert f"./{result}" in outcome.output
    assert ("is not an archive" in outcome.output) == (content == b"word")
    assert outcome.output.splitlines()[0] == "Downloading input"


@pytest.mark.recorder("many of a kind", deep=True)
@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ('attachment; filename="my data.txt"', "my data.txt"),
        ("attachment; filename=plain.txt", "plain.txt"),
        ("attachment; filename=plain.txt; filename*=UTF-8''%e2%82%ac%20rates.txt", "\u20ac rates.txt"),
        (r'attachment; filename="../..\\/evil\".txt"', 'evil".txt'),
        ("attachment; filename=..", "data.bin"),
        ("inline", "data.bin"),
    ],
)
def test_an_input_has_the_name_that_a_browser_would_save(
    bench: Bench, store: Store, disposition: str, name: str
) -> None:
    store.files["/data.bin?x"], store.headers = b"word", {"Content-Disposition": disposition}
    outcome = run(bench, {"input": {"http": {"url": store.url + "/data.bin?x"}}}, 'cd "$DEEPSQUARE_INPUT"; printf %s *')
    assert (outcome.status, outcome.output.splitlines()[-1]) == (0, name)


def test_an_archive_is_gone_once_it_is_unpacked(bench: Bench, store: Store) -> None:
    """This holds even if a file in the archive has its name. A broken archive stays."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("some.zip", "word")
    for content, found in ((tar(), "folder"), (zipped(), "folder"), (gzip.compress(b"word"), "some.zip.out")):
        store.files["/some.zip"] = content
        outcome = run(bench, {"input": {"http": {"url": store.url + "/some.zip"}}}, 'echo; ls "$DEEPSQUARE_INPUT"')
        assert (outcome.status, outcome.output.splitlines()[-2:]) == (0, ["", found])
    store.files["/some.zip"] = buffer.getvalue()
    outcome = run(bench, {"input": {"http": {"url": store.url + "/some.zip"}}}, 'cat "$DEEPSQUARE_INPUT/some.zip"')
    assert (outcome.status, outcome.output.splitlines()[-1]) == (0, "word")
    store.files["/some.zip"] = gzip.compress(b"word" * 1000)[:20]
    outcome = run(bench, {"input": {"http": {"url": store.url + "/some.zip"}}}, 'wc -c <"$DEEPSQUARE_INPUT/some.zip"')
    assert (outcome.status, outcome.output.splitlines()[-1]) == (0, "20")
    assert "deepgrid: some.zip could not be unpacked" in outcome.output


def test_a_missing_input_fails_the_job_before_its_steps(bench: Bench, store: Store) -> None:
    output = {"http": {"url": store.url + "/out"}}
    outcome = run(bench, {"input": {"http": {"url": store.url + "/none"}}, "output": output}, "echo never")
    assert (outcome.status, outcome.calls, store.received) == (22, [], {})


@pytest.mark.recorder("many of a kind", deep=True)
@pytest.mark.parametrize(
    ("mode", "rights"),
    [
        (0o777, ["777", "777"]), (0o700, ["700", "700"]), (None, ["700", "700"]), (0, ["0", "0"]),
        (0o400, ["500", "400"]), (0o600, ["700", "600"]), (0o644, ["755", "644"]),
    ],
)  # fmt: skip
def test_input_gets_the_requested_mode(bench: Bench, store: Store, mode: int | None, rights: list[str]) -> None:
    """A folder gets x with each r. Without that, the job could not read its files."""
    store.files["/a.tar"] = tar()
    head = {"input": {"http": {"url": store.url + "/a.tar"}}, "inputMode": mode}
    outcome = run(bench, head, 'stat -c %a "$DEEPSQUARE_INPUT" "$DEEPSQUARE_INPUT/folder/inside"')
    assert (outcome.status, outcome.output.splitlines()[-2:]) == (0, rights)


def test_a_job_does_not_start_on_a_part_of_its_input(bench: Bench, store: Store) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for number in range(200):
            entry = tarfile.TarInfo(f"{number}")
            entry.size = 2000
            archive.addfile(entry, io.BytesIO(bytes(entry.size)))
    store.files["/some.tar"] = buffer.getvalue()[: 2560 * 39 + 1000]
    outcome = run(bench, {"input": {"http": {"url": store.url + "/some.tar"}}}, "echo never")
    assert (outcome.status, outcome.calls) == (1, [])
    assert "deepgrid: some.tar could not be unpacked as a whole" in outcome.output
    assert "tar: Unexpected EOF" in outcome.output


def test_a_single_output_file_is_sent_unchanged_and_the_reply_is_shown(bench: Bench, store: Store) -> None:
    outcome = run(
        bench, {"output": {"http": {"url": store.url + "/out?t=1"}}}, 'echo result >"$DEEPSQUARE_OUTPUT/-x y"'
    )
    assert (outcome.status, store.received) == (0, {"/out?t=1": b"result\n"})
    assert outcome.output.splitlines()[:2] == ["Output contains:", "./-x y"]
    assert SHOWN in outcome.output.splitlines()


def test_several_output_files_are_sent_as_a_zip_file_after_a_failure_too(bench: Bench, store: Store) -> None:
    make = 'cd "$DEEPSQUARE_OUTPUT"; mkdir -p d; echo 1 >a; echo 2 >d/b; exit 5'
    outcome = run(bench, {"output": {"http": {"url": store.url + "/out"}}}, make)
    assert outcome.status == 5
    with zipfile.ZipFile(io.BytesIO(store.received["/out"])) as archive:
        assert {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")} == {
            "output/a": b"1\n",
            "output/d/b": b"2\n",
        }


def test_an_empty_output_is_sent_as_an_empty_archive(bench: Bench, store: Store) -> None:
    outcome = run(bench, {"output": {"http": {"url": store.url + "/out"}}}, ":")
    assert outcome.status == 0
    with zipfile.ZipFile(io.BytesIO(store.received["/out"])) as archive:
        assert archive.namelist() == ["output/"]


@pytest.mark.parametrize(("step", "status"), [(":", 74), ("exit 3", 3)])
def test_a_refused_output_fails_a_successful_job(bench: Bench, store: Store, step: str, status: int) -> None:
    outcome = run(
        bench, {"output": {"http": {"url": store.url + "/closed"}}}, f'echo x >"$DEEPSQUARE_OUTPUT/x"; {step}'
    )
    assert outcome.status == status
    assert "deepgrid: the output could not be sent" in outcome.output


def test_urls_are_neither_arguments_nor_variables(bench: Bench, store: Store) -> None:
    """Presigned URLs are secrets, and every user of a node may read arguments."""
    store.files["/in?secret"] = b"word"
    curl = bench.root / "bin" / "curl"
    curl.write_text(f'#!/bin/sh\necho "$@" >>{bench.root}/arguments\nexec /usr/bin/curl "$@"\n')
    curl.chmod(0o755)
    urls = {"input": {"http": {"url": store.url + "/in?secret"}}, "output": {"http": {"url": store.url + "/o?secret"}}}
    outcome = run(bench, urls, 'echo x >"$DEEPSQUARE_OUTPUT/x"')
    assert (outcome.status, store.received) == (0, {"/o?secret": b"x\n"})
    assert "secret" not in (bench.root / "arguments").read_text()
    assert not any(b"secret" in value for value in outcome.calls[0].env.values())


def test_continuous_sync_over_http_gives_a_warning(bench: Bench, store: Store) -> None:
    head = {"output": {"http": {"url": store.url + "/out"}}, "continuousOutputSync": True}
    outcome = run(bench, head, 'echo x >"$DEEPSQUARE_OUTPUT/x"')
    assert (outcome.status, store.received) == (0, {"/out": b"x\n"})
    assert "continuousOutputSync needs an S3 output" in outcome.output


@pytest.mark.situation(
    "input",
    "a zip file with a warning, as Windows makes them, with `\\` in names",
    "it is unpacked, and unzip's warning stays",
)
def test_an_archive_with_a_warning_is_unpacked(bench: Bench, store: Store) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        entry = zipfile.ZipInfo("folder\\inside")
        entry.create_system = 0  # Windows
        archive.writestr(entry, "word")
    store.files["/some.zip"] = buffer.getvalue()
    head: dict[str, object] = {"input": {"http": {"url": store.url + "/some.zip"}}}
    outcome = run(bench, head, 'cd "$DEEPSQUARE_INPUT" && ls && cat folder/inside')
    assert (outcome.status, outcome.output.splitlines()[-2:]) == (0, ["folder", "word"])
    assert "could not be unpacked" not in outcome.output


LONG = "日本" * 50  # 100 characters, 300 bytes


@pytest.mark.situation("input", "an input with a name of 100 letters of 3 bytes", "it gets a shorter name")
@pytest.mark.parametrize("from_server", [True, False])
def test_an_input_with_a_long_name_outside_ascii_gets_another(bench: Bench, store: Store, from_server: bool) -> None:
    path = "/data.txt" if from_server else f"/{quote(LONG)}"
    name = "data.txt" if from_server else "日本" * 33
    store.files[path] = b"word"
    store.headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(LONG)}"} if from_server else {}
    definition = job_with({"input": {"http": {"url": store.url + path}}}, 'cd "$DEEPSQUARE_INPUT"; printf %s *')
    outcome = bench.run(definition, LC_ALL="C.UTF-8")
    assert (outcome.status, outcome.output.splitlines()[-1]) == (0, name)


# The real curl, with less patience.
CURL = """#!/bin/bash
words=("$@")
for i in "${!words[@]}"; do
  case ${words[i]} in --speed-time) words[i + 1]=1 ;; --retry) words[i + 1]=0 ;; esac
done
exec /usr/bin/curl "${words[@]}"
"""


@pytest.mark.deep  # one second without a byte
@pytest.mark.recorder("replaces curl")
@pytest.mark.situation(
    "input", "a server takes a request and sends nothing", "the job fails after 5 min without a byte"
)
def test_a_silent_server_does_not_hold_the_job(bench: Bench) -> None:
    (bench.root / "bin" / "curl").write_text(CURL)
    (bench.root / "bin" / "curl").chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/data"
        outcome = run(bench, {"input": {"http": {"url": url}}}, "echo never")
    assert (outcome.status, outcome.calls) == (28, [])
    assert "curl: (28) Operation too slow" in outcome.output
