/** The life of a job in order: states, remarks, the request to cancel it, top-ups. Pure. */
import { stateOf } from "../pure/states";
import type { LifeEntry, Transition } from "./history";
import type { Job } from "./value";
import { plural, stepWords, type Remark } from "./words";

export function lifeOf(job: Job, history: Transition[], remarks: Remark[], cluster: string): LifeEntry[] {
  const present = history.findLastIndex((one) => one.kind === "state" && one.after === 0);
  const entries: LifeEntry[] = history.map((step, at) =>
    step.kind === "topup"
      ? entry(step.at, "top-up", `its cluster knows of ${plural(step.minutes, "minute")} now`, null, "", step.transaction)
      : entry(step.at, stateOf(step.after).word, stepWords(job, step.before, step.after, at >= present ? cluster : ""), step.after, "", step.transaction));
  for (const remark of remarks) entries.push(entry(remark.at, remark.kind, remark.text, null, remark.author, ""));
  if (job.hasCancelRequest && job.claimedAt) {
    entries.push(entry(job.cancelRequestedAt, "cancel", "cancellation was requested", null, "", ""));
  }
  return entries.map((one, at) => ({ one, at })).sort((a, b) => a.one.at - b.one.at || a.at - b.at).map(({ one }) => one);
}

function entry(at: number, what: string, words: string, status: number | null, author: string, transaction: string): LifeEntry {
  return { at, what, words, status, author, transaction };
}
