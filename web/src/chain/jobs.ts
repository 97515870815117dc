/** Jobs of the chain as of one block. Ids are numbers; times are unix seconds, 0 when it did not happen yet. */
import { hexToBytes, pad, toHex, type Hex } from "viem";
import type { Label } from "./clusters";
import { view } from "./contracts";

export interface Definition {
  gpus: number;
  memPerCpu: number;
  cpusPerTask: number;
  ntasks: number;
  /** The hash under which the services keep the definition. */
  definitionHash: string;
  uses: Label[];
  affinity: { label: Label; op: string }[];
}

export interface Job {
  id: number;
  status: number;
  customer: Hex;
  /** Address of the cluster; null before the job is assigned. */
  provider: Hex | null;
  definition: Definition;
  name: string;
  lockedWei: bigint;
  finalCostWei: bigint;
  pendingTopUpWei: bigint;
  delegates: boolean;
  submittedAt: number;
  startedAt: number;
  endedAt: number;
  cancelRequestedAt: number;
  hasCancelRequest: boolean;
  error: string;
  /** As Slurm reports it: exit code * 256 + signal. */
  exitStatus: number;
  rateWei: bigint;
  grantedMinutes: number;
  assignedAt: number;
  claimedAt: number;
  cutPercent: number;
  lastRefuser: Hex | null;
  wishes: { maxRateWei: bigint; minMinutes: number; giveUpAt: number; prefer: number };
}

interface ChainJob {
  jobId: Hex;
  status: number;
  customerAddr: Hex;
  providerAddr: Hex;
  definition: {
    gpus: bigint;
    memPerCpu: bigint;
    cpusPerTask: bigint;
    ntasks: bigint;
    batchLocationHash: string;
    uses: Label[];
    affinity: { label: Label; op: Hex }[];
  };
  cost: { maxCost: bigint; finalCost: bigint; pendingTopUp: bigint; delegateSpendingAuthority: boolean };
  time: { submit: bigint; start: bigint; end: bigint; cancelRequestTimestamp: bigint };
  jobName: Hex;
  hasCancelRequest: boolean;
  lastError: string;
  exitCode: bigint;
}

interface ChainTerms {
  ratePerMinute: bigint;
  limitMinutes: bigint;
  assignedAt: bigint;
  claimedAt: bigint;
  startedAt: bigint;
  cutPercent: number;
  lastRefuser: Hex;
}

interface ChainWishes {
  maxRatePerMinute: bigint;
  minMinutes: number;
  giveUpAt: number;
  prefer: number;
}

type Found = [ChainJob[], ChainTerms[], ChainWishes[]];
const NOBODY = /^0x0{40}$/;
const WINDOW = 100;

export const idOf = (id: number): Hex => pad(toHex(id), { size: 32 });

/** These jobs, in windows of 100. Ids must exist. */
export async function readJobs(ids: number[], block: number): Promise<Job[]> {
  const windows: number[][] = [];
  for (let at = 0; at < ids.length; at += WINDOW) windows.push(ids.slice(at, at + WINDOW));
  const found = await Promise.all(
    windows.map((one) => view<Found>("MetaScheduler", "getMany", [one.map(idOf)], block)),
  );
  return found.flatMap(jobsOf);
}

/** Ids of a customer's jobs, oldest first, from position `start`. */
export async function readIdsOf(customer: Hex, start: number, block: number): Promise<number[]> {
  const ids: number[] = [];
  for (;;) {
    const args = [customer, BigInt(start + ids.length), 1000n];
    const page = await view<Hex[]>("MetaScheduler", "getByCustomerPaged", args, block);
    ids.push(...page.map((id) => Number(BigInt(id))));
    if (page.length < 1000) return ids;
  }
}

/** The pending ones of the `howMany` jobs from id `first` on, in the order of their ids. */
export async function readPending(first: number, howMany: number, block: number): Promise<Job[]> {
  return jobsOf(await view<Found>("MetaScheduler", "pendingJobs", [BigInt(first), BigInt(howMany)], block));
}

/** How many jobs were ever requested; the newest job has this id. */
export async function readJobCount(block: number): Promise<number> {
  return Number(await view<bigint>("MetaScheduler", "jobIdCounter", [], block));
}

function jobsOf([jobs, terms, wishes]: Found): Job[] {
  return jobs.map((job, at) => ({ ...factsOf(job), ...termsOf(terms[at]!), wishes: wishesOf(wishes[at]!) }));
}

function factsOf(job: ChainJob) {
  const one = job.definition;
  return {
    id: Number(BigInt(job.jobId)),
    status: job.status,
    customer: job.customerAddr,
    provider: someone(job.providerAddr),
    definition: {
      gpus: Number(one.gpus),
      memPerCpu: Number(one.memPerCpu),
      cpusPerTask: Number(one.cpusPerTask),
      ntasks: Number(one.ntasks),
      definitionHash: one.batchLocationHash,
      uses: one.uses,
      affinity: one.affinity.map(({ label, op }) => ({ label, op: text(op) })),
    },
    name: text(job.jobName),
    lockedWei: job.cost.maxCost,
    finalCostWei: job.cost.finalCost,
    pendingTopUpWei: job.cost.pendingTopUp,
    delegates: job.cost.delegateSpendingAuthority,
    submittedAt: Number(job.time.submit),
    endedAt: Number(job.time.end),
    cancelRequestedAt: Number(job.time.cancelRequestTimestamp),
    hasCancelRequest: job.hasCancelRequest,
    error: job.lastError,
    exitStatus: Number(job.exitCode),
  };
}

function termsOf(terms: ChainTerms) {
  return {
    rateWei: terms.ratePerMinute,
    grantedMinutes: Number(terms.limitMinutes),
    assignedAt: Number(terms.assignedAt),
    claimedAt: Number(terms.claimedAt),
    startedAt: Number(terms.startedAt), // the job's `start` is its end if it never ran
    cutPercent: terms.cutPercent,
    lastRefuser: someone(terms.lastRefuser),
  };
}

function wishesOf(wishes: ChainWishes) {
  return {
    maxRateWei: wishes.maxRatePerMinute,
    minMinutes: wishes.minMinutes,
    giveUpAt: wishes.giveUpAt,
    prefer: wishes.prefer,
  };
}

const someone = (address: Hex): Hex | null => (NOBODY.test(address) ? null : address);

/** The text of fixed bytes without the zeros at their end. */
function text(bytes: Hex): string {
  return new TextDecoder().decode(hexToBytes(bytes)).replace(/\0+$/, "");
}
