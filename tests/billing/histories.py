"""Generates histories of jobs that obey the contract, as entries of the ledger and of Slurm's accounting."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from deepgrid.billing.entries import Claim, GivenBack, Ledger, Purpose, Run, Runs, Settlement, Span, Transfer
from deepgrid.billing.formulas import affordable_minutes, bill
from deepgrid.lifecycle.job import Job, JobDefinition
from deepgrid.lifecycle.minutes import elapsed_minutes, started_minutes
from deepgrid.lifecycle.states import JobStatus

S = JobStatus
MIDNIGHT = 1_800_000_000 // 86400 * 86400
DAY = Span(MIDNIGHT, MIDNIGHT + 86400)
ME, ANOTHER, CUSTOMER, CONTRACT = "0xMe", "0xAnother", "0xCustomer", "0xContract"
FEE_MINUTES, TIMEOUT_MINUTES, CUT_PERCENT = 5, 10, 20
CREDIT = 10**18
STATES = {S.FAILED: "FAILED", S.CANCELLED: "CANCELLED", S.OUT_OF_CREDITS: "TIMEOUT"}  # in Slurm
ONE_CPU = JobDefinition(0, 100, 1, 1, "")


@dataclass(frozen=True)
class Plan:
    """One job. `end` is its last state, hot or cold. Times are seconds after `submit` (unix seconds)."""

    end: JobStatus = S.FINISHED
    submit: int = MIDNIGHT + 3600
    locked: int = 100 * CREDIT
    rate: int = CREDIT
    top_up: int = 0
    ran_s: int = 90
    report_after_s: int = 5  # delay of the supervisor's reports of start and end
    clock_s: int = 0  # lead of Slurm's clock over the chain's
    cancel_requested: bool = False
    released_before_s: int = 0  # seconds before the settlement when half of the refund came back; 0 for never
    fault: bool = False
    provider: str = ME
    customer: str = CUSTOMER
    asked: JobDefinition = ONE_CPU


def block_of(time: int) -> int:
    """Return the block at a time, with one block per second, as on the one-machine grid."""
    return time - MIDNIGHT + 1_000_000


@dataclass
class History:
    """Collects the entries of several plans; jobs get the numbers 1, 2 ..."""

    span: Span = DAY
    jobs: dict[int, Job] = field(default_factory=dict)
    requested: dict[int, int] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    given_back: list[GivenBack] = field(default_factory=list)
    settlements: list[Settlement] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    platform_cut: int = 0
    balance: int = 0

    def add(self, plan: Plan) -> int:
        """Add all entries of one job. Returns its number."""
        job_id = len(self.jobs) + 1
        if plan.fault and plan.end in (S.FINISHED, S.OUT_OF_CREDITS):
            plan = replace(plan, end=S.FAILED)
        claimed_at = plan.submit + 2
        claimed = plan.end not in (S.PENDING, S.META_SCHEDULED)
        self.requested[job_id] = block_of(plan.submit)
        self.move(Purpose.DEPOSIT, job_id, plan.customer, CONTRACT, plan.locked, plan.submit)
        job = Job(
            id=job_id, status=plan.end, customer=plan.customer, provider=plan.provider if claimed else None,
            definition=plan.asked, name="", locked_wei=plan.locked, final_cost_wei=0,
            submitted_at=plan.submit, assigned_at=plan.submit + 1 if claimed else 0,
            claimed_at=claimed_at if claimed else 0, started_at=0, ended_at=0, cancel_requested_at=0,
            has_cancel_request=False, rate_wei_per_minute=plan.rate if claimed else 0,
            cut_percent=CUT_PERCENT if claimed else 0,
            fee_minutes=FEE_MINUTES if claimed else 0, granted_minutes=0, last_refuser=None, delegate_spending=False,
            last_error="", exit_status=0,
        )  # fmt: skip
        if claimed:
            self.claims.append(Claim(job_id, plan.provider, claimed_at, block_of(claimed_at), f"0xclaim{job_id}"))
            job = self._run(plan, job)
        self.jobs[job_id] = job
        return job_id

    def ledger(self) -> Ledger:
        """Return the ledger, as read at the end of the next day."""
        first, last = block_of(self.span.since), block_of(self.span.until) - 1
        return Ledger(
            first_block=first, last_block=last, head_block=last + 86400,
            requested={job: block for job, block in self.requested.items() if block >= first},
            claims=tuple(one for one in self.claims if one.block >= first),
            given_back=tuple(one for one in self.given_back if one.block >= first),
            settlements=tuple(one for one in self.settlements if one.block >= first),
            transfers=tuple(one for one in self.transfers if one.block >= first),
            reported_too_much={}, jobs=self._remembered(first), balance_wei=self.balance,
            platform_cut_wei=self.platform_cut,
        )  # fmt: skip

    def slurm(self) -> Runs:
        return Runs(tuple(self.runs))

    def give_back(self, job_id: int, provider: str = ME) -> None:
        """Add an earlier claim of the job that the provider gave back."""
        at = self.jobs[job_id].submitted_at + 1
        self.claims.append(Claim(job_id, provider, at, block_of(at), f"0xclaim{job_id}-first"))
        self.given_back.append(GivenBack(job_id, provider, block_of(at), f"0xback{job_id}"))

    def stray(self, wei: int) -> None:
        """Add a transfer to the contract for no job."""
        self.move(Purpose.STRAY, None, CUSTOMER, CONTRACT, wei, self.span.since + 1)

    def _run(self, plan: Plan, job: Job) -> Job:
        """Add the entries from the claim on: Slurm runs the job, the supervisor reports, the contract settles."""
        begin = job.claimed_at + 3
        end = begin + plan.ran_s
        topped_up_at = begin + 1
        if plan.top_up:
            self.move(Purpose.TOP_UP, job.id, plan.customer, CONTRACT, plan.top_up, topped_up_at)
        locked = plan.locked + plan.top_up
        granted = affordable_minutes(locked, plan.rate)
        job = replace(job, locked_wei=locked, granted_minutes=granted)
        if plan.end is S.SCHEDULED:
            return job
        state = "NODE_FAIL" if plan.fault else STATES.get(plan.end, "COMPLETED")
        still_runs = plan.end is S.RUNNING
        self.runs.append(Run(
            job.id, job.claimed_at, 100 + job.id, "RUNNING" if still_runs else state, begin + plan.clock_s,
            None if still_runs else end + plan.clock_s,
        ))  # fmt: skip
        told_at = begin + plan.report_after_s
        back_dated = max(job.claimed_at, told_at - 60 * started_minutes(begin + plan.clock_s, told_at))
        job = replace(job, started_at=back_dated)
        if still_runs:
            return job
        ended_at = max(end, told_at) + plan.report_after_s
        if plan.cancel_requested:
            job = replace(job, has_cancel_request=True, cancel_requested_at=end)
        reported = 0 if plan.fault or plan.end is S.PANICKED else min(started_minutes(begin, end), granted)
        return self._settle(job, plan, reported, ended_at)

    def _settle(self, job: Job, plan: Plan, reported: int, at: int) -> Job:
        minutes = min(reported, elapsed_minutes(job.started_at, at))
        if plan.cancel_requested and plan.end is S.CANCELLED:
            minutes = max(minutes, min(FEE_MINUTES, job.granted_minutes))
        parts = bill(minutes, plan.rate, job.locked_wei, CUT_PERCENT)
        released = parts.refunded // 2 if plan.cancel_requested and plan.released_before_s else 0
        if released:
            self.move(
                Purpose.RELEASE,
                job.id,
                CONTRACT,
                plan.customer,
                released,
                max(job.claimed_at, at - plan.released_before_s),
            )
        refunded = parts.refunded - released
        self.settlements.append(Settlement(
            job.id, plan.provider, plan.customer, minutes, parts.paid, parts.cut, refunded, at, block_of(at),
            f"0xsettle{job.id}",
        ))  # fmt: skip
        self.platform_cut += parts.cut
        for purpose, payee, wei in (
            (Purpose.PAID, plan.provider, parts.paid), (Purpose.REFUND, plan.customer, refunded),
        ):  # fmt: skip
            if wei:
                self.move(purpose, job.id, CONTRACT, payee, wei, at)
        return replace(job, ended_at=at, final_cost_wei=parts.cost, released_wei=released)

    def move(self, purpose: Purpose, job_id: int | None, payer: str, payee: str, wei: int, at: int) -> None:
        self.balance += wei if payee == CONTRACT else -wei
        self.transfers.append(Transfer(purpose, job_id, payer, payee, wei, block_of(at), f"0x{purpose}{job_id}"))

    def _remembered(self, first: int) -> dict[int, Job]:
        """Return jobs with entries of the period, and hot jobs, as the reader of a ledger finds them."""
        told = {one.job_id for one in self.settlements if one.block >= first}
        return {
            job_id: job
            for job_id, job in self.jobs.items()
            if job.status.hot or job_id in told or self.requested[job_id] >= first
        }


# Plans of any kind, to generate histories from.
plans = st.builds(
    Plan,
    end=st.sampled_from(list(JobStatus)),
    submit=st.integers(MIDNIGHT - 5 * 3600, MIDNIGHT + 29 * 3600),
    locked=st.integers(1, 10**30),
    rate=st.integers(0, 10**24),
    top_up=st.one_of(st.just(0), st.integers(1, 10**30)),
    ran_s=st.integers(0, 7200),
    report_after_s=st.integers(0, 300),
    clock_s=st.integers(-20, 20),
    cancel_requested=st.booleans(),
    released_before_s=st.sampled_from([0, 60, 7200]),
    fault=st.booleans(),
    provider=st.sampled_from([ME, ANOTHER]),
)
