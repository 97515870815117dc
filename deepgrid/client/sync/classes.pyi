"""The sync classes. Written by tools/sync_client from the async classes: do not edit."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Self, SupportsIndex

import pandas as pd

from deepgrid.billing.resource_use import ResourceUse
from deepgrid.billing.use_samples import UseHistory
from deepgrid.client.bills.job_receipt import JobReceipt
from deepgrid.client.bills.job_usage import When
from deepgrid.client.cluster_offers import Clusters, Offers
from deepgrid.client.display.record import JobEvent, JobRecord
from deepgrid.client.engine.output import Piece, _silent
from deepgrid.client.job_output import LINK_FOR, OutputFile, ShareLink
from deepgrid.client.job_values import Bill, Credits, Duration, JobChange, LogLine, LogStatus, Parameters, Remark, Step
from deepgrid.client.order import Preference
from deepgrid.client.quotes import Quote
from deepgrid.client.repeat.deposit import Deposit
from deepgrid.client.repeat.job_files import JobFile
from deepgrid.client.repeat.marks import Tags
from deepgrid.client.repeat.sweep_groups import SweepGroup
from deepgrid.client.settings import DEFAULTS, ClientSettings
from deepgrid.client.sweep.job_history import States
from deepgrid.client.sweep.summary import Summary, Unsubmitted
from deepgrid.client.tunnel.live_job import CommandOutput
from deepgrid.client.workflow import FilePath, Source, Workflow
from deepgrid.lifecycle.job import Job as ChainJob
from deepgrid.lifecycle.states import JobStatus

class Grid:
    """A customer's access to a grid. It connects when it is first used.

    Example:
        with Grid() as grid:
            job = grid.run("train.yaml", credits=100)
            print(job.id, job.bill.cost)
    """
    def __init__(
        self,
        key: FilePath | None = None,
        book: FilePath | None = None,
        *,
        services_url: str = "",
        settings: ClientSettings = DEFAULTS,
    ) -> None:
        """Read the key.

        Args:
            key: File of the private key. The default is DPS_KEY_FILE, or `~/.dps/key` if it is not set.
            book: Address book of the grid. The default is DEEPGRID_BOOK, or `~/.dps/grid.json` if it is not set.
            services_url: URL of the services, instead of the one in the address book.
            settings: Times and limits.

        Raises:
            ConfigurationError: There is no key, or others can read its file.
        """
    @property
    def address(self) -> str:
        """Address of the customer. Raises InputError for a grid that was opened read-only."""
    def jobs(
        self,
        status: States | None = None,
        since: datetime | None = None,
        *,
        customer: str | None = None,
        tags: Tags | None = None,
    ) -> Jobs:
        """Return the jobs of one customer, newest first. They are read in pages, as the caller asks for them.

        Args:
            status: Only jobs in this state, or one of these, such as `"running"`.
            since: Only jobs that were submitted at this time or later. Needs a time zone.
            customer: Address of the customer. The default is the client's own address.
            tags: Only own jobs with all of these tags, such as `["project=wing"]`. A name without `=` means any value.

        Returns:
            The jobs, to iterate over. What they wait for is known after `refresh`. Reading them raises ChainError if
            the node does not answer and, with `tags`, ServiceError if the services do not.

        Raises:
            InputError: A state, time or tag is wrong, or tags of another customer's jobs are asked for.
        """
    def usage(self, since: When = None, until: When = None, by: str = "job") -> pd.DataFrame:
        """Return the cost of your jobs, in the period in which they were settled.

        Args:
            since: Start, such as `"2026-11-01"`, in UTC unless it names a time zone; by default the first job.
            until: End of the period, which is not part of it; by default now.
            by: One row per `job`, `month`, `cluster` or `name`.

        Returns:
            The rows. Columns that end with `_wei` hold exact ints of wei.
        """
    def sweeps(self, *, tags: Tags | None = None) -> list[SweepGroup]:
        """Return your sweeps, newest first, including sweeps of other processes.

        Args:
            tags: Only sweeps with all of these tags.

        Returns:
            The sweeps, each with its jobs.

        Raises:
            ServiceError: The services do not answer.
            ChainError: The node does not answer.
        """
    def sweep(self, sweep_id: str) -> SweepGroup:
        """Return one of your sweeps.

        Args:
            sweep_id: Its id, or the beginning of it.

        Returns:
            The sweep with its jobs.

        Raises:
            NotFound: There is no such sweep.
            InputError: Several sweeps begin so.
            GridError: The node or the services do not answer.
        """
    def retry_sweep(
        self,
        sweep_id: str,
        *,
        secrets: Mapping[str, str] | None = None,
        own_secrets: Mapping[int, Mapping[str, str]] | None = None,
        after: SupportsIndex | None = None,
        after_any: SupportsIndex | None = None,
        approve: bool = True,
    ) -> list[int]:
        """Repeat the jobs of a sweep that are over and did not finish. A second call requests nothing twice.

        Args:
            sweep_id: Its id, or the beginning of it.
            secrets: Values of masked secrets by their places, as `Job.file` lists them.
            own_secrets: The same by the numbers of failed jobs, for secrets that differ: parameters of the sweep. A
                kept parameter is taken from here only.
            after: A job, or its number, that must finish before all of these. The default is the wish of the earlier
                jobs, if no cluster had them.
            after_any: A job that must end before all of these, in any way.
            approve: Raise an allowance that is too low, to exactly the credits of these jobs.

        Returns:
            Numbers of the new jobs.

        Raises:
            NotFound: There is no such sweep, or the files of its jobs are not kept any more.
            InputError: A masked secret is missing, there are too few credits, or the job before has failed.
            GridError: The node or the services do not answer.
        """
    @classmethod
    def read_only(cls, book: FilePath | None = None, *, settings: ClientSettings = DEFAULTS) -> Self:
        """Return the grid without a key: clusters, prices, and the public part of all jobs.

        Args:
            book: Address book of the grid, as for the constructor.
            settings: Times and limits.

        Returns:
            The grid. What needs a key raises InputError.
        """
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def close(self) -> None:
        """Close the connections. Jobs continue."""
    @property
    def wallet(self) -> Wallet:
        """The customer's credits, allowance and gas."""
    def workflow(self, source: Source | Workflow, *, ignore_unknown_fields: bool = False) -> Workflow:
        """Read and check a workflow, and fetch its modules.

        Args:
            source: A path, YAML text, or the content as a mapping.
            ignore_unknown_fields: Leave out fields that are not of the language, with a warning.

        Returns:
            The workflow.

        Raises:
            InputError: It has faults, one line each.
        """
    def clusters(self) -> Clusters:
        """Return the clusters of the grid, with hardware, prices and labels.

        Returns:
            All clusters, including those that are banned or wait for approval.

        Raises:
            ChainError: The node does not answer.
        """
    def estimate(
        self,
        workflow: Source | Workflow,
        *,
        minutes: int = 60,
        uses: Sequence[str] = (),
        affinities: Sequence[str] = (),
    ) -> Quote:
        """Return what each cluster would charge for a job. Nothing is sent.

        Args:
            workflow: A path, YAML text, a mapping, or a workflow.
            minutes: Minutes that the job runs.
            uses: Labels that the cluster must have, such as `os=linux`.
            affinities: Conditions on labels of the cluster, such as `mem>=4000`.

        Returns:
            The quote, cheapest offer first.

        Raises:
            InputError: The workflow or an argument is wrong.
            ChainError: The node does not answer.
        """
    def deposit(
        self,
        workflow: Source | Workflow,
        time: Duration,
        *,
        uses: Sequence[str] = (),
        affinities: Sequence[str] = (),
        max_price: Credits | None = None,
    ) -> Deposit:
        """Return what a job would lock to run for a time, and its cost at each cluster. Nothing is sent.

        Args:
            workflow: A path, YAML text, a mapping, or a workflow.
            time: How long the job may run, such as `"4h"`. Partial minutes are rounded up.
            uses: Labels that the cluster must have, such as `os=linux`.
            affinities: Conditions on labels of the cluster, such as `mem>=4000`.
            max_price: Maximum credits per minute. The default is no limit.

        Returns:
            The deposit. `print` shows it as a sentence.

        Raises:
            InputError: The workflow or an argument is wrong, or no cluster can take the job now.
            ChainError: The node does not answer.
        """
    def offers(
        self,
        workflow: Source | Workflow,
        credits: Credits | None = None,
        *,
        time: Duration | None = None,
        uses: Sequence[str] = (),
        affinities: Sequence[str] = (),
        min_time: Duration | None = None,
        max_price: Credits | None = None,
        provider: str | None = None,
    ) -> Offers:
        """Return each cluster's offer for a job: price, time, estimated start, speed. Nothing is sent.

        Args:
            workflow: A path, YAML text, a mapping, or a workflow.
            credits: Credits that would be locked.
            time: Instead of credits: how long the job may run, such as `"4h"`.
            uses: Labels that the cluster must have, such as `os=linux`.
            affinities: Conditions on labels of the cluster, such as `mem>=4000`.
            min_time: Time that the credits must buy, such as `"2h"`.
            max_price: Maximum credits per minute. The default is no limit.
            provider: Name or address of the only cluster to look at.

        Returns:
            All approved clusters: those that can take the job by price, then the others with the reason.

        Raises:
            InputError: The workflow or an argument is wrong.
            NotFound: No approved cluster has that name or address.
            ChainError: The node does not answer.
        """
    def wallet_of(self, address: str) -> Wallet:
        """Return the balances of any address.

        Args:
            address: The address, with its checksum.

        Returns:
            Its wallet. Only your own account's credits can be spent.

        Raises:
            InputError: The address has no valid checksum.
        """
    def submit(
        self,
        workflow: Source | Workflow,
        credits: Credits | None = None,
        *,
        time: Duration | None = None,
        name: str | None = None,
        uses: Sequence[str] = (),
        affinities: Sequence[str] = (),
        delegate_spending: bool = False,
        approve: bool = True,
        quote: Quote | None = None,
        key: str | None = None,
        min_time: Duration | None = None,
        max_price: Credits | None = None,
        give_up_after: Duration | None = None,
        prefer: Preference = "balanced",
        tags: Tags | None = None,
        note: str = "",
        send: FilePath | Sequence[FilePath] = (),
        input_from: SupportsIndex | None = None,
        retries: int = 0,
        after: SupportsIndex | None = None,
        after_any: SupportsIndex | None = None,
        cache: bool = False,
        private: bool = False,
    ) -> Job:
        """Submit a job, and lock credits for it. Credits that it does not use are returned.

        Args:
            workflow: A path, YAML text, a mapping, or a workflow.
            credits: Credits to lock.
            time: Instead of credits: how long the job may run, such as `"4h"`. This locks the price at the most
                expensive cluster that can take it now. Partial minutes are rounded up.
            name: Name of at most 32 bytes. The default is the file's name.
            uses: Labels that the cluster must have, such as `os=linux`.
            affinities: Conditions on labels of the cluster, such as `mem>=4000`.
            delegate_spending: Let the grid top up the job from the allowance.
            approve: Raise an allowance that is too low, to exactly these credits.
            quote: A quote that must still hold: it is recent, and no price rose.
            key: Idempotency key. The same key with the same workflow finds the job that exists.
            min_time: Time that the credits must buy at the cluster, such as `"2h"`. The default is `time`, or a minute.
            max_price: Maximum credits per minute, which the contract enforces; `"any"` for no ceiling. The default is
                the highest price in the quote, or among the clusters that can take the job now.
            give_up_after: If no cluster has the job after this time, 10 minutes or more, it is cancelled and refunded.
            prefer: What counts most when a cluster is chosen: `balanced`, `price`, `start` or `speed`.
            tags: Tags to find the job by, such as `["project=wing"]`. They are not on chain.
            note: A note on the job, of at most 500 characters.
            send: Files and folders of this machine, which the job finds in `$DEEPSQUARE_INPUT`.
            input_from: Another job of the same customer, or its number, whose output becomes the input.
            retries: While you wait for it, retry the job up to this many times if it fails for a reason other than its
                program. It then has the number of its last attempt.
            after: A job, or its number, that must finish first. If it does not, the new job ends with a refund.
            after_any: A job that must end first, in any way.
            cache: If an equal job that was submitted so has finished, return it, and lock nothing.
            private: Encrypt the files, and let the job encrypt its output, for this key and the clusters that fit.

        Returns:
            The job.

        Raises:
            InputError: The workflow or an argument is wrong, or there are too few credits.
            QuoteExpired: The quote holds no more.
            IdempotencyConflict: The key was used with another workflow.
            ContractError: The contract refuses the request.
            ServiceError: The services do not answer, or refuse the definition.
            ChainError: The node does not answer. If it is not transient, the job may have been submitted.
        """
    def run(self, workflow: Source | Workflow, credits: Credits | None = None, **options: Any) -> Job:
        """Submit a job, wait until it is over, and check that it finished.

        Args:
            workflow: A path, YAML text, a mapping, or a workflow.
            credits: Credits to lock; or give `time`.
            options: Further options of `submit`.

        Returns:
            The finished job.

        Raises:
            JobError: The job did not finish.
            GridError: As `submit` raises.
        """
    def map(
        self,
        workflow: Source | Workflow,
        parameters: Iterable[Mapping[str, object]],
        credits: Credits | None = None,
        *,
        time: Duration | None = None,
        at_once: int = 20,
        most: Credits | None = None,
        pack: int = 1,
        key: str | None = None,
        name: str | None = None,
        uses: Sequence[str] = (),
        affinities: Sequence[str] = (),
        delegate_spending: bool = False,
        min_time: Duration | None = None,
        max_price: Credits | None = None,
        give_up_after: Duration | None = None,
        prefer: Preference = "balanced",
        tags: Tags | None = None,
        note: str = "",
        send: FilePath | Sequence[FilePath] = (),
        input_from: SupportsIndex | None = None,
        retries: int = 0,
        after: SupportsIndex | None = None,
        after_any: SupportsIndex | None = None,
        private: bool = False,
        approve: bool = True,
        progress: bool = True,
    ) -> JobSet:
        """Submit one job per parameter set, a limited number at a time, in the background while the grid is open.

        Args:
            workflow: A path, YAML text, a mapping, or a workflow.
            parameters: Parameter sets: values of environment variables of the job, by name.
            credits: Credits to lock for each job.
            time: Instead of credits: how long each job may run, as for `submit`.
            at_once: Most jobs that wait or run at the same time.
            most: Maximum credits locked for these jobs at the same time. None means no limit.
            pack: Parameter sets per job, which runs them one after another; for runs of seconds.
            key: Idempotency key. A repeated call with the same key continues where the interrupted one stopped.
            name: Name of all jobs, of at most 32 bytes. The default is the file's name.
            uses: Labels that the cluster must have, such as `os=linux`.
            affinities: Conditions on labels of the cluster, such as `mem>=4000`.
            delegate_spending: Let the grid top up the jobs from the allowance.
            min_time: Time that the credits must buy at the cluster, such as `"2h"`. The default is one minute.
            max_price: Maximum credits per minute, as for `submit`. The default is of the start of this call.
            give_up_after: A job that no cluster has after this time is cancelled and refunded, as for `submit`.
            prefer: What counts most when a cluster is chosen: `balanced`, `price`, `start` or `speed`.
            tags: Tags of all jobs, as for `submit`.
            note: A note on all jobs.
            send: Files and folders for each job, as for `submit`. They are sent and stored once.
            input_from: Another job, or its number, whose output becomes the input of each.
            retries: Retry a job up to this many times if it fails for a reason other than its program.
            after: A job, or its number, that must finish before all of these.
            after_any: A job that must end before all of these, in any way.
            private: Encrypt the files, as for `submit`.
            approve: Raise an allowance that is too low, to exactly the credits of the jobs that are requested together.
            progress: Show a bar while `wait` or `results` waits, in a terminal or notebook.

        Returns:
            The set of the jobs.

        Raises:
            InputError: The workflow, a parameter set or an argument is wrong. Nothing was locked.
            ChainError: The node does not answer.
        """
    def job(self, job_id: int) -> Job:
        """Return a job of any customer.

        Args:
            job_id: Number of the job.

        Returns:
            The job.

        Raises:
            NotFound: There is no such job.
            ChainError: The node does not answer.
        """
    def watch(self, cursor: str | None = None) -> Iterator[JobChange]:
        """Yield changes of your jobs: new jobs and new states. It never ends; outages of the node only delay it.

        A program that starts again with the cursor of the last change that it handled gets each later change once. If
        the chain replaces blocks, a change may vanish or come again: see `ClientSettings.confirmations`.

        Args:
            cursor: The cursor of a change. None means from now on; `"start"` means all changes since the first job.

        Yields:
            The changes, in the order of the chain.

        Raises:
            InputError: The text is not a cursor, or the grid was opened read-only.
        """

class Job:
    """A job. Its attributes are what the client read last: `refresh`, `wait` and `watch` read it again."""
    def receipt(self) -> JobReceipt:
        """Fetch the receipt that the job's provider signed at its end. It is checked: by signature, and by the chain.

        Returns:
            The receipt, as JSON, text or PDF.

        Raises:
            NotFound: There is none: the job is not over, or its provider signs within the next minutes.
            AccessDenied: It is another customer's job.
            ServiceError: The services do not answer, or sent a receipt that does not fit the job.
        """
    def resource_use(self) -> ResourceUse:
        """Return what the job used of what it asked for, as its provider signed it in the receipt.

        Returns:
            The figures, each None if the cluster does not know it.

        Raises:
            GridError: As `receipt` does: NotFound while there is none.
        """
    def use_history(self) -> UseHistory:
        """Return what the job used over time, as its provider's Slurm measured it while the job ran.

        A job that runs has its first sample about half a minute after its start, and then rarer and rarer ones. Nothing
        of it is signed, and the bill does not depend on it.

        Returns:
            At most 64 samples, oldest first, and what they say together.

        Raises:
            NotFound: Nothing is known: the job is too short or too new, or its cluster does not measure running jobs.
            AccessDenied: It is another customer's job.
            ServiceError: The services do not answer.
        """
    def exec(self, command: Sequence[str] | str, *, input: bytes | str = b"") -> CommandOutput:
        """Run a command in the running job, on its first node, as the job's account.

        It runs alongside the job's own steps, in the job's working folder, and outside of its containers.

        Args:
            command: The program and its arguments. A text is a command line for `sh`.
            input: Its standard input.

        Returns:
            Output and exit status. The status of a command that failed is no error.

        Raises:
            InputError: The job does not run.
            AccessDenied: It is another customer's job.
            ServiceError: The cluster takes no sessions, or the session ended before the command.
        """
    def forward(self, port: int, local_port: int = 0, *, say: Callable[[str], None] | None = None) -> PortForward:
        """Make a port of the running job reachable on this machine's loopback, until it is closed.

        Args:
            port: A port on the loopback of the job's first node.
            local_port: The port on this machine; 0 for a free one.
            say: Called with a sentence when a connection fails in the job.

        Returns:
            The forward, with its `port` and `url`. Close it at the end.

        Raises:
            InputError: The job does not run, or the port on this machine is taken.
            AccessDenied: It is another customer's job.
            ServiceError: The cluster takes no sessions.
        """
    def shell(self, command: Sequence[str] = ()) -> int:
        """Join this process's terminal to a shell in the running job, until the shell ends.

        Args:
            command: A program with its arguments, in place of the account's shell.

        Returns:
            The exit status of the shell.

        Raises:
            InputError: The job does not run, or this process has no terminal.
            AccessDenied: It is another customer's job.
            ServiceError: The cluster takes no sessions, or the session ended before the shell.
        """
    @property
    def id(self) -> int:
        """Number of the job."""
    def logs(
        self, follow: bool = False, *, tail: int | None = None, say: Callable[[str], None] = _silent
    ) -> Iterator[LogLine]:
        """Yield the lines of the job's output. Control sequences other than colours are removed.

        Args:
            follow: Continue until the output is complete. Outages of the services only delay it.
            tail: Begin with the last `tail` lines that are stored now. None means with the first line.
            say: Gets a sentence about each outage, when the job starts again on another cluster, and at the end if
                the log lacks a part of the output.

        Yields:
            The lines.

        Raises:
            AccessDenied: The job is another customer's.
            InputError: `tail` is negative.
            ServiceError: Without `follow`, the services do not answer.
        """
    def output(self, follow: bool = False, *, say: Callable[[str], None] = _silent) -> Iterator[bytes]:
        """Yield the job's output as it was written, in pieces of any size. When another cluster starts it, the output
        begins again.

        Args:
            follow: Continue until the output is complete.
            say: As for `logs`.

        Yields:
            Pieces of the output.
        """
    def pieces(self, follow: bool = False, *, say: Callable[[str], None] = _silent) -> Iterator[Piece]:
        """Yield the job's output as `output` does, with the times at which it was stored.

        Args:
            follow: Continue until the output is complete.
            say: As for `logs`.

        Yields:
            Pieces. `piece.chunk.parts()` has bytes with their unix seconds, `piece.claim` counts the clusters from 1.
        """
    def download_log(self, to: FilePath, follow: bool = False) -> LogStatus:
        """Write the job's output to a file, byte by byte as the job wrote it. A file that is there is replaced.

        Args:
            to: The file.
            follow: Continue until the output is complete.

        Returns:
            How complete the file is; `size` is the number of its bytes.

        Raises:
            InputError: The file cannot be written.
            AccessDenied: The job is another customer's.
            ServiceError: Without `follow`, the services do not answer.
        """
    def log_status(self) -> LogStatus:
        """Return how complete the job's log is at the moment.

        Returns:
            Its size, and what it lacks.

        Raises:
            AccessDenied: The job is another customer's.
            ServiceError: The services do not answer.
        """
    def files(self) -> list[OutputFile]:
        """Return the files that the grid keeps of this job, in the order of their names.

        Returns:
            The files.

        Raises:
            NotFound: The grid has none: the job is not over, left none, or they were deleted.
            AccessDenied: They are private, and were changed, or encrypted with another wallet.
            ServiceError: The services do not answer.
        """
    def share(self, for_: Duration = LINK_FOR) -> ShareLink:
        """Make a link to the files of this job. Anybody who has it can read them, without a key.

        Args:
            for_: How long it works, in seconds or as a text such as `7d`; at most 366 days.

        Returns:
            The link. Its address is shown only this once.

        Raises:
            NotFound: The grid has no files of this job.
            InputError: The time is wrong, or the files are private.
        """
    def shares(self) -> list[ShareLink]:
        """Return the links to this job's files, oldest first, without their addresses."""
    def unshare(self) -> None:
        """Revoke all links to the files of this job."""
    def delete_files(self) -> None:
        """Delete the files that the grid keeps of this job, and all links to them."""
    @property
    def cached(self) -> bool:
        """Whether `submit(cache=True)` found this job in place of a new one, so that nothing was locked."""
    @property
    def retries_left(self) -> int:
        """How often `retries` may still run the job again; 0 once it needs no retry."""
    def file(self) -> JobFile:
        """Return the workflow file of an own job, with its tags and note. Secrets in it are masked.

        Returns:
            The file. Modules in it are resolved, and comments are gone.

        Raises:
            NotFound: The job belongs to another customer, or its file is no longer kept.
            ServiceError: The services do not answer.
        """
    def again(
        self,
        workflow: Source | Workflow | None = None,
        *,
        secrets: Mapping[str, str] | None = None,
        credits: Credits | None = None,
        time: Duration | None = None,
        min_time: Duration | None = None,
        max_price: Credits | None = None,
        name: str | None = None,
        tags: Tags | None = None,
        note: str | None = None,
        approve: bool = True,
        key: str | None = None,
        after: SupportsIndex | None = None,
        after_any: SupportsIndex | None = None,
    ) -> Self:
        """Submit the job again, with the terms of the earlier job.

        Args:
            workflow: An edited workflow. The default is the kept file of the job.
            secrets: Values of the masked secrets in the kept file, keyed by their paths as `file` lists them.
            credits: Credits to lock. The default is the amount that the earlier job locked.
            time: Instead of credits: how long the job may run, such as `"4h"`.
            min_time: Time that the credits must buy at the cluster. The default is `time`, or the earlier job's minimum
                time.
            max_price: Maximum credits per minute. The default is the ceiling of the earlier job.
            name: Name of the job. The default is the earlier name.
            tags: Tags of the job. The default is the earlier tags.
            note: Note on the job. The default is the earlier note.
            approve: Raise an allowance that is too low, to exactly the credits.
            key: Idempotency key, as for `submit`.
            after: A job, or its number, that must finish first. The default is the earlier job's wish, if no cluster
                had it.
            after_any: A job that must end first, in any way.

        Returns:
            The new job.

        Raises:
            NotFound: The file is not kept any more, or is another customer's.
            InputError: A masked secret is missing, or an argument is wrong.
            GridError: As `submit` raises.
        """
    def deposit_again(
        self, workflow: Source | Workflow, time: Duration, *, max_price: Credits | None = None
    ) -> Deposit:
        """Return what the job would lock to run again for a time, and its cost at each cluster. Nothing is sent.

        Args:
            workflow: Its workflow.
            time: How long the job may run, such as `"4h"`.
            max_price: Maximum credits per minute. The default is the ceiling of the earlier job.

        Returns:
            The deposit.

        Raises:
            InputError: No cluster can take the job now, or an argument is wrong.
            ChainError: The node does not answer.
        """
    def tag(self, tags: Tags | None = None, *, note: str | None = None) -> None:
        """Replace the tags of an own job, or its note.

        Args:
            tags: The tags, such as `{"project": "wing"}` or `["project=wing"]`. None leaves them as they are.
            note: The note. None leaves it as it is.

        Raises:
            NotFound: It is another customer's job, or it is not kept any more.
            InputError: A tag or the note is too long.
            ServiceError: The services do not answer.
        """
    @property
    def name(self) -> str:
        """Name of the job. Its customer chose it."""
    @property
    def status(self) -> JobStatus:
        """State of the job; `status.words` says it in words."""
    @property
    def over(self) -> bool:
        """Whether the job is over and its bill final."""
    @property
    def customer(self) -> str:
        """Address of the customer."""
    @property
    def cluster(self) -> str:
        """Name of the cluster; empty while none is assigned."""
    @property
    def provider(self) -> str | None:
        """Address of the cluster's provider; None while no cluster is assigned."""
    @property
    def waits_for(self) -> str:
        """What the job waits for, and why; empty while it runs and when it is over."""
    @property
    def remarks(self) -> tuple[Remark, ...] | None:
        """Remarks of the grid on the job, oldest first; None if the services did not answer."""
    @property
    def outcome(self) -> str:
        """How the job ended, in words; empty until then."""
    @property
    def exit_code(self) -> int | None:
        """Exit status as a shell gives it: 3, or 137 after signal 9. None if it has none."""
    @property
    def exit_status(self) -> int | None:
        """Exit status of `dps` for this job: the job's own, or one for its final state. None until it is over."""
    @property
    def bill(self) -> Bill:
        """The bill of a job that is over.

        Raises:
            InputError: The job is not over.
        """
    @property
    def locked(self) -> Decimal:
        """Credits that are, or were, locked for the job."""
    @property
    def held(self) -> Decimal:
        """Credits that the contract still holds for the job; 0 when it is over."""
    @property
    def held_until(self) -> datetime | None:
        """When a further `cancel` returns the credits that are held, if the cluster reports nothing before.

        None unless a cancel was requested.
        """
    @property
    def rate(self) -> Decimal | None:
        """Credits per minute; None while no cluster is assigned."""
    @property
    def submitted(self) -> datetime | None:
        """When the job was requested."""
    @property
    def started(self) -> datetime | None:
        """When its cluster reported that it runs; None if it never ran."""
    @property
    def ended(self) -> datetime | None:
        """When it was settled; None until then."""
    @property
    def on_chain(self) -> ChainJob:
        """All values of the job on chain: amounts in wei, times in unix seconds, memory in MB."""
    @property
    def parameters(self) -> Parameters | None:
        """The parameters that `map` gave to the job, with `pack` a tuple of them; None for other jobs."""
    @property
    def earlier_attempts(self) -> list[int]:
        """Numbers of the failed jobs that this one repeats, by `retries`, oldest first."""
    @property
    def last_transaction(self) -> str:
        """Hash of the last transaction that `cancel` or `top_up` sent; empty before."""
    def refresh(self) -> Self:
        """Read the job, its cluster and its remarks again.

        Returns:
            The job itself.

        Raises:
            ChainError: The node does not answer.
        """
    def events(self) -> Iterator[JobEvent]:
        """Yield the live view of the job, from its request until it is over.

        Outages of the node and of the services only delay it. Without a key it has no remarks and no output.

        Yields:
            Step for each state, Remark, LogLine, ViewMessage for an outage, and at the end one JobEnd with the bill.

        Raises:
            ChainError: The node refuses to answer.
        """
    def record(self) -> JobRecord:
        """Read the job again with all that is known about it: history, division of its deposit, remarks.

        Returns:
            The record.

        Raises:
            ChainError: The node does not answer.
        """
    def download(
        self, to: FilePath, only: str | Sequence[str] | None = None, *, workflow: Source | Workflow | None = None
    ) -> list[Path]:
        """Fetch the output: from the grid if it keeps it, otherwise from the bucket or web address in the workflow.

        Files are checked by size, and by checksum where the grid or a bucket gives one. An interrupted download
        continues where it stopped, and existing files are kept. Several files that came as one archive are unpacked.

        Args:
            to: The target folder. It is created if it is missing.
            only: Patterns of names, such as `*.png`; `*` also matches `/`. None means all files.
            workflow: The workflow of the job. It is needed only if another machine submitted the job, and the output
                has a secret.

        Returns:
            The files, in the order of their names.

        Raises:
            NoOutput: The workflow is unknown or names no output, or nothing is there.
            NotFound: The file of the job is not kept any more, or is another customer's.
            ServiceError: The storage does not answer, or refuses.
            InputError: The folder cannot be written, or two files would have the same path.
            ConfigurationError: The extra `s3` is missing.
        """
    @property
    def history(self) -> list[Step]:
        """All changes of its state, oldest first."""
    @property
    def transactions(self) -> list[str]:
        """Hashes of the transactions that changed its state, oldest first."""
    def wait(self, timeout: Duration | None = None) -> Self:
        """Wait until the job is over. Outages of the node only delay it. With `retries` it is run again here.

        Args:
            timeout: Longest wait, in seconds or as a text such as `2h`. None means without a limit.

        Returns:
            The job itself.

        Raises:
            WaitTimeout: The time limit is over. The job continues.
            GridError: With `retries`, the job cannot be run again.
        """
    def check(self) -> Self:
        """Raise an error unless the job finished successfully.

        Returns:
            The job itself.

        Raises:
            InputError: The job is not over.
            JobFailed: It failed. The error has the exit code and the last lines of its output.
            JobCancelled: It was cancelled.
            OutOfCredits: It used up its credits.
            JobPanicked: The grid ended it with a full refund.
        """
    def watch(self) -> Self:
        """Show the job and its output until it is over: one cell of a notebook is redrawn, elsewhere lines are printed.

        Outages only delay it. Interrupting it ends the view, not the job.

        Returns:
            The job itself.

        Raises:
            ConfigurationError: In a notebook, the extra `notebook` is missing.
        """
    def cancel(self) -> Self:
        """Cancel the job: at once before a cluster has claimed it, from then on by a request to the cluster.

        If the cluster does not answer in time, a further call returns what cannot be billed any more. From `held_until`
        on, it ends the job and returns the rest.

        Returns:
            The job itself.

        Raises:
            ContractError: It is over, or is another customer's.
            ChainError: The node does not answer. If it is not transient, the transaction may have been sent.
        """
    def after_cancel(self) -> str:
        """Return the effect of the job's cancellation, in words.

        Returns:
            How many credits came back, or what the cluster does next and by when.

        Raises:
            ChainError: The node does not answer.
        """
    def top_up(self, credits: Credits, *, approve: bool = True) -> Self:
        """Buy more time for a job that a cluster has claimed. What it does not use is returned.

        Args:
            credits: Credits to add.
            approve: Raise an allowance that is too low to exactly this amount.

        Returns:
            The job itself.

        Raises:
            ContractError: No cluster has claimed it, or it is over.
            InputError: There are too few credits.
            ChainError: The node does not answer. If it is not transient, the transaction may have been sent.
        """
    def limit_top_ups(self, credits: Credits) -> Self:
        """Let the grid top up the job from the allowance by at most this much from now on.

        Args:
            credits: Credits in total; 0 forbids automatic top-ups.

        Returns:
            The job itself.

        Raises:
            ContractError: The job is over, or belongs to another customer.
            ChainError: The node does not answer. If it is not transient, the transaction may have been sent.
        """
    def __index__(self) -> int: ...
    def _repr_html_(self) -> str: ...

class JobSet:
    """Jobs with parameters. Some may not be requested yet. `Grid.map` makes it.

    The jobs are requested in the background, while the grid is open. Iterating over the set gives the jobs that were
    requested so far, in the order of their parameters; `len` counts all.
    """
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Job]: ...
    @property
    def ids(self) -> list[int]:
        """Numbers of the jobs that were requested so far, in the order of their parameters."""
    @property
    def sweep_id(self) -> str:
        """Id of the sweep, by which `Grid.sweep` and `dps sweep` find it again."""
    @property
    def refused(self) -> list[Unsubmitted]:
        """Placeholders for the parameter sets that have no job and will get none, in the order of their parameters."""
    @property
    def unnoted(self) -> int:
        """Number of jobs of the sweep whose place, tags and note the services do not keep, because they failed."""
    def requested(self) -> Self:
        """Wait until all jobs were requested, or were refused.

        Returns:
            The set itself.

        Raises:
            GridError: No more jobs can be requested, for example for lack of credits.
        """
    def as_completed(self) -> Iterator[Job | Unsubmitted]:
        """Yield the jobs, each once it is over. A job that failed is one of them, not an error.

        Yields:
            The jobs in the order in which they end. An `Unsubmitted` represents a parameter set whose definition was
            refused.

        Raises:
            GridError: No more jobs can be requested, for example for lack of credits. All others were yielded before.
        """
    def results(self) -> list[Job | Unsubmitted]:
        """Wait until all jobs are over.

        Returns:
            The jobs in the order of their parameters, as `as_completed` yields them.

        Raises:
            GridError: No more jobs can be requested. The others are over.
        """
    def wait(self, timeout: Duration | None = None) -> Self:
        """Wait until all jobs are over.

        Args:
            timeout: Longest wait, in seconds or as a text such as `2h`. None means without a limit.

        Returns:
            The set itself.

        Raises:
            WaitTimeout: The time limit is over. The jobs continue.
            GridError: No more jobs can be requested. The others are over.
        """
    def finished(self) -> Self:
        """Return the part of the set that finished successfully so far.

        Returns:
            A set of these jobs.
        """
    def failed(self) -> Self:
        """Return the part of the set that is over so far and did not finish, however it ended.

        Returns:
            A set of these jobs.
        """
    def retry(self) -> Self:
        """Run the parameter sets of this set again, with the same limits. `failed().retry()` repeats what failed.

        Under a key it finds the jobs of an earlier call of the same retry.

        Returns:
            The set of the new jobs.

        Raises:
            InputError: Some jobs of this set are not over, or the job before all of them has failed.
        """
    def cancel(self) -> Self:
        """Cancel all jobs of the set that are not over, and request no more.

        Returns:
            The set itself. Claimed jobs end a little later.

        Raises:
            ChainError: The node does not answer.
        """
    def summary(self) -> Summary:
        """Count the jobs by their states now, and their credits.

        Returns:
            The summary. `print` shows it as a table.

        Raises:
            ChainError: The node does not answer.
        """
    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per requested job. It needs pandas, which the extra `bills` installs.

        Returns:
            The table, with a column per parameter.

        Raises:
            ConfigurationError: pandas is not installed.
        """
    def _repr_html_(self) -> str: ...

class Jobs:
    """The jobs of one customer, newest first. `Grid.jobs` makes it.

    Nothing is read before it is asked for. Only numbers of jobs are kept, so a long history needs little memory. The
    first reading decides which jobs are in it; call `Grid.jobs` again to find newer ones.
    """
    def __iter__(self) -> Iterator[Job]:
        """Yield the jobs. They are read in pages, as the caller asks for them."""
    def count(self) -> int:
        """Count the jobs. With a filter this reads all of them.

        Returns:
            Their number.

        Raises:
            GridError: The node or, with tags, the services do not answer.
        """
    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per job. It needs pandas, which the extra `bills` installs.

        Returns:
            The table.

        Raises:
            ConfigurationError: pandas is not installed.
            GridError: The node or, with tags, the services do not answer.
        """
    def __len__(self) -> int: ...
    def __getitem__(self, at: int | slice) -> Any:
        """Return one job, or a part such as `jobs[:20]`."""
    def _repr_html_(self) -> str: ...

class PortForward:
    """A port of the job's first node, which programs on this machine reach at `url`. Close it at the end."""
    @property
    def url(self) -> str:
        """Address of the forwarded page."""
    @property
    def port(self) -> int:
        """The port on this machine."""
    @property
    def job_port(self) -> int:
        """The port in the job."""
    def close(self) -> None:
        """End the forward and its connections."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def wait(self) -> None:
        """Return never; raises when the session ends, for example because the job is over.

        Raises:
            ServiceError: The session ended.
        """

class Wallet:
    """The balances of one address. `Grid.wallet` is the customer's."""
    @property
    def address(self) -> str:
        """The address."""
    @property
    def credits(self) -> Decimal:
        """Credits that can be spent. Deposits of jobs that are not over are not part of it."""
    @property
    def allowance(self) -> Decimal:
        """Credits that the grid may lock for jobs and top-ups."""
    @property
    def gas(self) -> Decimal:
        """The chain's own currency, which pays for transactions, in units of 10**18 wei."""
    def set_allowance(self, amount: Credits) -> str:
        """Let the grid lock up to `amount` of your credits.

        Args:
            amount: Credits; 0 takes the allowance back.

        Returns:
            Hash of the transaction.

        Raises:
            InputError: The amount is not exact.
            ChainError: The node does not answer.
        """
    def transfer(self, to: str, amount: Credits) -> str:
        """Send credits to another address.

        Args:
            to: The address, with its checksum.
            amount: Credits.

        Returns:
            Hash of the transaction.

        Raises:
            InputError: The address has no valid checksum, or the amount is not exact.
            ContractError: There are too few credits.
            ChainError: The node does not answer.
        """
    def _repr_html_(self) -> str:
        """Return the display of the sync class. While the node does not answer, it has the address only."""
