/** What each cluster would charge for a job, and why it cannot run it. */
import type { Cluster } from "../chain/clusters";
import type { Condition } from "./conditions";
import { unmet } from "./labels";
import { misfit, rateOf, type Shape } from "./market";

export interface Offered {
  cluster: Cluster;
  rateWei: bigint;
  /** Why it cannot run the job; empty if it can. */
  obstacle: string;
}

export const LONGEST_MINUTES = 525_600n;

/** Whole minutes that the locked credits buy, at most one year. */
export function affordableMinutes(lockedWei: bigint, rateWei: bigint): bigint {
  if (rateWei === 0n) return LONGEST_MINUTES;
  const minutes = lockedWei / rateWei;
  return minutes < LONGEST_MINUTES ? minutes : LONGEST_MINUTES;
}

const words = ({ key, op, value }: Condition) => `${key}${op}${value}`;

/** An offer of each approved cluster: those that can run the job, cheapest first, then the others. */
export function quote(shape: Shape, conditions: Condition[], clusters: Cluster[]): Offered[] {
  const offers = clusters
    .filter((cluster) => cluster.approved && !cluster.banned)
    .map((cluster) => {
      const missing = unmet(cluster.labels, conditions);
      const obstacle = misfit(shape, cluster) || (missing.length ? `does not meet ${missing.map(words).join(", ")}` : "");
      return { cluster, rateWei: rateOf(shape, cluster.prices), obstacle };
    });
  const rank = (offer: Offered) => (offer.obstacle ? 1 : 0);
  return offers.sort((a, b) => rank(a) - rank(b) || (a.rateWei < b.rateWei ? -1 : a.rateWei > b.rateWei ? 1 : 0));
}
