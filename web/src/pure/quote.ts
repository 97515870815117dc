/** What each cluster would charge for a job, and one reason for each cluster that cannot take it. */
import type { Cluster } from "../chain/clusters";
import type { Condition } from "./labels";
import { misfit, rateOf, type Shape } from "./market";
import { exact } from "./money";
import { mismatch } from "./needs";

/** The longest time limit that a job can buy: 365 days. */
export const MOST_MINUTES = 525_600n;

export type Quotable = Pick<
  Cluster,
  "address" | "name" | "approved" | "banned" | "labels" | "prices" | "nodes" | "cpusPerNode" | "gpusPerNode" | "memoryPerNode"
>;

export interface QuoteRow {
  cluster: Quotable;
  rateWei: bigint;
  minutes: bigint;
  /** Why it cannot take the job; empty if it can. */
  obstacle: string;
}

/** Whole minutes that the credits buy. */
export function affordableMinutes(lockedWei: bigint, rateWei: bigint): bigint {
  if (rateWei === 0n) return MOST_MINUTES;
  const minutes = lockedWei / rateWei;
  return minutes < MOST_MINUTES ? minutes : MOST_MINUTES;
}

/** One row per cluster of the grid: those that can take the job by price, then the others by name. */
export function quote(shape: Shape, conditions: Condition[], lockedWei: bigint, clusters: Quotable[]): QuoteRow[] {
  const rows = clusters
    .filter((one) => one.approved && !one.banned)
    .map((cluster): QuoteRow => {
      const rateWei = rateOf(shape, cluster.prices);
      const minutes = affordableMinutes(lockedWei, rateWei);
      return { cluster, rateWei, minutes, obstacle: obstacleOf(shape, conditions, lockedWei, cluster, rateWei, minutes) };
    });
  return rows.sort((a, b) => rank(a) - rank(b) || priceOrder(a, b) || nameOrder(a, b));
}

function obstacleOf(
  shape: Shape, conditions: Condition[], lockedWei: bigint, cluster: Quotable, rateWei: bigint, minutes: bigint,
): string {
  const lack = misfit(shape, cluster);
  if (lack) return lack;
  const missing = mismatch(cluster.labels, conditions, shape.gpus);
  if (missing) return missing;
  if (minutes < 1n) return `one minute costs ${exact(rateWei)} credits, ${exact(lockedWei)} are locked`;
  return "";
}

const rank = (row: QuoteRow): number => (row.obstacle ? 1 : 0);

function priceOrder(a: QuoteRow, b: QuoteRow): number {
  if (a.obstacle || a.rateWei === b.rateWei) return 0;
  return a.rateWei < b.rateWei ? -1 : 1;
}

const label = (row: QuoteRow): string => `${row.cluster.name || row.cluster.address} ${row.cluster.address}`;
const nameOrder = (a: QuoteRow, b: QuoteRow): number => (label(a) < label(b) ? -1 : label(a) > label(b) ? 1 : 0);

/** The rate of the most expensive cluster that can take the job; null if none can. */
export function dearestOf(rows: QuoteRow[]): bigint | null {
  const rates = rows.filter((row) => !row.obstacle).map((row) => row.rateWei);
  return rates.length ? rates.reduce((most, rate) => (rate > most ? rate : most)) : null;
}

const STEPS = 1000;

/** Wei at a place from 0 to 1000 of the deposit's slider, on a log scale, in hundredths of a credit. */
export function depositAt(place: number, leastWei: bigint, mostWei: bigint): bigint {
  if (place <= 0 || mostWei <= leastWei) return leastWei;
  if (place >= STEPS) return mostWei;
  const cent = 10n ** 16n;
  const cents = Math.exp(log(leastWei) + (place / STEPS) * (log(mostWei) - log(leastWei))) * 100;
  const wei = BigInt(Math.round(cents)) * cent;
  return wei < leastWei ? leastWei : wei > mostWei ? mostWei : wei;
}

/** The place on the slider of an amount. */
export function placeOf(wei: bigint, leastWei: bigint, mostWei: bigint): number {
  if (wei <= leastWei || mostWei <= leastWei) return 0;
  if (wei >= mostWei) return STEPS;
  return Math.round((STEPS * (log(wei) - log(leastWei))) / (log(mostWei) - log(leastWei)));
}

/** Natural logarithm of an amount in credits: only a place on the slider comes from it. */
function log(wei: bigint): number {
  const digits = (wei > 0n ? wei : 1n).toString();
  return Math.log(Number(digits.slice(0, 15))) + (digits.length - Math.min(15, digits.length) - 18) * Math.LN10;
}
