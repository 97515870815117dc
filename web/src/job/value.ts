/** A job as the chain keeps it, as plain values. Amounts are wei, times are unix seconds; an absent time is 0. */
import { hexToString, type Hex } from "viem";
import type { Asked, Billed } from "../pure/bill";

export const STATUS = {
  pending: 0, metaScheduled: 1, scheduled: 2, running: 3, cancelled: 4, finished: 5, failed: 6, outOfCredits: 7, panicked: 8,
} as const;
export const NO_ADDRESS = "0x0000000000000000000000000000000000000000";

export interface Condition {
  key: string;
  op: string;
  value: string;
}

export interface Job extends Billed {
  id: number;
  customer: string;
  /** Address of the cluster's provider; empty while none is assigned. */
  provider: string;
  asked: Asked;
  definitionHash: string;
  uses: Condition[];
  affinity: Condition[];
  name: string;
  submittedAt: number;
  assignedAt: number;
  claimedAt: number;
  endedAt: number;
  cancelRequestedAt: number;
  hasCancelRequest: boolean;
  /** What came back before the end, because the cluster did not answer a cancel request in time. */
  releasedWei: bigint;
  /** Minimum bill of a cancel while it runs, in minutes. */
  feeMinutes: number;
  lastChangeBlock: number;
  delegateSpending: boolean;
  lastError: string;
  exitStatus: number;
  maxRateWei: bigint;
  minMinutes: number;
  giveUpAt: number;
  /** 0 balanced, 1 price, 2 start, 3 speed. */
  prefer: number;
  /** The job that must be over first; 0 for none. */
  afterJob: number;
  /** Whether that job may end in any way. Else it must finish. */
  afterAny: boolean;
}

interface RawLabel { key: string; value: string }
interface RawJob {
  jobId: Hex; status: number; customerAddr: string; providerAddr: string; jobName: Hex; hasCancelRequest: boolean;
  lastError: string; exitCode: bigint;
  definition: {
    gpus: bigint; memPerCpu: bigint; cpusPerTask: bigint; ntasks: bigint; batchLocationHash: string;
    uses: RawLabel[]; affinity: { label: RawLabel; op: Hex }[];
  };
  cost: { maxCost: bigint; finalCost: bigint; delegateSpendingAuthority: boolean };
  time: { submit: bigint; end: bigint; cancelRequestTimestamp: bigint; blockNumberStateChange: bigint };
}
interface RawTerms {
  ratePerMinute: bigint; limitMinutes: bigint; assignedAt: bigint; claimedAt: bigint; startedAt: bigint; cutPercent: number; feeMinutes: number;
  released: bigint;
}
interface RawWishes { maxRatePerMinute: bigint; minMinutes: number; giveUpAt: number; prefer: number; afterJob: number; afterAny: boolean }
export type RawMany = readonly [readonly RawJob[], readonly RawTerms[], readonly RawWishes[]];

/** Jobs from the structs that `getMany` returns. */
export function jobsOf([jobs, terms, wishes]: RawMany): Job[] {
  return jobs.map((raw, at) => jobOf(raw, terms[at]!, wishes[at]!));
}

function jobOf(raw: RawJob, terms: RawTerms, wishes: RawWishes): Job {
  const { definition, cost, time } = raw;
  return {
    id: Number(BigInt(raw.jobId)), status: raw.status, customer: raw.customerAddr,
    provider: raw.providerAddr === NO_ADDRESS ? "" : raw.providerAddr,
    asked: {
      ntasks: definition.ntasks, cpusPerTask: definition.cpusPerTask, memPerCpuMb: definition.memPerCpu, gpus: definition.gpus,
    },
    definitionHash: definition.batchLocationHash,
    uses: definition.uses.map(({ key, value }) => ({ key, op: "==", value })),
    affinity: definition.affinity.map(({ label, op }) => ({ key: label.key, op: text(op), value: label.value })),
    name: text(raw.jobName), lockedWei: cost.maxCost + terms.released, finalCostWei: cost.finalCost, // maxCost is without what was released
    releasedWei: terms.released,
    delegateSpending: cost.delegateSpendingAuthority,
    submittedAt: Number(time.submit), endedAt: Number(time.end), cancelRequestedAt: Number(time.cancelRequestTimestamp),
    lastChangeBlock: Number(time.blockNumberStateChange), hasCancelRequest: raw.hasCancelRequest,
    lastError: raw.lastError, exitStatus: Number(raw.exitCode),
    rateWei: terms.ratePerMinute, cutPercent: terms.cutPercent, feeMinutes: terms.feeMinutes, grantedMinutes: Number(terms.limitMinutes),
    assignedAt: Number(terms.assignedAt), claimedAt: Number(terms.claimedAt), startedAt: Number(terms.startedAt),
    maxRateWei: wishes.maxRatePerMinute, minMinutes: Math.max(1, wishes.minMinutes), giveUpAt: Number(wishes.giveUpAt), prefer: wishes.prefer,
    afterJob: Number(wishes.afterJob), afterAny: wishes.afterAny,
  };
}

function text(coded: Hex): string {
  return hexToString(coded).replace(/\0+$/, "");
}
