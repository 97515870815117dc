/** A job in words: the same sentences as `dps` and the terminal app use. */
import type { Cluster } from "../chain/clusters";
import { billOf, costSoFar } from "../pure/bill";
import { obstacle } from "../pure/fit";
import { exact } from "../pure/money";
import { stateOf } from "../pure/states";
import type { Transition } from "./history";
import { STATUS, type Condition, type Job } from "./value";

export interface Remark {
  kind: string;
  text: string;
  author: string;
  at: number;
}

export const isOver = (job: Job) => !stateOf(job.status).hot && job.status > STATUS.running;

/** Whether a repeat waits for the same earlier job: no cluster had this one. */
export const waitsAgain = (job: Job) => job.afterJob > 0 && !job.provider;

export function plural(count: number | bigint, noun: string): string {
  return `${count} ${noun}${BigInt(count) === 1n ? "" : "s"}`;
}

/** A shell's exit status from Slurm's wait status: 768 -> 3, 9 -> 137. */
export function ownExitStatus(waitStatus: number): number {
  const signal = waitStatus & 0x7f;
  return signal ? 128 + signal : (waitStatus >> 8) & 0xff;
}

/** How a job ended: its exit status, and the reported error. */
export function outcome(job: Job): string {
  const signal = job.exitStatus & 0x7f;
  let exit = "";
  if (signal) exit = `killed by signal ${signal}`;
  else if (job.exitStatus || job.status === STATUS.finished) exit = `exit status ${ownExitStatus(job.exitStatus)}`;
  return [exit, job.lastError].filter(Boolean).join(": ");
}

/** What a job waits for; empty while it runs and when it is over. */
export function whereabouts(job: Job, cluster: string): string {
  if (isOver(job)) return "";
  if (job.hasCancelRequest) {
    const asked = `to be cancelled: ${cluster} has been asked to stop it`;
    return job.releasedWei > 0n ? `${asked}; ${heldWords(job)}` : asked;
  }
  if (job.status === STATUS.pending && job.afterJob) {
    return `job ${job.afterJob} must ${job.afterAny ? "end" : "finish"} first, then a cluster is found`;
  }
  if (job.status === STATUS.pending) return "the meta-scheduler has not found a cluster for it yet";
  if (job.status === STATUS.metaScheduled) return `${cluster} has not claimed it yet`;
  if (job.status === STATUS.scheduled) return `${cluster} has not started it yet`;
  return "";
}

/** The contract's TIMEOUT_GRACE: a silent cluster keeps its claim on the bill of a job for this time. */
const HELD_FOR_S = 86_400;

/** Time from which a further cancel returns the rest, if the cluster reports nothing before. */
export const heldUntil = (job: Job) => job.cancelRequestedAt + HELD_FOR_S;

/** What is locked, and until when, while its cluster does not answer a cancel request. */
export function heldWords(job: Job): string {
  const held = `${exact(job.lockedWei - job.releasedWei)} credits stay locked until ${moment(heldUntil(job))}, or until the cluster reports`;
  const words = job.releasedWei > 0n ? `${held}; ${exact(job.releasedWei)} credits came back` : `all ${held}`;
  return `${words}. After that time, cancel it again`;
}

/** What a job waits for, and why: the latest remark on a pending job, else a general sentence. */
export function waitingWords(job: Job, cluster: string, remarks: Remark[] | null): string {
  const reason = remarks?.at(-1);
  if (job.status === STATUS.pending && !job.hasCancelRequest && reason && reason.kind !== "assigned") return reason.text;
  return whereabouts(job, cluster);
}

/** Why a job waits, where it runs, or how it ended: one cell of the table. `offers` are all clusters, if known. */
export function whyOrWhere(job: Job, cluster: string, offers: Cluster[] | null): string {
  if (isOver(job)) return outcome(job);
  const needs = { ...job, conditions: [...job.uses, ...job.affinity] };
  if (job.status === STATUS.pending && !job.hasCancelRequest && !job.afterJob && offers?.every((one) => obstacle(needs, one))) {
    return "no cluster can take it as it is; open it to see why";
  }
  return whereabouts(job, cluster) || `runs on ${cluster}`;
}

export function resourcesWords(job: Job): string {
  const { ntasks, cpusPerTask, memPerCpuMb, gpus } = job.asked;
  const each = plural(cpusPerTask, "CPU");
  return `${plural(ntasks, "task")} of ${each}, ${memPerCpuMb} MB per CPU, ${gpus ? plural(gpus, "GPU") : "no GPU"}`;
}

export function conditionWords(job: Job): string[] {
  const written = ({ key, op, value }: Condition) => `${key}${op === "in" ? ":in:" : op}${value}`;
  return [...job.uses.map(({ key, value }) => `${key}=${value}`), ...job.affinity.map(written)];
}

/** What the job cost, or costs up to now, in wei; null if it has not started and is not over. */
export function costWei(job: Job, now: number): bigint | null {
  return isOver(job) ? job.finalCostWei : (costSoFar(job, now)?.cost ?? null);
}

/** A duration: `45s`, `12m`, `3h05m`, `2d04h`. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (n: number) => String(n).padStart(2, "0");
  const [minutes, hours, days] = [Math.floor(whole / 60), Math.floor(whole / 3600), Math.floor(whole / 86400)];
  if (whole < 60) return `${whole}s`;
  if (minutes < 60) return `${minutes}m`;
  if (hours < 24) return `${hours}h${two(minutes % 60)}m`;
  return `${days}d${two(hours % 24)}h`;
}

/** How long the job ran: to the second by its history, else the minutes of its bill, because those are on chain. */
export function runTime(job: Job, now: number, history: Transition[] = []): string {
  if (!job.startedAt) return "–";
  if (!job.endedAt) return span(now - job.startedAt);
  const start = history.findLast((one) => one.kind === "state" && one.after === STATUS.running);
  return span(start ? job.endedAt - start.at : 60 * Number(billOf(job).minutes ?? 0));
}

/** Local date and time; a dash for a time that is not there. */
export function moment(at: number): string {
  if (!at) return "–";
  const date = new Date(at * 1000);
  const two = (n: number) => String(n).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** What happened at a change of state. `cluster` is empty where the chain does not record it. */
export function stepWords(job: Job, before: number | null, after: number, cluster: string): string {
  if (after === STATUS.pending) return before === null ? `${exact(job.lockedWei)} credits locked` : "again: the cluster gave it back";
  if (after > STATUS.running) return outcome(job);
  if (!cluster) return "";
  if (after === STATUS.metaScheduled) return `to ${cluster}`;
  if (after === STATUS.running) return `on ${cluster}`;
  const most = job.grantedMinutes ? `, for ${plural(job.grantedMinutes, "minute")} at most` : "";
  return `claimed by ${cluster}${most}`;
}
