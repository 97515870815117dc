/** Why a cluster cannot take a job: the scheduler's own rules and sentences. */
import type { Offer } from "../chain/clusters";
import { affordableMinutes, type Asked, type Prices, rateWeiPerMinute } from "./bill";
import type { Condition } from "./labels";
import { misfit } from "./market";
import { exact } from "./money";
import { mismatch } from "./needs";

export interface JobNeeds {
  asked: Asked;
  conditions: Condition[];
  lockedWei: bigint;
  maxRateWei: bigint;
  minMinutes: number;
}

interface Offering extends Offer {
  approved: boolean;
  banned: boolean;
}

/** Why a cluster cannot take a job; empty if it can. */
export function obstacle(job: JobNeeds, cluster: Offering): string {
  if (cluster.banned) return "is barred from the grid";
  if (!cluster.approved) return "is not approved yet";
  const [tasks, cpusPerTask, memPerCpu, gpus] = [job.asked.ntasks, job.asked.cpusPerTask, job.asked.memPerCpuMb, job.asked.gpus].map(Number);
  const problem = misfit({ tasks: tasks!, cpusPerTask: cpusPerTask!, memPerCpu: memPerCpu!, gpus: gpus! }, cluster);
  if (problem) return problem;
  const missing = mismatch(cluster.labels, job.conditions, gpus!);
  if (missing) return missing;
  const prices: Prices = { gpu: cluster.prices.gpu, cpu: cluster.prices.cpu, memPerMb: cluster.prices.memory };
  const rate = rateWeiPerMinute(job.asked, prices);
  if (affordableMinutes(job.lockedWei, rate) < BigInt(Math.max(1, job.minMinutes))) {
    const wanted = job.minMinutes <= 1 ? "one minute costs" : `${job.minMinutes} minutes wanted; one costs`;
    return `${wanted} ${exact(rate)} credits, ${exact(job.lockedWei)} are locked`;
  }
  if (job.maxRateWei && rate > job.maxRateWei) return `costs ${exact(rate)} credits per minute, above ${exact(job.maxRateWei)}`;
  return "";
}
