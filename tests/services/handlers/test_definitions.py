"""Only the provider that runs its uploader's job gets a definition."""

from __future__ import annotations

import logging
from pathlib import Path

import httpx
import pytest
from coincurve import PrivateKey

from deepgrid.errors import AccessDenied, InputError, NotFound, ServiceError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services import messages
from deepgrid.services.admission import Limits, checks
from deepgrid.services.handlers import definitions
from deepgrid.services.signing import request_signing
from deepgrid.workflow import Step, StepRun, canonical, hash_definition
from deepgrid.workflow.models import ContainerRun, StepUse
from tests.appending import push_log
from tests.services.support import ACCOUNTS, DOMAIN, Grid, Start, a_job, client_of

SALT = bytes(range(32))


async def test_the_provider_of_the_job_gets_what_the_customer_uploaded(grid: Grid) -> None:
    job = a_job()
    definition_hash = await grid.customer.upload(job)
    grid.chain.put(1, definition_hash)
    assert await grid.provider.fetch_definition(1, definition_hash) == job
    grid.chain.put(1, definition_hash, JobStatus.RUNNING)
    assert await grid.provider.fetch_definition(1, definition_hash) == job, "a restarted supervisor may fetch again"
    seen = [(r.provider, r.job_id) for r in await grid.customer.releases(definition_hash)]
    assert seen == [(ACCOUNTS["provider"].address, 1)] * 2


async def test_other_parties_do_not_get_it(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_job())
    grid.chain.put(1, definition_hash)
    for stranger in (grid.other_provider, grid.rival, grid.customer, grid.operator):
        with pytest.raises(AccessDenied, match="not scheduled or running at"):
            await stranger.fetch_definition(1, definition_hash)
    assert await grid.customer.releases(definition_hash) == []


async def test_only_the_uploader_sees_who_fetched_it(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_job())
    with pytest.raises(NotFound):
        await grid.rival.releases(definition_hash)
    with pytest.raises(NotFound):
        await grid.customer.releases("0" * 64)


async def test_a_copied_public_hash_in_an_own_job_releases_nothing(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_job())
    grid.chain.put(2, definition_hash, customer=ACCOUNTS["rival"].address)
    with pytest.raises(NotFound, match="customer has no definition"):
        await grid.provider.fetch_definition(2, definition_hash)


async def test_a_job_releases_only_the_definition_that_it_names(grid: Grid) -> None:
    definition_hash, other = await grid.customer.upload(a_job()), await grid.customer.upload(a_job("echo other"))
    grid.chain.put(1, definition_hash)
    with pytest.raises(AccessDenied, match="names another definition"):
        await grid.provider.fetch_definition(1, other)


@pytest.mark.parametrize("status", [JobStatus.PENDING, JobStatus.META_SCHEDULED])
async def test_before_the_claim_is_seen_the_provider_must_retry(grid: Grid, status: JobStatus) -> None:
    definition_hash = await grid.customer.upload(a_job())
    for job_id, known in ((1, True), (2, False)):
        if known:
            grid.chain.put(job_id, definition_hash, status)
        with pytest.raises(ServiceError, match="not claimed") as caught:
            await grid.provider.fetch_definition(job_id, definition_hash)
        assert caught.value.transient
    assert await grid.customer.releases(definition_hash) == []


@pytest.mark.parametrize("status", [s for s in JobStatus if s.cold])
async def test_nothing_is_released_for_a_job_that_is_over(grid: Grid, status: JobStatus) -> None:
    definition_hash = await grid.customer.upload(a_job())
    grid.chain.put(1, definition_hash, status)
    with pytest.raises(AccessDenied):
        await grid.provider.fetch_definition(1, definition_hash)


async def test_a_tampered_answer_is_not_run(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    definition_hash, other = await grid.customer.upload(a_job()), messages.Upload(salt="00" * 32, definition="{}")
    grid.chain.put(1, definition_hash)
    for forged, complaint in ((other.model_dump_json().encode(), "is not the one"), (b"junk", "cannot be opened")):
        monkeypatch.setattr(definitions, "_stored_upload", lambda *_, forged=forged: forged)
        with pytest.raises(AccessDenied, match=complaint):
            await grid.provider.fetch_definition(1, definition_hash)


async def test_an_answer_for_another_key_cannot_be_opened(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    definition_hash = await grid.customer.upload(a_job())
    grid.chain.put(1, definition_hash)
    mine = PrivateKey().public_key.format().hex()
    honest = definitions._encrypt_for
    monkeypatch.setattr(definitions, "_encrypt_for", lambda _key, content: honest(mine, content))
    with pytest.raises(AccessDenied, match="cannot be opened"):
        await grid.provider.fetch_definition(1, definition_hash)


async def test_the_path_must_have_the_hash_of_the_content(grid: Grid) -> None:
    content = canonical(a_job())
    body = messages.Upload(salt=SALT.hex(), definition=content.decode()).model_dump_json().encode()
    for path, status in ((hash_definition(SALT, content), 204), ("0" * 64, 422), ("X" * 64, 422), ("../x", 404)):
        assert (await put(grid, f"/v1/definitions/{path}", body)).status_code == status


@pytest.mark.parametrize(
    "definition",
    ["", "{}", "[]", "null", '{"resources":{"cpusPerTask":1,"gpus":0,"memPerCpu":5,"tasks":1},"steps":[],"s3cret":1}'],
)
async def test_only_valid_canonical_definitions_are_stored(grid: Grid, definition: str) -> None:
    definition_hash = hash_definition(SALT, definition.encode())
    body = messages.Upload(salt=SALT.hex(), definition=definition).model_dump_json().encode()
    assert (await put(grid, f"/v1/definitions/{definition_hash}", body)).status_code == 422


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"\xff", b'{"salt": "00"}', b'{"salt":"%s","definition":7}' % SALT.hex().encode(), b"[" * 9999]
)
async def test_malformed_bodies_are_refused_and_not_repeated(grid: Grid, body: bytes) -> None:
    answer = await put(grid, f"/v1/definitions/{'0' * 64}", body)
    assert answer.status_code == 422
    assert SALT.hex() not in answer.text


async def test_a_repeated_upload_changes_nothing_and_another_customer_is_refused(grid: Grid) -> None:
    content = canonical(a_job())
    definition_hash = hash_definition(SALT, content)
    body = messages.Upload(salt=SALT.hex(), definition=content.decode()).model_dump_json().encode()
    assert [(await put(grid, f"/v1/definitions/{definition_hash}", body)).status_code for _ in range(2)] == [204, 204]
    assert (await put(grid, f"/v1/definitions/{definition_hash}", body, "rival")).status_code == 403
    grid.chain.put(1, definition_hash)
    assert canonical(await grid.provider.fetch_definition(1, definition_hash)) == content


async def test_a_signer_without_credits_stores_nothing(grid: Grid) -> None:
    with pytest.raises(AccessDenied, match="holds fewer credits"):
        await grid.provider.upload(a_job())


async def test_a_customer_stores_a_bounded_number(start: Start) -> None:
    grid = await start(limits=Limits(definitions_per_customer=2))
    for _ in range(2):
        await grid.customer.upload(a_job())
    with pytest.raises(ServiceError, match="stored already"):
        await grid.customer.upload(a_job())
    await grid.rival.upload(a_job())


def is_preamble(part: str) -> bool:
    return part.startswith("#!")


async def test_modules_are_resolved_before_and_containers_checked_in_every_form(
    grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    use = Step(use=StepUse(source="example.org/a/b"))
    with pytest.raises(InputError, match=r"steps\[0\].use: the module is not resolved"):
        await grid.customer.upload(a_job().model_copy(update={"steps": (use,)}))
    seen: list[str] = []
    monkeypatch.setattr(checks, "lint_script", lambda part, **_: seen.append(part))
    contained = Step(run=StepRun(command="x", container=ContainerRun(image="a")))
    await grid.customer.upload(a_job().model_copy(update={"steps": (contained,)}))
    assert sorted("--container-image" in part for part in seen if not is_preamble(part)) == [False, True]
    assert len([part for part in seen if is_preamble(part)]) == 2, "pyxis needs no functions for containers"


async def test_definitions_that_differ_in_texts_share_one_shellcheck(
    grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bash checks the grammar of each script. shellcheck does not look into quoted words."""
    linted: list[str] = []
    parsed: list[str] = []
    monkeypatch.setattr(checks, "lint_script", lambda part, **_: linted.append(part))
    monkeypatch.setattr(checks, "check_grammar", lambda script, **_: parsed.append(script))
    for command in ("echo one", "rm -rf $two", "unclosed '", "curly \u2019 \\ $(x) `y`"):
        await grid.customer.upload(a_job(command))
    assert [is_preamble(part) for part in linted] == [True, False]
    assert len(set(parsed)) == 4
    assert not any("echo one" in part for part in linted)


async def test_arguments_of_an_entry_point_are_linted_each(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of arguments changes the script."""
    linted: list[str] = []
    monkeypatch.setattr(checks, "lint_script", lambda part, **_: linted.append(part))
    for command in ("a", "a b"):
        run = StepRun.model_validate({"command": command, "shell": "ENTRYPOINT", "container": {"image": "image"}})
        await grid.customer.upload(a_job().model_copy(update={"steps": (Step(run=run),)}))
    assert len({part for part in linted if not is_preamble(part)}) == 4, "two forms of containers each"


async def test_a_script_that_the_checker_warns_of_is_refused(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "render", lambda *_: "#!/bin/bash\nif\n")
    with pytest.raises(InputError, match="not valid bash"):
        await grid.customer.upload(a_job())


async def test_a_silent_chain_is_a_transient_fault(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_job())
    grid.chain.put(1, definition_hash)
    grid.chain.down = True
    for call in (
        grid.provider.fetch_definition(1, definition_hash),
        grid.customer.upload(a_job()),
        grid.customer.read_log(1),
    ):
        with pytest.raises(ServiceError, match="chain does not answer") as caught:
            await call
        assert caught.value.transient
    grid.chain.down = False
    assert await grid.provider.fetch_definition(1, definition_hash) == a_job()


async def test_an_unreachable_service_is_a_transient_fault() -> None:
    async with client_of("http://127.0.0.1:9", ACCOUNTS["customer"]) as client:
        with pytest.raises(ServiceError, match="do not answer") as caught:
            await client.upload(a_job())
        assert caught.value.transient


async def test_what_was_stored_survives_a_restart_and_is_encrypted(start: Start, tmp_path: Path) -> None:
    first = await start()
    definition_hash = await first.customer.upload(a_job())
    first.chain.put(1, definition_hash)
    second = await start(first.chain)
    assert await second.provider.fetch_definition(1, definition_hash) == a_job()
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("services.sqlite*"))
    assert b"s3cret" not in stored
    assert definition_hash.encode() in stored
    modes = {path.stat().st_mode & 0o777 for path in [*tmp_path.glob("services.sqlite*"), tmp_path / "secret"]}
    assert modes == {0o600}


async def test_a_lost_secret_file_is_the_services_fault_not_the_jobs(start: Start, tmp_path: Path) -> None:
    first = await start()
    definition_hash = await first.customer.upload(a_job())
    first.chain.put(1, definition_hash)
    (tmp_path / "secret").unlink()
    second = await start(first.chain)
    with pytest.raises(ServiceError) as caught:
        await second.provider.fetch_definition(1, definition_hash)
    assert caught.value.transient


async def test_nothing_confidential_is_logged(grid: Grid, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    job = a_job("echo hidden-command")
    definition_hash = await grid.customer.upload(job)
    grid.chain.put(1, definition_hash)
    await grid.provider.fetch_definition(1, definition_hash)
    await push_log(grid.provider, 1, 0, b"hidden-output", final=True)
    await grid.customer.read_log(1)
    await put(grid, f"/v1/definitions/{definition_hash}", b'{"definition": "hidden-upload"}')
    text = "\n".join(f"{record.getMessage()} {record.args} {record.exc_info}" for record in caplog.records)
    assert "/v1/jobs/1/definition" in text, "the log was captured"
    assert "hidden-" not in text
    for account in ACCOUNTS.values():
        assert bytes(account.key).hex() not in text


async def test_jobs_of_other_clients_have_no_definition_here(grid: Grid) -> None:
    grid.chain.put(1, "Qm" + "x" * 44)
    with pytest.raises(NotFound, match="names no definition"):
        await grid.provider.fetch_definition(1, "Qm" + "x" * 44)


async def put(grid: Grid, path: str, body: bytes, who: str = "customer") -> httpx.Response:
    """Send a correctly signed upload with any body."""
    headers = request_signing.sign(ACCOUNTS[who], DOMAIN, "PUT", path, body, int(grid.clock()))
    async with httpx.AsyncClient() as client:
        return await client.put(grid.url + path, content=body, headers=headers)
