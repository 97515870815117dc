/** The bill of a job as rows, CSV and JSON. Amounts are exact. */
import { billOf, costSoFar } from "../pure/bill";
import { exact } from "../pure/money";
import { stateOf } from "../pure/states";
import type { Transition } from "./history";
import type { Job } from "./value";
import { isOver } from "./words";

export interface BillFacts {
  final: boolean;
  minutes: bigint | null;
  cost: bigint;
  paid: bigint;
  cut: bigint;
  refunded: bigint;
}

/** The final bill, or what it would be now; null for a job that has not started. */
export function billFacts(job: Job, now: number): BillFacts | null {
  if (isOver(job)) return { final: true, ...billOf(job) };
  const parts = costSoFar(job, now);
  return parts && { final: false, ...parts, minutes: BigInt(parts.minutes) };
}

function pairs(job: Job, facts: BillFacts | null, history: Transition[]): [string, string | number | null][] {
  const settled = history.find((one) => one.kind === "state" && !stateOf(one.after).hot);
  return [
    ["job", job.id], ["name", job.name], ["state", stateOf(job.status).word], ["customer", job.customer],
    ["provider", job.provider || null], ["rate_wei_per_minute", job.rateWei.toString()],
    ["minutes", facts?.minutes?.toString() ?? null], ["cost_wei", facts?.cost.toString() ?? null],
    ["paid_wei", facts?.paid.toString() ?? null], ["cut_wei", facts?.cut.toString() ?? null],
    ["refunded_wei", facts?.refunded.toString() ?? null], ["locked_wei", job.lockedWei.toString()],
    ["cost_credits", facts ? exact(facts.cost) : null], ["submitted_at", job.submittedAt], ["started_at", job.startedAt || null],
    ["ended_at", job.endedAt || null], ["tx_hash", settled?.transaction ?? null],
  ];
}

export function billJson(job: Job, facts: BillFacts | null, history: Transition[]): string {
  return `${JSON.stringify(Object.fromEntries(pairs(job, facts, history)), null, 2)}\n`;
}

/** One heading and one row. A name that a table would take for a formula gets an apostrophe. */
export function billCsv(job: Job, facts: BillFacts | null, history: Transition[]): string {
  const cell = (value: string | number | null) => {
    const text = String(value ?? "");
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const all = pairs(job, facts, history);
  return `${all.map(([name]) => name).join(",")}\r\n${all.map(([, value]) => cell(value)).join(",")}\r\n`;
}

/** Give the user a file. */
export function save(name: string, parts: BlobPart[], type: string): void {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
