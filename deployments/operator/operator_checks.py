"""`dps operator doctor`: checks everything that can be wrong with an operator's set-up, and changes nothing.

Each part is checked separately, so a chain that is down does not hide a deployment that is missing.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import yaml
from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound

from deepgrid.chain.book import AddressBook
from deepgrid.chain.chain_findings import OPERATOR_GAS, examine_node, judge_clock, judge_gas, judge_head, judge_lease
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import GridError
from deepgrid.files.private_files import unwritable_part
from deepgrid.findings import Finding, Level
from deepgrid.operator.session import OperatorSettings
from deepgrid.services.client import ServicesClient

ROLE = "METASCHEDULER_ROLE"
DUTIES = {"MetaScheduler": "assign jobs", "ProviderManager": "approve providers"}
PREFECT_FILE = Path(__file__).with_name("prefect.yaml")


async def examine_operator(settings: OperatorSettings) -> list[Finding]:
    """Return all findings on an operator except Prefect: key, chain, roles, gas, clock, services, state folder."""
    try:
        wallet = Wallet.load(settings.key_file)
        book = AddressBook.load(settings.book)
    except GridError as error:
        return [Finding.of("set-up", error), _state(settings.state)]
    on_chain, services = await asyncio.gather(_chain(book, wallet), _services(book, wallet, settings.services_url))
    return [*on_chain, services, _state(settings.state)]


async def examine_deployments(name: str) -> list[Finding]:
    """Return whether Prefect has the operator's deployments, and runs their schedules."""
    wanted = [one["flow_name"] for one in yaml.safe_load(PREFECT_FILE.read_text())["deployments"]]
    missing, paused = [], []
    try:
        async with get_client() as client:
            for flow in wanted:
                try:
                    found = await client.read_deployment_by_name(f"{flow}/{name}")
                except ObjectNotFound:
                    missing.append(flow)
                    continue
                if found.paused or not all(schedule.active for schedule in found.schedules):
                    paused.append(flow)
    except (httpx.HTTPError, TimeoutError):
        return [
            Finding("deployments", Level.BAD, "Prefect does not say which deployments it has.", "Start its server.")
        ]
    findings = []
    if missing:
        step = f"OPERATOR={name} prefect --no-prompt deploy --all --prefect-file deployments/operator/prefect.yaml"
        findings.append(Finding("deployments", Level.BAD, f"Missing at Prefect: {', '.join(missing)}.", step))
    if paused:
        findings.append(
            Finding("deployments", Level.WARNING, f"Paused: {', '.join(paused)}.", "Resume them when you are done.")
        )
    good = Finding("deployments", Level.GOOD, f"All {len(wanted)} deployments are there and not paused.")
    return findings or [good]


async def _chain(book: AddressBook, wallet: Wallet) -> list[Finding]:
    try:
        async with await Chain.connect(book) as chain:
            head = await chain.head()
            held = {contract: await chain.has_role(ROLE, wallet.address, contract) for contract in DUTIES}
            money, price = await chain.gas_money(wallet.address), await chain.gas_price()
            lacks = await examine_node(chain, book.first_block)
    except GridError as error:
        return [Finding.of("chain", error)]
    roles = [_role(contract, wallet.address, held=has) for contract, has in held.items()]
    gas = judge_gas(OPERATOR_GAS, wallet.address, money, price)
    return [judge_head(book, head), *lacks, *judge_lease(wallet.lease_file), *roles, gas, judge_clock(head.timestamp)]


def _role(contract: str, address: str, *, held: bool) -> Finding:
    if held:
        return Finding("roles", Level.GOOD, f"{address} may {DUTIES[contract]}.")
    # Another key may approve providers, so that this one cannot.
    level = Level.BAD if contract == "MetaScheduler" else Level.WARNING
    option = "--assign" if contract == "MetaScheduler" else "--approve"
    step = f"Ask the admin to run dps operator deploy {option} {address}."
    return Finding("roles", level, f"{address} may not {DUTIES[contract]}.", step)


async def _services(book: AddressBook, wallet: Wallet, url: str) -> Finding:
    try:
        async with ServicesClient.of(book, wallet.account, url) as services:
            await services.health()
    except GridError as error:
        return Finding.of("services", error)
    where = url or book.definitions_url
    over = "over TLS" if where.startswith("https://") else "in clear text"
    return Finding("services", Level.GOOD, f"The services and their database answer {over} at {where}.")


def _state(folder: Path) -> Finding:
    obstacle = unwritable_part(folder)
    if obstacle is None:
        return Finding("state", Level.GOOD, f"{folder} can be written.")
    return Finding("state", Level.BAD, f"{folder} cannot be written.", f"Give {obstacle} to this account.")
