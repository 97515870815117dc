/** What a customer's own jobs cost, by the rules of `deepgrid/billing/usage/own_usage.py`. Amounts are wei as BigInt. */

export interface UsedJob {
  id: number;
  name: string;
  status: number;
  provider: string;
  endedAt: number;
  lockedWei: bigint;
  finalCostWei: bigint;
  rateWei: bigint;
}

export interface Sums {
  jobs: number;
  minutes: bigint;
  cost: bigint;
  refunded: bigint;
}

export type By = "month" | "cluster" | "name";

const FIRST_COLD = 4;
export const NOTHING: Sums = { jobs: 0, minutes: 0n, cost: 0n, refunded: 0n };
const plus = (a: Sums, b: Sums): Sums => ({
  jobs: a.jobs + b.jobs, minutes: a.minutes + b.minutes, cost: a.cost + b.cost, refunded: a.refunded + b.refunded,
});

/** The month of a time in UTC: `2026-11`. */
export const monthOf = (unixS: number): string => new Date(unixS * 1000).toISOString().slice(0, 7);

/** Jobs that were settled from `since` on and before `until` (unix seconds). */
export function settledIn<T extends UsedJob>(jobs: T[], since: number, until: number): T[] {
  return jobs.filter((job) => job.status >= FIRST_COLD && since <= job.endedAt && job.endedAt < until);
}

/** The sums of these jobs. Each billed minute costs the rate, the last one may cost less. */
export function sumsOf(jobs: UsedJob[]): Sums {
  return jobs.map(sumsOfJob).reduce(plus, NOTHING);
}

function sumsOfJob(job: UsedJob): Sums {
  const { finalCostWei: cost, rateWei: rate, lockedWei } = job;
  return { jobs: 1, minutes: rate ? (cost + rate - 1n) / rate : 0n, cost, refunded: lockedWei - cost };
}

/** The sums of each group: months in order, other groups with the highest cost first. */
export function groupsOf(jobs: UsedJob[], by: By, nameOf: (provider: string) => string): [string, Sums][] {
  const found = new Map<string, Sums>();
  for (const job of [...jobs].sort((a, b) => a.endedAt - b.endedAt || a.id - b.id)) {
    const key = by === "month" ? monthOf(job.endedAt) : by === "name" ? job.name : job.provider ? nameOf(job.provider) : "none";
    found.set(key, plus(found.get(key) ?? NOTHING, sumsOfJob(job)));
  }
  const groups = [...found];
  if (by === "month") return groups;
  const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  return groups.sort(([a, x], [b, y]) => (x.cost === y.cost ? order(a, b) : x.cost < y.cost ? 1 : -1));
}

/** All months from the first to the last one, for a plot without gaps. */
export function monthsBetween(first: string, last: string): string[] {
  const months: string[] = [];
  for (let at = new Date(`${first}-01T00:00:00Z`); monthOf(at.getTime() / 1000) <= last; at.setUTCMonth(at.getUTCMonth() + 1))
    months.push(monthOf(at.getTime() / 1000));
  return months;
}
