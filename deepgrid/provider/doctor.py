"""`dps provider doctor`: checks everything that can be wrong with a provider's set-up, and changes nothing.

Each part is checked separately, so a chain that is down does not hide a problem of the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from deepgrid.chain.book import AddressBook
from deepgrid.chain.chain_findings import PROVIDER_GAS, examine_node, judge_gas, judge_head, judge_lease
from deepgrid.chain.client import Chain
from deepgrid.chain.offers import Standing, Versions, read_versions
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import GridError
from deepgrid.findings import Finding, Level
from deepgrid.lifecycle.feature_labels import PRIVATE
from deepgrid.provider.session import ProviderSettings
from deepgrid.provider.terms import finding
from deepgrid.services.client import ServicesClient
from deepgrid.services.files.private_keys import public_key_of
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.commands.scontrol import PartitionNodes
from deepgrid.slurm.setup.account_findings import examine_accounts
from deepgrid.slurm.setup.checkup import examine
from deepgrid.slurm.setup.feature_findings import judge_features, summary
from deepgrid.slurm.setup.features import NodeFeatures, look_at_node
from deepgrid.slurm.setup.guards import ask_guards, judge_guards, missing_guards
from deepgrid.slurm.setup.login_findings import examine_login
from deepgrid.slurm.setup.selftest import run_selftest
from deepgrid.slurm.ssh.login import Login


async def examine_provider(settings: ProviderSettings) -> list[Finding]:
    """Return all findings on a provider: its key, its standing on chain, the services, and the cluster."""
    try:
        wallet = Wallet.load(settings.key_file)
        book = AddressBook.load(settings.book)
    except GridError as error:
        return [Finding.of("set-up", error), *await examine_cluster(settings)]
    parts = (
        _chain(book, wallet, settings.max_cut_percent),
        examine_services(book, wallet, settings.services_url),
        examine_cluster(settings),
    )
    return [finding for findings in await asyncio.gather(*parts) for finding in findings]


async def _chain(book: AddressBook, wallet: Wallet, max_cut_percent: int) -> list[Finding]:
    try:
        async with await Chain.connect(book) as chain:
            head = await chain.head()
            versions = await read_versions(chain, wallet.address)
            money, price = await chain.gas_money(wallet.address), await chain.gas_price()
            cut = finding(await chain.cut(), max_cut_percent)
            lacks = await examine_node(chain, book.first_block)
    except GridError as error:
        return [Finding.of("chain", error)]
    gas = judge_gas(PROVIDER_GAS, wallet.address, money, price)
    found = [judge_head(book, head), *lacks, *judge_lease(wallet.lease_file), _standing(versions.standing), gas, cut]
    return [*found, *judge_published_key(versions)]


def _standing(standing: Standing) -> Finding:
    words = f"This provider {standing.value}."
    if standing.in_force:
        return Finding("approval", Level.GOOD, words)
    step = {
        Standing.UNKNOWN: "Start the supervisor, which registers it, or run dps provider register.",
        Standing.WAITING: "Ask the grid's operator to approve it.",
    }.get(standing, "Ask the grid's operator why.")
    return Finding("approval", Level.BAD, words, step)


def judge_published_key(versions: Versions) -> list[Finding]:
    """Return the finding on the key for which customers encrypt private files; none before the registration."""
    newest, subject = versions.newest, "public key"
    if newest is None:
        return []
    if versions.approved and public_key_of(versions.approved):
        return [Finding(subject, Level.GOOD, "The key of this cluster for private files is published and readable.")]
    if public_key_of(newest):
        words = "The key of this cluster for private files is proposed: until it is approved, it gets no such jobs."
        return [Finding(subject, Level.WARNING, words, "Ask the grid's operator to approve it.")]
    if any(label.key == PRIVATE for label in newest.labels):
        words = "The label storage.private is not the public key of this provider's account: customers ignore it."
        step = "Take storage.private out of the labels of the provider block. The supervisor sets it."
        return [Finding(subject, Level.WARNING, words, step)]
    words = "This cluster has published no key for private files: jobs with such files are not assigned here."
    step = "The supervisor publishes it within an hour after a node can decrypt private files."
    return [Finding(subject, Level.WARNING, words, step)]


async def examine_services(book: AddressBook, wallet: Wallet, url: str) -> list[Finding]:
    """Return the finding on the Job Definition service; `url` is empty for the one of the address book."""
    try:
        async with ServicesClient.of(book, wallet.account, url) as services:
            await services.health()
    except GridError as error:
        step = "Check services of the provider block, or the URL in the address book, and that the services run."
        words = f"{error.message} No job's script can be fetched, and no output is delivered."
        return [Finding("services", Level.BAD, words, step)]
    return [Finding("services", Level.GOOD, "The Job Definition service answers.")]


async def examine_cluster(settings: ProviderSettings) -> list[Finding]:
    """Return the findings on the cluster, the summary last. Consequences of a fault are left out."""
    login = Login(settings.login)
    cluster = Cluster(login, settings.login)
    try:
        findings = await examine(login, cluster)
        if findings[0].level is not Level.GOOD:
            return findings
        findings += await examine_login(login)
        findings += await examine_accounts(login, settings.login)
        partition = await _partition(cluster)
        if partition is None:  # Slurm does not answer, or lacks the partition
            return [*findings, summary(None, None)]
        findings += await _guards(login, settings)
        found = None if _bad(findings) & {"folder", "locks"} else await _try_out(login, cluster, settings, findings)
        return [*findings, summary(partition, found)]
    finally:
        await login.close()


async def _partition(cluster: Cluster) -> PartitionNodes | None:
    try:
        return await cluster.partition()
    except GridError:  # `examine` found it, too
        return None


async def _try_out(
    login: Login, cluster: Cluster, settings: ProviderSettings, findings: list[Finding]
) -> NodeFeatures | None:
    """Add the findings of the self-test and of a look at a node. Returns what the node offers, if one was seen."""
    has_nodes = "slurm" not in _bad(findings)
    tried = await run_selftest(login, cluster, settings.storage.roots, nodes=has_nodes)
    if "nodes" in _bad(tried):  # a folder that is not shared lacks the spool, too
        findings[:] = [one for one in findings if one.subject != "ends"]
    findings += tried
    if not has_nodes or not any(one.subject == "nodes" and one.level is Level.GOOD for one in tried):
        return None
    found = await look_at_node(cluster, settings.containers.apptainer)
    if found is not None:
        findings += judge_features(found, settings.containers.apptainer, sessions=settings.sessions)
    return found


def _bad(findings: Sequence[Finding]) -> set[str]:
    return {finding.subject for finding in findings if finding.level is Level.BAD}


async def _guards(login: Login, settings: ProviderSettings) -> list[Finding]:
    try:
        missing = missing_guards(await ask_guards(login, settings.login), settings.login)
    except GridError as error:
        return [Finding.of("guards", error)]
    return judge_guards(missing, settings.accepted_gaps, trust_customers=settings.trust_customers)
