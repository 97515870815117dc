"""Input and output over S3: the real `s5cmd` against a real server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.sbatch.bucket import KEYS, Bucket, with_s5cmd
from tests.sbatch.support import Bench, run
from tests.waiting import wait_until


@pytest.fixture
def bench(bench: Bench) -> Bench:
    with_s5cmd(bench)
    return bench


def test_input_is_every_object_that_begins_with_the_path(bench: Bench, bucket: Bucket) -> None:
    for key in ("in/a", "in/deep/b c", "inner", "other"):
        bucket.put(key, key.encode())
    outcome = run(bench, {"input": bucket.at("/in")}, 'cd "$DEEPSQUARE_INPUT"; find . -type f | LC_ALL=C sort')
    assert outcome.status == 0
    assert outcome.output.splitlines()[-3:] == ["./in/a", "./in/deep/b c", "./inner"]
    outcome = run(bench, {"input": bucket.at("/in/")}, 'cat "$DEEPSQUARE_INPUT/a"')
    assert (outcome.status, outcome.output.splitlines()[-1]) == (0, "in/a")


def test_a_missing_input_fails_the_job_before_its_steps(bench: Bench, bucket: Bucket) -> None:
    outcome = run(bench, {"input": bucket.at("/none/"), "output": bucket.at("/out")}, "echo never")
    assert (outcome.status, outcome.calls, bucket.files()) == (1, [], {})


def test_keys_are_no_arguments_and_do_not_reach_the_steps(bench: Bench, bucket: Bucket) -> None:
    bucket.put("in/a", b"word")
    transport = {"input": bucket.at("/in/"), "output": bucket.at("/out")}
    outcome = run(bench, transport, 'cp "$DEEPSQUARE_INPUT/a" "$DEEPSQUARE_OUTPUT"')
    assert (outcome.status, bucket.files()) == (0, {"in/a": b"word", "out/a": b"word"})
    assert KEYS["secretAccessKey"] not in (bench.root / "s5cmd").read_text()
    assert not [name for name in outcome.calls[0].env if name.startswith((b"AWS", b"S3_"))]


@pytest.mark.parametrize("clean", [True, False])
def test_output_is_synced_after_a_failure_too(bench: Bench, bucket: Bucket, clean: bool) -> None:
    bucket.put("out/old", b"old")
    make = 'mkdir "$DEEPSQUARE_OUTPUT/d"; echo word >"$DEEPSQUARE_OUTPUT/d/-x y"; exit 3'
    outcome = run(bench, {"output": bucket.at("/out", deleteSync=clean)}, make)
    assert outcome.status == 3
    assert bucket.files() == {"out/d/-x y": b"word\n", "out/old": b"old"}
    assert ("nothing is deleted in the bucket" in outcome.output) == clean


def test_what_the_output_has_not_is_deleted_after_a_whole_success_only(bench: Bench, bucket: Bucket) -> None:
    bucket.put("out/old", b"old")
    head = {"output": bucket.at("/out", deleteSync=True), "continuousOutputSync": True}
    odd = run(bench, head, """touch "$DEEPSQUARE_OUTPUT/$(printf 'a\\nb')" """)
    assert (odd.status, bucket.files()) == (74, {"out/old": b"old"})
    seen = bench.root / "seen"
    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(
            run, bench, head, f'echo 1 >"$DEEPSQUARE_OUTPUT/new"; until [ -e {seen} ]; do sleep 0.05; done'
        )
        wait_until(lambda: outcome.done() or "out/new" in bucket.files())
        assert "out/old" in bucket.files()
        seen.touch()
    assert (outcome.result().status, bucket.files()) == (0, {"out/new": b"1\n"})


def test_an_output_that_cannot_be_sent_fails_a_successful_job(bench: Bench, bucket: Bucket) -> None:
    nowhere = bucket.at("/out", bucketUrl="s3://nowhere")
    outcome = run(bench, {"output": nowhere}, 'echo x >"$DEEPSQUARE_OUTPUT/x"')
    assert outcome.status == 74
    assert "deepgrid: the output could not be sent" in outcome.output


def test_continuous_sync_sends_output_while_a_step_runs_and_again_at_the_end(bench: Bench, bucket: Bucket) -> None:
    head = {"output": bucket.at("/out"), "continuousOutputSync": True}
    seen = bench.root / "seen"
    command = f"""echo 1 >"$DEEPSQUARE_OUTPUT/first"; until [ -e {seen} ]; do sleep 0.05; done
        echo 2 >"$DEEPSQUARE_OUTPUT/last"; exit 3"""
    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(run, bench, head, command)
        wait_until(lambda: outcome.done() or "out/first" in bucket.files())
        seen.touch()
    assert (outcome.result().status, bucket.files()) == (3, {"out/first": b"1\n", "out/last": b"2\n"})
