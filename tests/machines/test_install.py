"""The commands of docs/how-to/install.md lead from empty machines to a grid with TLS, under a running systemd."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.grid.dialogue import BEFORE_THE_FINGERPRINT, FINGERPRINT, OF_THE_CLUSTER, OWN_ACCOUNTS, REST
from tests.machines.conftest import Machines
from tests.machines.machine import CHECKOUT, Machine, machine
from tests.machines.manual import commands
from tests.machines.world import CLUSTER, SERVICES
from tests.tui.terminal import Terminal
from tests.waiting import wait_until

pytestmark = [pytest.mark.deep, pytest.mark.timeout(1800)]

PAGE, BACKUP = "docs/how-to/install.md", "docs/how-to/backup.md"
DPS = str(Path(sys.executable).with_name("dps"))
GAPS = ("proctrack", "task_plugin", "contain", "private_tmp", "disk_quota", "connections")  # no cgroups, quotas, rules
STOPPED_WITHIN_S = 20.0  # the processes promise 10 s, systemd kills after 15 s


class Admin:
    """The admin, with a key on its own machine, which is this one."""

    def __init__(self, machines: Machines) -> None:
        self.world = machines.world
        self.key, self.book = self.world.folder / "admin.key", self.world.folder / "grid.json"
        self.dps("key", "create", "--key", self.key)
        self.world.fund(self.dps("key", "show", "--key", self.key).strip())

    def dps(self, *words: object) -> str:
        done = subprocess.run([DPS, *map(str, words)], capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, f"dps {words}\n{done.stdout}{done.stderr}"
        return done.stdout

    def deploy(self, operator: str) -> str:
        """Deploy the contracts. Returns the address book."""
        url = f"https://{SERVICES}"
        urls = ("--rpc-url", self.world.node_url, "--definitions-url", url, "--logs-url", url)
        owner = ("--key", self.key, "--book", self.book)
        self.dps("operator", "deploy", *owner, *urls, "--operator", operator, "--authorities", self.world.authority)
        return self.book.read_text()

    def give(self, address: str) -> None:
        """Give a customer currency and credits."""
        self.world.fund(address)
        self.dps("credit", "mint", address, "1000", "--key", self.key, "--book", self.book)


@pytest.fixture(scope="module")
def admin(machines: Machines) -> Admin:
    return Admin(machines)


@pytest.fixture(scope="module")
def operator(machines: Machines, admin: Admin) -> Machine:
    """The operator's machine, set up as the page says."""
    here = machines.operator
    key, units, databases, prefect, blocks, start, proxy, checks = commands(PAGE, "On the operator's machine")
    here.run(key)
    address = here.run("dps key show --key operator.key").strip()
    machines.world.fund(address)
    here.file("root/grid/grid.json").write_text(admin.deploy(address))
    for step in (units, databases, prefect, blocks.replace("0x...", address), start):
        here.run(step)
    here.run(with_certificate(proxy, machines))
    said = here.run(checks)
    assert "BAD" not in said, said
    return here


def with_certificate(proxy: str, machines: Machines) -> str:
    """Return the commands for the proxy with the host's name, and put the certificate where they expect it."""
    here, world = machines.operator, machines.world
    text = proxy.replace("jobs.example.org", SERVICES)
    for name, source in (("fullchain.pem", world.certificate), ("privkey.pem", world.key)):
        found = re.search(rf"/etc/letsencrypt/\S+/{name}", text)
        assert found is not None, text
        here.file(found[0]).parent.mkdir(parents=True, exist_ok=True)
        here.file(found[0]).write_bytes(source.read_bytes())
    return text


@pytest.fixture(scope="module")
def provider(machines: Machines, admin: Admin, operator: Machine) -> Machine:
    """The provider's machine, set up as the page says, and approved by the operator."""
    here, world = machines.provider, machines.world
    keys, units, prefect, state, questions, gaps, start, approval, _measure = commands(PAGE, "On a provider's machine")
    here.run(keys)
    address = here.run("dps key show --key provider.key").strip()
    world.fund(address)
    world.let_in(here.file("root/grid/id_ed25519.pub").read_text())
    world.make_folders(commands("docs/how-to/provider.md", "3. The login node")[0])
    here.file("root/grid/grid.json").write_text(admin.book.read_text())
    for step in (units, prefect, state):
        here.run(step)
    answer(here, machines, questions)
    here.run(gaps.replace('["private_tmp"]', json.dumps(GAPS)))
    said = here.run(start, check=False)
    assert "approval" in said, said
    operator.run(approval.replace("ADDRESS", address))
    checks = start.strip().splitlines()[-1]
    wait_until(lambda: "BAD" not in here.run(checks, check=False), lambda: here.run(checks, check=False))
    return here


def answer(here: Machine, machines: Machines, questions: str) -> None:
    """Answer the dialogue of `dps provider init` on a terminal."""
    login, host = machines.world.login, machines.world.network.host
    answers = ["", "", "", "", "", host, str(login.port), login.user, "", "", "", "y", "", login.grid_root]
    answers += [machines.world.storage, login.accounts.pattern, "", str(login.own_account), "", "", ""]
    answers += ["region=ch", "", "", "", "y"]
    asked = (*BEFORE_THE_FINGERPRINT, FINGERPRINT, *OF_THE_CLUSTER, *OWN_ACCOUNTS, *REST)
    with Terminal(here.shell(questions), dict(os.environ), cwd="/") as terminal:
        for question, text in zip(asked, answers, strict=True):
            terminal.shows(question)
            terminal.type(f"{text}\n")
        assert terminal.ended() == 0, terminal.text


@pytest.fixture(scope="module")
def customer(machines: Machines, admin: Admin, provider: Machine) -> Machine:
    """A customer's machine, with a key, credits, and an account on the cluster."""
    here = machines.customer
    here.run("dps key create")
    address = here.run("dps key show").strip()
    admin.give(address)
    here.file("root/.dps/grid.json").write_text(admin.book.read_text())
    assert machines.world.site.admit(CLUSTER, address)
    return here


def test_a_customer_runs_a_job_through_tls(customer: Machine) -> None:
    said = customer.run("dps submit /opt/deepgrid/examples/hello-world.yaml --credits 100 --watch --exit-on-job-exit")
    assert "Hello world" in said and "to provider (80 %)" in said, said


def test_all_units_restart_while_a_job_runs(machines: Machines, customer: Machine) -> None:
    job_id = start(customer, "sleep 60 && echo slept")
    stop_and_start(machines.provider, processes=3)
    stop_and_start(machines.operator, processes=5)
    assert "slept" in customer.run(f"dps job logs {job_id} --all")
    assert "FINISHED" in state_of(customer, job_id)
    for here in (machines.provider, machines.operator):
        assert not here.run("systemctl list-units --failed --plain --no-legend 'deepgrid-*'")


def stop_and_start(here: Machine, processes: int) -> None:
    """Stop each unit by itself, then start all units as the boot of the machine does."""
    units = running(here)
    assert len(units) == processes
    for unit in units:
        began = time.monotonic()
        here.run(f"systemctl stop {unit}")
        assert time.monotonic() - began < STOPPED_WITHIN_S, unit
        assert "Result=success" in here.run(f"systemctl show --property Result {unit}")
    here.run("systemctl stop deepgrid.target && systemctl start deepgrid.target")
    wait_until(lambda: len(running(here)) == processes, here.complaints)
    counts = here.run(f"systemctl show --property NRestarts --value {' '.join(units)}").split()
    assert set(counts) == {"0"}, "each starts when the one that it needs serves"


def test_the_proxy_takes_a_renewed_certificate_and_has_few_rights(machines: Machines, operator: Machine) -> None:
    workers = "pgrep --uid deepgrid-proxy nginx"
    before = operator.run(workers)
    operator.run("systemctl reload deepgrid-proxy")
    wait_until(lambda: not set(before.split()) & set(operator.run(workers).split()), operator.complaints)
    doctor = operator.run("with_rights_of services dps services doctor")
    assert "BAD" not in doctor and "runs /etc/deepgrid/proxy.conf" in doctor, doctor
    past_it = "curl -s --unix-socket /run/deepgrid-services/http.sock http://services/v1/health"
    assert operator.run(f"runuser -u nobody -- {past_it}", check=False) == ""
    assert "ok" in operator.run(f"runuser -u deepgrid-proxy -- {past_it}")


def test_slow_flows_run_with_the_rights_of_the_worker(machines: Machines, customer: Machine) -> None:
    run = "prefect deployment run {flow} --watch"
    for here, process, flow in (
        (machines.operator, "operator", "reconcile_billing/grid"),
        (machines.provider, f"supervisor-{CLUSTER}", f"reconcile_billing/{CLUSTER}"),
        (machines.provider, f"supervisor-{CLUSTER}", f"collect_zombies/{CLUSTER}"),
    ):
        said = here.run(f"with_rights_of {process} {run.format(flow=flow)}")
        assert "finished successfully" in said or "Completed" in said, said


def test_a_run_of_the_worker_reports_that_it_was_ended(operator: Machine) -> None:
    flow = "reconcile_billing/grid"
    said = operator.run(f"with_rights_of operator prefect deployment run {flow}")
    run_id = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", said)[-1]

    def state() -> str:
        return operator.run(f"with_rights_of operator prefect flow-run inspect {run_id} --output json")

    wait_until(lambda: '"RUNNING"' in state(), state)
    operator.run("systemctl restart deepgrid-worker")
    wait_until(lambda: '"CRASHED"' in state(), state, within_s=600)
    assert "Completed" in operator.run(f"with_rights_of operator prefect deployment run {flow} --watch")


def test_a_lost_login_node_is_told_to_prefect(machines: Machines, provider: Machine) -> None:
    seen = "http://127.0.0.1:4200/api/events/filter"
    login = "$(sed -n 's/.*AUTH_STRING=//p' /etc/deepgrid/prefect.env)"
    body = json.dumps({"filter": {"event": {"prefix": ["deepgrid.degraded"]}}})

    def events() -> str:
        ask = f"curl -fs --user \"{login}\" --json '{body}' {seen}"
        return ", ".join(sorted(one["event"] for one in json.loads(provider.run(ask))["events"]))

    way = f"blackhole {machines.world.network.host}"
    provider.run(f"ip route add {way}")
    wait_until(lambda: events() == "deepgrid.degraded", events, within_s=600)
    provider.run(f"ip route delete {way}")
    wait_until(lambda: events() == "deepgrid.degraded, deepgrid.degraded.over", events, within_s=600)


def test_the_journals_hold_no_traceback_and_no_secret(machines: Machines, customer: Machine) -> None:
    for here in (machines.provider, machines.operator):
        journal = here.run("journalctl --no-pager --output=cat --unit='deepgrid-*'")
        login = here.run("sed -n 's/.*AUTH_STRING=//p' /etc/deepgrid/prefect.env").strip()
        assert login and login not in journal
        assert "Traceback" not in journal and "Crash detected" not in journal, journal


def test_units_that_are_written_again_change_nothing(operator: Machine, provider: Machine) -> None:
    for here, command in ((operator, "dps operator units grid"), (provider, f"dps provider units {CLUSTER}")):
        said = here.run(f"{command} --write /").splitlines()
        assert said and not [line for line in said if not line.startswith("kept ")]


def test_a_new_machine_carries_on_from_a_backup(
    machines: Machines, customer: Machine, provider: Machine, admin: Admin, tmp_path: Path
) -> None:
    """The provider's machine is lost while a job runs. The claim is newer than the backup."""
    of_provider, _of_operator = commands(BACKUP, "Back up a provider or the operator")
    provider.run(of_provider.replace("alpha", CLUSTER))
    (archive,) = provider.file("/var/backups/deepgrid").iterdir()
    job_id = start(customer, "sleep 30 && echo survived")
    provider.power_off()
    with machine("provider-2", 4, machines.world.network, machines.hosts, machines.world.folder) as here:
        here.run(f"ln -s {CHECKOUT} /opt/deepgrid; install -d /var/backups/deepgrid")
        here.file(f"/var/backups/deepgrid/{archive.name}").write_bytes(archive.read_bytes())
        here.file("root/grid/grid.json").write_text(admin.book.read_text())
        _keys, units, prefect, *_ = commands(PAGE, "On a provider's machine")
        restore, again = commands(BACKUP, "Restore a provider or the operator")
        restore = restore.replace("alpha-2026-11-25-0400.tar", archive.name)
        for step in (units, prefect, restore.replace("alpha", CLUSTER), again.replace("alpha", CLUSTER)):
            here.run(step)
        assert "survived" in customer.run(f"dps job logs {job_id} --all")
        wait_until(lambda: "FINISHED" in state_of(customer, job_id), here.complaints)


def running(here: Machine) -> list[str]:
    """Return the units of deepgrid that run."""
    listed = "systemctl list-units --plain --no-legend --state=running 'deepgrid-*.service'"
    return here.run(f"{listed} | cut -d' ' -f1").split()


def start(customer: Machine, command: str) -> int:
    """Submit a job, and wait until it runs. Returns its id."""
    definition = {
        "resources": {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 100, "gpus": 0},
        "enableLogging": True,
        "steps": [{"run": {"command": command}}],
    }
    customer.file("root/grid/job.yaml").write_text(json.dumps(definition))
    said = customer.run("dps submit job.yaml --credits 100")
    job_id = int(said.removeprefix("job ").split()[0])
    wait_until(lambda: "RUNNING" in state_of(customer, job_id), lambda: customer.run(f"dps job get {job_id}"))
    return job_id


def state_of(customer: Machine, job_id: int) -> str:
    return customer.run(f"dps job get {job_id}")
