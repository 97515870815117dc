"""Real Slurm clusters on one machine, without systemd: each its own slurmctld, slurmds and sshd.

They share one munged, one MariaDB and one slurmdbd. All files are under the state folder, so a stopped site starts
again with its accounts. Unix sockets are in a short folder under /tmp, which `stop` removes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from pwd import getpwnam
from typing import Any

from deepgrid.errors import ConfigurationError
from deepgrid.slurm.ssh.login_settings import CustomerAccounts, LoginSettings
from deployments.onemachine.daemons.grid_files import render_template, socket_folder, socket_path
from deployments.onemachine.daemons.ports import PortBook
from deployments.onemachine.daemons.probes import HOST, connects, listens
from deployments.onemachine.daemons.processes import Daemon, ProcessTable, options
from deployments.onemachine.slurm import accounts
from deployments.onemachine.slurm import slurm_files as files
from deployments.onemachine.slurm.node_programs import (
    NodePrograms,
    constraints,
    install_programs,
    memory_limits,
    remove_cgroups,
)
from deployments.onemachine.slurm.slurm_steps import kill_descendants, kill_steps

PARTITION = "main"
CGROUPS = "CgroupPlugin=cgroup/v1\n"  # named, because slurmd otherwise looks for systemd
GPU_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx")


@dataclass(frozen=True)
class ClusterSpec:
    """A cluster in Slurm's configuration. Nodes may have more CPUs and memory than the machine.

    A node has at most seven GPUs; each is a character device that every machine has.
    `hook`: completion records are written.
    `guard`: jobs cannot change themselves or submit others.
    `private`: users see only their own jobs.
    `accounting`: slurmdbd records jobs.
    `own_accounts`: each customer has an account, where root can create it; otherwise all jobs share one.
    `equipped`: jobs have Apptainer, s5cmd, and limits on memory.
    `proctrack`: the plugin that knows a step's processes. With cgroup, signals reach the first process of a task only.
    """

    name: str
    nodes: int = 2
    cpus_per_node: int = 2
    mem_per_node_mb: int = 4000
    gpus_per_node: int = 0
    hook: bool = True
    guard: bool = True
    private: bool = True
    accounting: bool = True
    own_accounts: bool = False
    equipped: bool = False
    proctrack: str = "linuxproc"

    @property
    def node_names(self) -> list[str]:
        return [f"{self.name}-n{i + 1}" for i in range(self.nodes)]


class SlurmSite:
    """All Slurm clusters of one grid under `state`. `port` returns a permanent port by name."""

    def __init__(self, state: Path, clusters: Sequence[ClusterSpec], port: Callable[[str], int] | None = None) -> None:
        self.state = state.resolve()
        self.clusters = {spec.name: spec for spec in clusters}
        self._port = port or PortBook(self.state / "slurm-ports.json").port
        self._shared = self.state / "slurm"
        self._sockets = socket_path(self.state)
        self._private = self._sockets / "private"
        self.job_account: str | None = None
        self.notes: list[str] = []
        self.programs = NodePrograms(self.state / "nodes")

    def prepare(self) -> None:
        """Write every folder, key and configuration file. Sets `job_account`, and `notes` for the user."""
        self.state.mkdir(parents=True, exist_ok=True)
        self.job_account, note = accounts.choose_job_account(self.state)
        self.notes = [f"{note} Customers are trusted (trust_customers)."] if note else []
        if any(spec.equipped for spec in self.clusters.values()):
            self.programs = install_programs(self.state)
            self.notes += [self.programs.note] if self.programs.note else []
        socket_folder(self.state)
        files.make_folder(self._private, 0o700)
        files.make_folder(self._shared, 0o711)
        files.write_munge_key(self._shared / "munge.key")
        files.make_database(
            self._shared / "database", self._shared / "database-tmp", self._shared / "database-install.log"
        )
        values = {"folder": self._shared, "private": all(spec.private for spec in self.clusters.values())}
        render_template("slurmdbd.conf", self._shared / "slurmdbd.conf", 0o600, **values, **self._common_values())
        (self._shared / "init.sql").write_text("CREATE DATABASE IF NOT EXISTS slurm_acct_db;\n")
        if os.getuid() == 0:
            files.make_folder(Path("/run/sshd"), 0o755)  # sshd requires it
        for spec in self.clusters.values():
            self._prepare_cluster(spec)

    def daemons(self) -> list[Daemon]:
        """Return all daemons in the order of their start. Each may start when the previous one is ready."""
        per_cluster = [d for spec in self.clusters.values() for d in self._cluster_daemons(spec)]
        return [self._munged(), self._mariadbd(), self._slurmdbd(), *per_cluster]

    def start(self, table: ProcessTable) -> None:
        """Prepare, start missing daemons, and wait until all nodes are idle and all login nodes answer."""
        self.prepare()
        for daemon in self.daemons():
            table.serve(daemon)

    def stop(self, table: ProcessTable) -> None:
        """Stop everything, including running jobs (as node failures). Only files of the state folder stay."""
        for cluster in self.clusters:
            if table.alive("munged") and table.alive(f"{cluster}-slurmctld"):
                self._fail_nodes(cluster)
        names = [daemon.name for daemon in reversed(self.daemons())]
        nodes = [node for spec in self.clusters.values() for node in spec.node_names]
        for cluster in self.clusters:
            self.stop_login(table, cluster)
        for name in [name for name in names if name in nodes]:
            table.stop(name)
        kill_steps(self._sockets, [self._folder(name) / "slurm.conf" for name in self.clusters])
        for cluster in self.clusters:
            self._end_leftovers(cluster)
        for name in names:
            table.stop(name)
        for node in nodes:
            remove_cgroups(node)
        shutil.rmtree(self._sockets, ignore_errors=True)

    def admit(self, cluster: str, address: str) -> str | None:
        """Create the account of one more customer, by wallet address; None where all jobs share our own account.

        Raises ConfigurationError for a malformed address, or when the account cannot be created.
        """
        if not self.clusters[cluster].own_accounts or accounts.choose_job_account(self.state)[0] is None:
            return None
        files.make_folder(self._folder(cluster), 0o711)
        return accounts.admit(cluster, address, self._account_book(cluster))

    def stop_login(self, table: ProcessTable, cluster: str) -> None:
        """Stop a cluster's sshd and all its open sessions."""
        if pid := table.pid(f"{cluster}-sshd"):
            kill_descendants(pid)
        table.stop(f"{cluster}-sshd")

    def _fail_nodes(self, cluster: str) -> None:
        """Cancel all jobs. Otherwise the controller would consider the killed jobs running until their time limit.

        A controller that does not answer soon is stopped anyway.
        """
        command = ["scontrol", "update", "nodename=ALL", "state=down", "reason=stopped"]
        env = {**os.environ, **self.environment(cluster)}
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(command, env=env, capture_output=True, check=False, timeout=15)

    def _end_leftovers(self, cluster: str) -> None:
        """Kill remaining processes of customers' jobs, as the epilog does. A stopped cluster has no other jobs."""
        for name in accounts.recorded_accounts(self._account_book(cluster)):
            with suppress(KeyError):  # the account is gone
                env = {"SLURM_JOB_UID": str(getpwnam(name).pw_uid)}
                subprocess.run([self._folder(cluster) / "epilog"], env=env, check=False)

    def login(self, cluster: str) -> LoginSettings:
        """Return the settings of the cluster's login node, for its supervisor. Call after `prepare`."""
        grid, ssh = f"{self._folder(cluster)}/grid", self._folder(cluster) / "ssh"
        login = LoginSettings(
            HOST, self._port(f"{cluster}-sshd"), files.own_account(), ssh / "client_ed25519", ssh / "known_hosts",
            grid, PARTITION,
        )  # fmt: skip
        if not self._are_apart(cluster):
            return replace(login, job_account=self.job_account)
        customers = CustomerAccounts(pattern=accounts.pattern(cluster))
        return replace(login, accounts=customers, own_account=self.job_account)

    def environment(self, cluster: str) -> dict[str, str]:
        """Shell environment for this cluster's `squeue`, `sacct` and so on."""
        return {"SLURM_CONF": str(self._folder(cluster) / "slurm.conf")}

    def _common_values(self) -> dict[str, Any]:
        """Return the values of all templates. They ask `port` for a port by its name."""
        common = {"port": self._port, "sockets": self._sockets, "munge_socket": self._munge_socket}
        return common | {"user": files.own_account(), "host": files.short_host_name(), "partition": PARTITION}

    @property
    def _munge_socket(self) -> Path:
        return self._sockets / "munge.sock"

    @property
    def _database_socket(self) -> Path:
        return self._private / "db.sock"

    def _are_apart(self, cluster: str) -> bool:
        """Return whether each customer has a separate account."""
        return self.clusters[cluster].own_accounts and self.job_account is not None

    def _account_book(self, cluster: str) -> Path:
        return self._folder(cluster) / "accounts"

    def _folder(self, cluster: str) -> Path:
        return self._shared / cluster

    def _prepare_cluster(self, spec: ClusterSpec) -> None:
        if spec.gpus_per_node > len(GPU_DEVICES):
            raise ConfigurationError(f"{spec.name}: a node can have at most {len(GPU_DEVICES)} GPUs.")
        folder = files.make_folder(self._folder(spec.name), 0o711)
        for name in ("slurmctld", "login-home", "grid/spool"):
            files.make_folder(folder / name, 0o700)
        for name in ("grid", "grid/jobs"):
            files.make_folder(folder / name, 0o711)
        for name in ("", *spec.node_names):
            files.make_folder(self._sockets / spec.name / name, 0o755)
        files.write_keys(folder / "ssh", self._port(f"{spec.name}-sshd"))
        epilog = folder / "epilog" if self._are_apart(spec.name) else None
        values = {"spec": spec, "folder": folder, "epilog": epilog, **self._common_values()}
        limits, prolog = memory_limits() if spec.equipped else "", folder / "task-prolog"
        if spec.equipped:
            render_template("task_prolog.sh", prolog, 0o755, folder=self.programs.folder / "bin")
        values |= {"memory_limits": limits, "task_prolog": prolog if spec.equipped else None}
        values |= {"gpu_devices": GPU_DEVICES[: spec.gpus_per_node], "use_pam": files.root_is_locked()}
        for name in ("slurm.conf", "gres.conf", "sshd_config"):
            render_template(name, folder / name, **values)
        prefix = accounts.prefix(spec.name)
        cleaner = folder / "epilog.py"
        render_template("epilog.py", cleaner, cluster=spec.name, prefix=prefix, digits=accounts.DIGITS)
        render_template("epilog.sh", folder / "epilog", 0o755, cluster=spec.name, cleaner=cleaner)
        (folder / "cgroup.conf").write_text(CGROUPS + (constraints() if limits == "cgroup" else ""))
        for name, wanted in (("jobcomp.lua", spec.hook), ("job_submit.lua", spec.guard)):
            if wanted:
                files.write_hook(name, folder, self.login(spec.name))

    def _munged(self) -> Daemon:
        argv = ["/usr/sbin/munged", "--foreground", *options(num_threads=4, group_update_time=-1)]
        argv += options(key_file=self._shared / "munge.key", log_file=self._shared / "munged.log")
        argv += options(
            socket=self._munge_socket, pid_file=self._private / "munged.pid", seed_file=self._private / "seed"
        )
        return Daemon("munged", argv, ready=partial(connects, self._munge_socket))

    def _mariadbd(self) -> Daemon:
        argv = ["/usr/sbin/mariadbd", "--no-defaults", "--skip-networking", *options(user=files.own_account())]
        argv += options(datadir=self._shared / "database", tmpdir=self._shared / "database-tmp")
        argv += options(init_file=self._shared / "init.sql", pid_file=self._private / "mariadbd.pid")
        argv += options(socket=self._database_socket, performance_schema="off", innodb_buffer_pool_size="64M")
        argv += options(innodb_log_file_size="16M", innodb_lock_wait_timeout=900, innodb_flush_log_at_trx_commit=2)
        return Daemon("mariadbd", argv, ready=partial(connects, self._database_socket))

    def _slurmdbd(self) -> Daemon:
        # slurmdbd looks for slurmdbd.conf in the folder of this slurm.conf, which need not exist.
        env = {"SLURM_CONF": str(self._shared / "slurm.conf"), "MYSQL_UNIX_PORT": str(self._database_socket)}
        return Daemon("slurmdbd", ["/usr/sbin/slurmdbd", "-D"], ready=partial(listens, self._port("slurmdbd")), env=env)

    def _cluster_daemons(self, spec: ClusterSpec) -> Iterator[Daemon]:
        folder = self._folder(spec.name)
        conf = str(folder / "slurm.conf")
        env = self.environment(spec.name)
        # The accounting must know a controller before it starts. Adding it twice changes nothing. With -i, a controller
        # that was killed before it saved all its state starts again.
        controller = 'sacctmgr -i -Q add cluster "$1"; exec /usr/sbin/slurmctld -D -i -f "$SLURM_CONF"'
        name, argv = f"{spec.name}-slurmctld", ["sh", "-c", controller, "sh", spec.name]
        yield Daemon(name, argv, partial(listens, self._port(name)), env=env)
        for node in spec.node_names:
            argv = ["/usr/sbin/slurmd", "-D", "-N", node, "-f", conf]
            # A slurmd that never registered ignores SIGTERM.
            yield Daemon(node, argv, ready=_node_serves(env, node), env=env, stop_within_s=5.0)
        sshd = ["/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "sshd_config")]
        yield Daemon(f"{spec.name}-sshd", sshd, ready=partial(listens, self._port(f"{spec.name}-sshd")))


def _node_serves(env: dict[str, str], node: str) -> Callable[[], bool]:
    """Return whether the node accepts or runs jobs. After a restart it may still run older jobs."""

    def probe() -> bool:
        command = ["sinfo", "-h", "-N", "-n", node, "-o", "%T"]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)
        return done.stdout.strip() in {"idle", "mixed", "allocated", "completing"}

    return probe
