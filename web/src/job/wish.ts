/** What one may do with a job. */
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

/** Why a cancel request cannot be repeated yet; empty if it can, or if there is none. */
export function whyNotAgain(job: Job, answerMinutes: number, now: number): string {
  const due = job.cancelRequestedAt + 60 * answerMinutes;
  if (!job.hasCancelRequest || now >= Math.min(due, heldUntil(job))) return "";
  return `That was requested already; its cluster has until ${moment(due)} to answer. Nothing was sent.`;
}

/** Why a job cannot be topped up; empty if it can. */
export function whyNotTopUp(job: Job, own: boolean): string {
  if (!own) return "connect its customer's wallet";
  if (isOver(job)) return "it is over";
  if (job.hasCancelRequest) return "its cancellation was requested";
  return job.status < STATUS.scheduled ? "no cluster has claimed it" : "";
}
