/** What one may do with a job. */
import { STATUS, type Job } from "./value";
import { isOver } from "./words";

export interface Wish {
  kind: "cancel" | "topup";
  jobs: Job[];
}

/** Why a job cannot be cancelled; empty if it can. */
export function whyNotCancel(job: Job, own: boolean): string {
  if (!own) return "only its customer can";
  if (isOver(job)) return "it is over";
  return job.hasCancelRequest ? "that was requested already" : "";
}

/** Why a job cannot be topped up; empty if it can. */
export function whyNotTopUp(job: Job, own: boolean): string {
  if (!own) return "connect its customer's wallet";
  if (isOver(job)) return "it is over";
  return job.status < STATUS.scheduled ? "no cluster has claimed it" : "";
}
