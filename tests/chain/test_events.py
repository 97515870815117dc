"""Events of real transactions, read as web3 reads them, and logs that only look like events of this grid."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from web3 import AsyncBaseProvider, AsyncWeb3

from deepgrid.chain.client import Chain
from deepgrid.chain.node.contract import interface
from deepgrid.errors import ChainError
from deepgrid.lifecycle.states import JobStatus
from tests.chain.grid import People


def plain(value: Any) -> Any:
    """Return structs as dicts and sequences as lists, for any decoder."""
    if hasattr(value, "items"):
        return {name: plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


async def logs_of(chain: Chain, name: str) -> list[dict[str, Any]]:
    wanted = {"address": chain.book.contracts[name], "fromBlock": "0x0", "toBlock": "latest"}
    return list(await chain.rpc.call("eth_getLogs", wanted))


@pytest.mark.parametrize("name", ["MetaScheduler", "ProviderManager", "Credit"])
async def test_events_are_read_as_web3_reads_them(chain: Chain, people: People, name: str) -> None:
    job_id = await people.request()
    await people.operator.meta_schedule(job_id, people.provider.address)
    await people.provider.claim_next()
    await people.provider.set_running(job_id, 0)
    await people.provider.settle(job_id, JobStatus.FINISHED, 1, "", 0)
    abi = json.loads((files("deepgrid.chain") / "compiled" / f"{name}.json").read_text())["abi"]
    known = {event.topic: event for event in AsyncWeb3(AsyncBaseProvider()).eth.contract(abi=abi).all_events()}
    logs = await logs_of(chain, name)
    for log in logs:
        event = interface(name).event(log)
        theirs = known[log["topics"][0]].process_log(log)  # type: ignore[arg-type]
        assert event is not None
        assert (event.name, plain(event.args)) == (theirs["event"], plain(theirs["args"]))
    assert len({log["topics"][0] for log in logs}) >= 3


async def test_a_log_with_the_topic_of_an_event_and_other_fields_is_an_error(chain: Chain, people: People) -> None:
    contract = interface("MetaScheduler")
    [log, *_] = await logs_of(chain, "MetaScheduler")
    assert contract.event({**log, "topics": []}) is None
    assert contract.event({**log, "topics": [interface("Credit").topic("Approval")]}) is None
    transition = contract.topic("JobTransitionEvent")
    for fields in ({"topics": [transition, "0x" + "00" * 32]}, {"topics": [transition], "data": "0x01"}):
        with pytest.raises(ChainError, match="does not come from this grid"):
            contract.event({**log, **fields})
