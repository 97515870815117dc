/** What a cluster would charge for a job, and why it cannot run it. The rules are those of `deepgrid.scheduling`. */
import type { Cluster } from "../chain/clusters";
import { type Condition, unmet, written } from "./labels";

export interface Resources {
  tasks: number;
  cpusPerTask: number;
  /** MB. */
  memPerCpu: number;
  /** For the whole job. */
  gpus: number;
}

export interface Prices {
  gpuWei: bigint;
  cpuWei: bigint;
  memWei: bigint;
}

export interface Hardware {
  gpus: number[];
  cpus: number[];
  memMb: number[];
}

export interface Offer {
  cluster: Cluster;
  rateWei: bigint;
  /** Why it cannot run the job; empty if it can. */
  obstacle: string;
}

export const LONGEST_MINUTES = 525_600n;

/** Wei per minute: GPUs, and per task its CPUs and their memory. */
export function rateWei(asked: Resources, prices: Prices): bigint {
  const cpus = BigInt(asked.tasks) * BigInt(asked.cpusPerTask);
  return BigInt(asked.gpus) * prices.gpuWei + cpus * prices.cpuWei + cpus * BigInt(asked.memPerCpu) * prices.memWei;
}

/** Whole minutes that the locked credits buy, at most one year. */
export function affordableMinutes(lockedWei: bigint, rate: bigint): bigint {
  if (rate === 0n) return LONGEST_MINUTES;
  const minutes = lockedWei / rate;
  return minutes < LONGEST_MINUTES ? minutes : LONGEST_MINUTES;
}

const sum = (figures: number[]) => figures.reduce((total, figure) => total + figure, 0);

/** Why the job can never run on this hardware; empty when it can. */
export function misfit(asked: Resources, hardware: Hardware): string {
  if (asked.tasks < 1 || asked.cpusPerTask < 1) return "asks for no task or no CPU";
  const cpus = asked.tasks * asked.cpusPerTask;
  if (cpus > sum(hardware.cpus)) return `asks for ${cpus} CPUs, it has ${sum(hardware.cpus)}`;
  if (asked.gpus > sum(hardware.gpus)) return `asks for ${asked.gpus} GPUs, it has ${sum(hardware.gpus)}`;
  const taskMem = asked.cpusPerTask * asked.memPerCpu;
  const mem = sum(hardware.memMb);
  if (asked.tasks * taskMem > mem) return `asks for ${asked.tasks * taskMem} MB of memory, it has ${mem} MB`;
  const slots = hardware.cpus.map((nodeCpus, at) =>
    Math.min(Math.floor(nodeCpus / asked.cpusPerTask), taskMem ? Math.floor(hardware.memMb[at]! / taskMem) : asked.tasks),
  );
  if (sum(slots) < asked.tasks) {
    return `asks for ${asked.tasks} tasks of ${asked.cpusPerTask} CPUs and ${taskMem} MB, its nodes hold ${sum(slots)}`;
  }
  const hosting = hardware.gpus.filter((_, at) => slots[at]).sort((a, b) => b - a);
  const reachable = sum(hosting.slice(0, asked.tasks));
  if (asked.gpus > reachable) return `asks for ${asked.gpus} GPUs for ${asked.tasks} tasks, on its nodes those reach ${reachable}`;
  return "";
}

/** An offer of each approved cluster: those that can run the job, cheapest first, then the others. */
export function quote(asked: Resources, conditions: Condition[], clusters: Cluster[]): Offer[] {
  const offers = clusters
    .filter((cluster) => cluster.approved && !cluster.banned)
    .map((cluster) => {
      const missing = unmet(cluster.labels, conditions);
      const obstacle = misfit(asked, cluster.hardware) || (missing.length ? `does not meet ${missing.map(written).join(", ")}` : "");
      return { cluster, rateWei: rateWei(asked, cluster.prices), obstacle };
    });
  const rank = (offer: Offer) => (offer.obstacle ? 1 : 0);
  return offers.sort((a, b) => rank(a) - rank(b) || (a.rateWei < b.rateWei ? -1 : a.rateWei > b.rateWei ? 1 : 0));
}
