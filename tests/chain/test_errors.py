"""Errors of contracts, nodes and the network become sentences."""

from __future__ import annotations

import json
import re
import string

import pytest
from eth_abi.abi import encode

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.node.contract import CONTRACTS, interface, selector
from deepgrid.chain.node.node import Node, Rpc
from deepgrid.chain.transactions.contract_errors import contract_error, role_hash
from deepgrid.chain.transactions.error_sentences import SENTENCES, TOKEN_TEXTS
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.transaction import Call
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import ChainError, ConfigurationError, ContractError, InputError
from deepgrid.lifecycle.job import Hardware, JobDefinition, Label
from deepgrid.lifecycle.states import JobStatus
from tests.chain.grid import CREDIT, DEFINITION, PRICES, Grid, People, approve_waiting
from tests.chain.odd_node import odd_node

ERRORS = {item["name"]: item for name in CONTRACTS for item in interface(name).errors.values()}
WHO = "0x" + "ab" * 20


def _revert(name: str, *args: object) -> bytes:
    item = ERRORS[name]
    return selector(item) + encode([field["type"] for field in item["inputs"]], args)


def _text(text: str) -> bytes:
    item = {"name": "Error", "type": "error", "inputs": [{"name": "", "type": "string"}]}
    return selector(item) + encode(["string"], [text])


def test_every_sentence_fits_its_error() -> None:
    for name, (sentence, _) in SENTENCES.items():
        fields = {field for _, field, _, _ in string.Formatter().parse(sentence) if field}
        assert name in ERRORS, f"{name} is no error of the contracts"
        assert fields <= {item["name"] for item in ERRORS[name]["inputs"]}, name


def test_every_error_of_every_contract_has_a_sentence() -> None:
    """This includes errors of the token, permits, roles and ownership, because our calls can raise them."""
    inherited = {"ERC20InvalidApprover", "ERC2612ExpiredSignature", "AccessControlBadConfirmation"}
    assert inherited <= set(ERRORS), "the interfaces lack the errors of what the contracts are built from"
    assert sorted(set(ERRORS) - set(SENTENCES)) == []


SAMPLES: dict[str, object] = {"address": WHO, "bytes32": role_hash("MINTER_ROLE"), "string": "a text"}


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_every_error_becomes_one_sentence_with_its_arguments(name: str) -> None:
    fields = ERRORS[name]["inputs"]
    args = [SAMPLES.get(field["type"], number) for number, field in enumerate(fields, start=1)]
    error = contract_error(_revert(name, *args))
    assert error.name == name
    assert [str(value).lower() for value in error.args_by_name.values()] == [str(arg).lower() for arg in args]
    assert re.fullmatch(r"[^{}]+\.", error.message), "a sentence without gaps"
    assert "refused: " not in error.message, "no sentence of its own"


@pytest.mark.parametrize(("text", "meaning"), [(text, meaning) for text, (meaning, _) in TOKEN_TEXTS.items()])
def test_the_tokens_texts_become_sentences_under_the_names_of_its_errors(text: str, meaning: str) -> None:
    error = contract_error(_text(text))
    assert (error.name, error.args_by_name) == (meaning, {"message": text})
    assert meaning in ERRORS
    assert re.fullmatch(r"The [^{}]+\.", error.message)
    assert error.next_step


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (_revert("InsufficientFunds", 5 * 10**17, 100 * CREDIT), "0.5 credits are not enough: 100 are required."),
        (_revert("RateAboveCeiling", 2 * CREDIT, CREDIT), "2 credits per minute; its customer pays at most 1."),
        (_revert("RateAboveCeiling", 2 * CREDIT, 0), "pays at most the prices at its request, which rose since."),
        (_revert("InvalidTransition", 3, 0), "A job that is running cannot become pending."),
        (_revert("JobHotStatusOnly", 7), "The job is over: it is out of credits."),
        (_revert("AccessControlUnauthorizedAccount", WHO, role_hash("MINTER_ROLE")), "lacks the role MINTER_ROLE."),
        (_revert("AccessControlUnauthorizedAccount", WHO, b"\1" * 32), "lacks the role 0x0101"),
        (_text("out of luck"), "The contract refused: out of luck."),
        (bytes.fromhex("4e487b71") + encode(["uint256"], [0x11]), "a number overflowed"),
        (bytes.fromhex("4e487b71") + encode(["uint256"], [0x77]), "0x77"),
        (b"\xde\xad\xbe\xef", "an unknown reason (0xdeadbeef)"),
        (b"", "no reason"),
        (selector(ERRORS["InsufficientFunds"]) + b"\0", "cannot be decoded"),
    ],
)  # fmt: skip
def test_decoding(data: bytes, message: str) -> None:
    assert message in contract_error(data).message


async def test_refusals_come_typed_with_their_arguments(people: People) -> None:
    customer, provider, operator = people.customer, people.provider, people.operator

    async def refused(coroutine: object) -> ContractError:
        with pytest.raises(ContractError) as caught:
            await coroutine  # type: ignore[misc]
        return caught.value

    few = await refused(customer.request_job(DEFINITION, 5, "few"))
    assert (few.name, few.args_by_name) == ("InsufficientFunds", {"available": 5, "required": 100 * CREDIT})
    empty = JobDefinition(gpus=0, mem_per_cpu_mb=0, cpus_per_task=1, ntasks=1, definition_hash="")
    assert (await refused(customer.request_job(empty, 100 * CREDIT, ""))).name == "InvalidJobDefinition"
    assert (await refused(customer.transfer(WHO, 10**30))).name == "ERC20InsufficientBalance"
    job_id = await people.request()
    assert (await refused(customer.meta_schedule(job_id, provider.address))).name == "AccessControlUnauthorizedAccount"
    assert (await refused(operator.meta_schedule(job_id, customer.address))).name == "ProviderNotJoined"
    assert (await refused(provider.cancel_job(job_id))).name == "CustomerOnly"
    assert (await refused(provider.set_running(job_id, 0))).name == "JobProviderOnly"
    await customer.cancel_job(job_id)
    assert (await refused(customer.cancel_job(job_id))).name == "JobHotStatusOnly"
    assert (await refused(customer.cancel_job(10**6))).name == "InvalidJob"
    no_nodes = Hardware((), (), ())
    assert (await refused(provider.register(no_nodes, PRICES, ()))).name == "InvalidNodesCount"
    assert (await refused(approve_waiting(operator, provider.address))).name == "WaitingApprovalOnly"


async def test_values_that_do_not_fit_on_chain_are_bad_input(people: People) -> None:
    for definition, amount, name in (
        (DEFINITION, -1, "x"),
        (DEFINITION, 2**256, "x"),
        (DEFINITION, CREDIT, "x" * 33),
        (JobDefinition(2**64, 1, 1, 1, ""), CREDIT, "x"),
    ):
        with pytest.raises(InputError):
            await people.customer.request_job(definition, amount, name)
    with pytest.raises(InputError):
        await people.chain.job(-1)
    with pytest.raises(InputError):
        await people.operator.approve_proposal("somebody", bytes(32))


async def test_strings_of_strangers_do_not_make_pages_unreadable(people: People) -> None:
    definition = JobDefinition(1, 1, 1, 1, "ok", uses=(Label("\x1b[31m", "é"),))
    job_id = await people.customer.request_job(definition, 100 * CREDIT, "", approve_first=100 * CREDIT)
    assert (await people.chain.job(job_id)).definition == definition
    spoilt = encode(["bytes"], [b"\xff\xfeabc"])
    assert interface("Credit").decode("name", spoilt) == "\ufffd\ufffdabc"


async def test_wrong_chain_and_missing_contract(grid: Grid) -> None:
    with pytest.raises(ConfigurationError, match=r"Wrong chain: .* 31337"):
        await Chain.connect(grid.book.model_copy(update={"chain_id": 1}))
    with pytest.raises(ConfigurationError, match="no Credit contract"):
        await Chain.connect(grid.book.model_copy(update={"credit": WHO}))


async def test_node_that_is_down_is_transient(grid: Grid) -> None:
    book = grid.book.model_copy(update={"rpc_url": "http://127.0.0.1:1/secret-token"})
    with pytest.raises(ChainError) as down:
        await Chain.connect(book)
    assert down.value.transient
    assert "secret-token" not in str(down.value)


@pytest.mark.parametrize(
    ("status", "body", "transient"),
    [
        (429, "slow down", True),
        (502, "<html>", True),
        (403, "who are you", False),
        (200, "<html>", True),
        (200, "3", True),
        (200, "{}", True),
        (200, '[{"id": 99}]', True),
        (200, '{"id": null, "error": {"code": -32005, "message": "limit exceeded"}}', True),
        (200, '{"id": null, "error": {"code": -32601, "message": "no such method"}}', False),
    ],
)
async def test_nodes_that_return_malformed_responses(status: int, body: str, transient: bool) -> None:
    async with odd_node(lambda _: body, status) as url:
        rpc = Rpc(url)
        rpc.pace.patience_s = 0
        try:
            with pytest.raises(ChainError) as failed:
                await rpc.batch([("eth_blockNumber", []), ("eth_chainId", [])])
            assert failed.value.transient is transient
        finally:
            await rpc.close()


@pytest.mark.parametrize("result", [None, {}, [], "0x", 5, "soup", [None], {"number": None}])
async def test_nodes_that_return_impossible_values(grid: Grid, result: object) -> None:
    def answer(body: bytes) -> str:
        asked = json.loads(body)
        many = [{"id": one["id"], "result": result} for one in (asked if isinstance(asked, list) else [asked])]
        return json.dumps(many if isinstance(asked, list) else many[0])

    async with odd_node(answer) as url:
        book = grid.book.model_copy(update={"rpc_url": url})
        with pytest.raises(ChainError):
            await Chain.connect(book)
        async with Chain(book, Rpc(url)) as chain:
            sender = Sender(chain, Wallet.load(grid.operator_key))
            for asking in (
                chain.head, lambda: chain.jobs([1]), chain.providers, lambda: chain.history(1),
                lambda: chain.has_role("MINTER_ROLE", WHO), lambda: Node.at(url),
                lambda: sender.send(Call("nothing", WHO, "0x"), timeout_s=5),
            ):  # fmt: skip
                with pytest.raises(ChainError):
                    await asking()


async def test_another_contract_at_the_address_is_named(people: People) -> None:
    swapped = people.chain.book.model_copy(update={"provider_manager": people.chain.book.credit})
    async with await Chain.connect(AddressBook.model_validate(swapped.model_dump())) as chain:
        with pytest.raises((ChainError, ContractError)):
            await chain.providers()


@pytest.mark.parametrize("length", [1, 2**62, 2**255])
def test_a_text_of_impossible_length_is_named(length: int) -> None:
    """A length beyond all memory once raised OverflowError, in the local signer of `dps web` too."""
    with pytest.raises(ChainError, match="does not come from this grid"):
        interface("Credit").decode("name", encode(["uint256", "uint256"], [32, length]))


def test_every_chain_state_has_a_name() -> None:
    for status in JobStatus:
        assert status.words in contract_error(_revert("JobHotStatusOnly", int(status))).message
