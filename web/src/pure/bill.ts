/** The formulas of the bill, the same as the contract's. Amounts are wei as BigInt, times are unix seconds. */

export const MAX_LIMIT_MINUTES = 525_600n;
const SCHEDULED = 2;

export interface Asked {
  ntasks: bigint;
  cpusPerTask: bigint;
  memPerCpuMb: bigint;
  gpus: bigint;
}

export interface Prices {
  gpu: bigint;
  cpu: bigint;
  memPerMb: bigint;
}

/** The division of locked credits: `paid` to the provider, `cut` to the platform, the rest to the customer. */
export interface Bill {
  cost: bigint;
  paid: bigint;
  cut: bigint;
  refunded: bigint;
}

/** The terms and times of a job that its bill depends on. */
export interface Billed {
  status: number;
  lockedWei: bigint;
  finalCostWei: bigint;
  rateWei: bigint;
  cutPercent: number;
  grantedMinutes: number;
  startedAt: number;
}

const least = (a: bigint, b: bigint) => (a < b ? a : b);

/** Price of one minute of a job. */
export function rateWeiPerMinute(asked: Asked, prices: Prices): bigint {
  const cpus = asked.ntasks * asked.cpusPerTask;
  return asked.gpus * prices.gpu + cpus * prices.cpu + cpus * asked.memPerCpuMb * prices.memPerMb;
}

/** Whole minutes that locked credits buy; at most a year. */
export function affordableMinutes(lockedWei: bigint, rateWei: bigint): bigint {
  return rateWei === 0n ? MAX_LIMIT_MINUTES : least(lockedWei / rateWei, MAX_LIMIT_MINUTES);
}

/** Divide locked credits for `minutes`; the parts add up to the wei. */
export function bill(minutes: bigint, rateWei: bigint, lockedWei: bigint, cutPercent: number): Bill {
  const charged = least(minutes, affordableMinutes(lockedWei, rateWei) + 1n);
  const cost = least(charged * rateWei, lockedWei);
  const cut = (cost * BigInt(cutPercent)) / 100n;
  return { cost, paid: cost - cut, cut, refunded: lockedWei - cost };
}

/** The bill of a job that is over. `minutes` is null for a job without a price. */
export function billOf(job: Billed): Bill & { minutes: bigint | null } {
  const { finalCostWei: cost, rateWei } = job;
  const minutes = rateWei === 0n ? null : (cost + rateWei - 1n) / rateWei;
  const cut = (cost * BigInt(job.cutPercent)) / 100n;
  return { minutes, cost, paid: cost - cut, cut, refunded: job.lockedWei - cost };
}

/** Minutes begun within these seconds, at least 1. */
export function minutesBegun(seconds: number): number {
  return Math.max(1, Math.ceil(seconds / 60));
}

/** What a running job costs so far; null if it has not started. */
export function costSoFar(job: Billed, now: number): (Bill & { minutes: number }) | null {
  if (job.startedAt === 0) return null;
  const minutes = Math.min(minutesBegun(Math.max(0, now - job.startedAt)), Math.max(1, job.grantedMinutes));
  return { minutes, ...bill(BigInt(minutes), job.rateWei, job.lockedWei, job.cutPercent) };
}

/** Minutes of the bought time that are left; null while no cluster is assigned. */
export function minutesLeft(job: Billed, now: number): number | null {
  if (job.grantedMinutes === 0) return null;
  if (job.startedAt === 0 || now < job.startedAt) return job.grantedMinutes;
  return Math.max(0, job.grantedMinutes - Math.floor((now - job.startedAt) / 60));
}

/** Minutes that `addedWei` buy in addition at the job's own rate; null while the rate is unknown. */
export function minutesGained(job: Billed, addedWei: bigint): bigint | null {
  if (job.rateWei === 0n) return null;
  return affordableMinutes(job.lockedWei + addedWei, job.rateWei) - affordableMinutes(job.lockedWei, job.rateWei);
}

/** What a cancellation bills at least; 0 before a cluster has claimed the job. */
export function leastBilled(job: Billed, feeMinutes: number, now: number): bigint {
  if (job.status < SCHEDULED || job.startedAt === 0) return 0n;
  const ran = minutesBegun(Math.max(0, now - job.startedAt));
  const minutes = Math.min(Math.max(ran, feeMinutes), Math.max(1, job.grantedMinutes));
  return bill(BigInt(minutes), job.rateWei, job.lockedWei, job.cutPercent).cost;
}
