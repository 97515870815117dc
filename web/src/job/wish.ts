/** What one may do with a job. */
import { bill, minutesBegun } from "../pure/bill";
import { STATUS, type Job } from "./value";
import { heldUntil, heldWords, isOver, moment } from "./words";

export interface Wish {
  kind: "cancel" | "topup";
  jobs: Job[];
}

/** Why a job cannot be cancelled at this time of the chain; empty if it can. */
export function whyNotCancel(job: Job, own: boolean, now: number): string {
  if (!own) return "only its customer can";
  if (isOver(job)) return "it is over";
  return job.hasCancelRequest && job.releasedWei > 0n && now < heldUntil(job) ? heldWords(job) : "";
}

/** The contract's CANCEL_ANSWER_PERIOD. */
export const ANSWER_MINUTES = 10;

/** Why a cancel request cannot be repeated now; empty if it can, or if there is none. */
export function whyNotAgain(job: Job, answerMinutes: number, feeMinutes: number, now: number): string {
  const due = job.cancelRequestedAt + 60 * answerMinutes;
  if (!job.hasCancelRequest || now >= heldUntil(job)) return "";
  if (now < due) return `That was requested already; its cluster has until ${moment(due)} to answer. Nothing was sent.`;
  return releasableWei(job, answerMinutes, feeMinutes) ? "" : `Its cluster did not answer; ${heldWords(job)}. Nothing was sent.`;
}

/** Wei that a repeated cancel returns at once when the cluster's answer is due: what no report can bill then. */
export function releasableWei(job: Job, answerMinutes: number, feeMinutes: number): bigint {
  const ran = minutesBegun(job.cancelRequestedAt + 60 * answerMinutes - (job.startedAt || job.claimedAt));
  return bill(BigInt(Math.max(ran, feeMinutes)), job.rateWei, job.lockedWei - job.releasedWei, job.cutPercent).refunded;
}

/** Why a job cannot be topped up; empty if it can. */
export function whyNotTopUp(job: Job, own: boolean): string {
  if (!own) return "connect its customer's wallet";
  if (isOver(job)) return "it is over";
  if (job.hasCancelRequest) return "its cancellation was requested";
  return job.status < STATUS.scheduled ? "no cluster has claimed it" : "";
}
