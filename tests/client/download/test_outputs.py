"""Outputs in a bucket and at a web address."""

from __future__ import annotations

import io
import logging
import subprocess
import zipfile
from pathlib import Path

import pytest

from deepgrid.client import AccessDenied, ClientSettings, InputError, NoOutput, ServiceError
from deepgrid.client.download import download_output
from deepgrid.workflow.models.transport import TransportData
from tests.client.download.support import QUICK, FileServer
from tests.sbatch.bucket import KEYS, NAME, Bucket

SECRET = KEYS["secretAccessKey"]


def output(bucket: Bucket, path: str = "/out", **options: str) -> TransportData:
    return TransportData.model_validate(bucket.at(path, **options))


def at(url: str) -> TransportData:
    return TransportData.model_validate({"http": {"url": url}})


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


# -- buckets -------------------------------------------------------------------------------------


async def test_all_files_of_the_folder_come_with_their_names(bucket: Bucket, tmp_path: Path) -> None:
    files = {"a.png": b"a" * 3_000_000, "deep/b c.png": b"", "deep/é%?#&+=.txt": b"t", "-x": b"x"}
    for name, content in files.items():
        bucket.put(f"out/{name}", content)
    bucket.put("out/empty/", b"")
    bucket.put("other/c", b"c")
    bucket.put("outer", b"d")
    paths = await download_output(output(bucket), tmp_path / "to", None, QUICK)
    assert contents(tmp_path / "to") == files
    assert sorted(paths) == sorted(tmp_path / "to" / name for name in files)


async def test_only_some_are_fetched_and_none_twice(bucket: Bucket, tmp_path: Path) -> None:
    for name in ("1.png", "deep/2.png", "3.txt"):
        bucket.put(f"out/{name}", name.encode())
    first = await download_output(output(bucket), tmp_path, "*.png", QUICK)
    assert set(contents(tmp_path)) == {"1.png", "deep/2.png"}
    before = [path.stat().st_ino for path in first]
    again = await download_output(output(bucket), tmp_path, ["*.png", "3*"], QUICK)
    assert set(contents(tmp_path)) == {"1.png", "deep/2.png", "3.txt"}
    assert [path.stat().st_ino for path in again if path in first] == before
    bucket.put("out/1.png", b"another")
    await download_output(output(bucket), tmp_path, "1.png", QUICK)
    assert (tmp_path / "1.png").read_bytes() == b"another"
    assert await download_output(output(bucket), tmp_path, "*.gif", QUICK) == []


async def test_more_files_than_are_fetched_at_once_keep_their_order(bucket: Bucket, tmp_path: Path) -> None:
    names = [f"{number:02}" for number in range(20)]
    for name in names:
        bucket.put(f"out/{name}", name.encode())
    paths = await download_output(output(bucket), tmp_path, "1*", ClientSettings(downloads_at_once=3))
    assert [path.read_bytes().decode() for path in paths] == names[10:]


async def test_an_object_in_parts_has_a_tag_that_is_no_checksum(bucket: Bucket, tmp_path: Path) -> None:
    client = bucket._client
    upload = client.create_multipart_upload(Bucket=NAME, Key="out/big")["UploadId"]
    parts = []
    for number, content in ((1, b"a" * 5 * 1024 * 1024), (2, b"b")):
        sent = client.upload_part(Bucket=NAME, Key="out/big", PartNumber=number, UploadId=upload, Body=content)
        parts.append({"PartNumber": number, "ETag": sent["ETag"]})
    client.complete_multipart_upload(Bucket=NAME, Key="out/big", UploadId=upload, MultipartUpload={"Parts": parts})
    (path,) = await download_output(output(bucket), tmp_path, None, QUICK)
    assert path.stat().st_size == 5 * 1024 * 1024 + 1


async def test_hostile_keys_stay_in_the_folder(bucket: Bucket, server: FileServer, tmp_path: Path) -> None:
    keys = ["../up", "a/../../b", "/abs", "line\nend", "\u202eright"]
    server.list_bucket(NAME, [f"out/{key}" for key in keys])
    to = tmp_path / "one" / "to"
    paths = await download_output(output(bucket, endpointUrl=server.url), to, None, QUICK)
    assert {path.read_bytes().decode() for path in paths} == {f"out/{key}" for key in keys}
    assert set(contents(to)) == {"%2E%2E/up", "a/%2E%2E/%2E%2E/b", "abs", "line%0Aend", "%E2%80%AEright"}
    assert set(contents(tmp_path)) == {f"one/to/{name}" for name in contents(to)}
    server.list_bucket(NAME, ["out/abs", "out//abs"])
    with pytest.raises(InputError, match="Two files of the output would both be 'abs'"):
        await download_output(output(bucket, endpointUrl=server.url), to, None, QUICK)


async def test_an_empty_folder_and_a_missing_bucket_are_no_output(bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(NoOutput, match="holds no output"):
        await download_output(output(bucket), tmp_path, None, QUICK)
    with pytest.raises(NoOutput, match="does not exist"):
        await download_output(output(bucket, bucketUrl="s3://nowhere"), tmp_path, None, QUICK)
    for nothing in (None, TransportData()):
        with pytest.raises(NoOutput, match="names no output") as caught:
            await download_output(nothing, tmp_path, None, QUICK)
        assert caught.value.next_step


async def test_the_secret_is_in_no_error_and_no_log(
    bucket: Bucket,
    server: FileServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("AWS_PROFILE", "of-somebody-else")
    bucket.put("out/a", b"a")
    await download_output(output(bucket), tmp_path, None, QUICK)
    server.statuses = [403]
    with pytest.raises(AccessDenied, match="refuses access") as refused:
        await download_output(output(bucket, endpointUrl=server.url), tmp_path, None, QUICK)
    impatient = ClientSettings(patience_s=0)
    with pytest.raises(ServiceError, match="does not answer") as away:
        await download_output(output(bucket, endpointUrl="http://127.0.0.1:1"), tmp_path, None, impatient)
    assert away.value.transient
    for error in (refused.value, away.value):
        assert error.__cause__ is None
        assert SECRET not in f"{error!r} {error}"
    assert SECRET not in repr(output(bucket))
    assert SECRET not in caplog.text


# -- web addresses -------------------------------------------------------------------------------


def zipped(files: dict[str, bytes], folder: Path) -> bytes:
    """Return an archive as a job makes it, by the real `zip`."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    subprocess.run(["zip", "-qr", folder / "output.zip", "."], cwd=folder, check=True)
    return (folder / "output.zip").read_bytes()


def entry(name: str, content: bytes) -> bytes:
    """Return an archive with one entry of this name."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        info = zipfile.ZipInfo("#" * len(name))
        info.extra = b"ux\x0b\x00" + bytes(11)
        archive.writestr(info, content)
    return target.getvalue().replace(b"#" * len(name), name.encode())


async def test_several_files_at_an_address_are_unpacked(server: FileServer, tmp_path: Path) -> None:
    server.files["/put?sig=1"] = zipped({"1.png": b"1" * 100_000, "deep/2.png": b"2", "3.txt": b"3"}, tmp_path / "job")
    server.cuts = [None, 100]
    paths = await download_output(at(f"{server.url}/put?sig=1"), tmp_path / "to", "*.png", QUICK)
    assert contents(tmp_path / "to") == {"1.png": b"1" * 100_000, "deep/2.png": b"2"}
    assert sorted(paths) == [tmp_path / "to" / "1.png", tmp_path / "to" / "deep" / "2.png"]


async def test_one_file_at_an_address_keeps_its_name_and_other_archives_stay_whole(
    server: FileServer, tmp_path: Path
) -> None:
    server.files["/up/result%20.png"] = b"png"
    server.files["/"] = server.files["/weights.npz"] = entry("a.npy", b"1").replace(b"ux\x0b", b"zz\x0b")
    assert await download_output(at(f"{server.url}/up/result%20.png"), tmp_path, "*.gif", QUICK) == [
        tmp_path / "result .png"
    ]
    (weights,) = await download_output(at(f"{server.url}/weights.npz"), tmp_path, None, QUICK)
    assert (weights.name, weights.read_bytes()) == ("weights.npz", server.files["/weights.npz"])


async def test_an_address_of_a_folder_means_the_archive_in_it(server: FileServer, tmp_path: Path) -> None:
    server.files["/in/output.zip"] = zipped({"a": b"1", "b": b"2"}, tmp_path / "job")
    await download_output(at(f"{server.url}/in/"), tmp_path / "to", None, QUICK)
    assert contents(tmp_path / "to") == {"a": b"1", "b": b"2"}
    with pytest.raises(NoOutput, match="has no file") as caught:
        await download_output(at(server.url), tmp_path, None, QUICK)
    assert "log" in caught.value.next_step


@pytest.mark.parametrize("name", ["../../up", "/abs/up", "a/../../up"])
async def test_entries_of_an_archive_stay_in_the_folder(server: FileServer, tmp_path: Path, name: str) -> None:
    server.files["/x"] = entry(name, b"evil")
    (path,) = await download_output(at(f"{server.url}/x"), tmp_path / "a" / "to", None, QUICK)
    assert path.read_bytes() == b"evil"
    assert path.resolve().is_relative_to(tmp_path / "a" / "to")
    assert len(contents(tmp_path)) == 1


async def test_a_damaged_archive_is_an_error_and_leaves_no_file(server: FileServer, tmp_path: Path) -> None:
    server.files["/x"] = entry("a", b"content").replace(b"content", b"CONTENT")
    with pytest.raises(ServiceError, match="is damaged") as caught:
        await download_output(at(f"{server.url}/x"), tmp_path, None, QUICK)
    assert not caught.value.transient
    assert set(contents(tmp_path)) == {"x"}  # the archive itself
