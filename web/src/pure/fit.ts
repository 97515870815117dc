/** Why a cluster cannot take a job: the scheduler's own rules and sentences. */
import { affordableMinutes, rateWeiPerMinute, type Asked, type Prices } from "./bill";
import { exact } from "./money";

export interface Hardware {
  gpusPerNode: number[];
  cpusPerNode: number[];
  memoryPerNode: number[];
}
export interface LabelPair { key: string; value: string }
export interface Wanted extends LabelPair { op: string }

export interface JobNeeds {
  asked: Asked;
  conditions: Wanted[];
  lockedWei: bigint;
  maxRateWei: bigint;
  minMinutes: number;
}

const sum = (each: number[]) => each.reduce((total, one) => total + one, 0);

/** What the hardware lacks; empty if the job fits. Tasks are indivisible, GPUs are for the whole job. */
export function misfit(asked: Asked, hardware: Hardware): string {
  const [tasks, cpusEach, mem, gpus] = [asked.ntasks, asked.cpusPerTask, asked.memPerCpuMb, asked.gpus].map(Number) as [number, number, number, number];
  if (tasks < 1 || cpusEach < 1) return "asks for no task or no CPU";
  const [cpus, hasCpus, hasGpus] = [tasks * cpusEach, sum(hardware.cpusPerNode), sum(hardware.gpusPerNode)];
  if (cpus > hasCpus) return `asks for ${cpus} CPUs, it has ${hasCpus}`;
  if (gpus > hasGpus) return `asks for ${gpus} GPUs, it has ${hasGpus}`;
  const taskMem = cpusEach * mem;
  const hasMem = sum(hardware.memoryPerNode);
  if (tasks * taskMem > hasMem) return `asks for ${tasks * taskMem} MB of memory, it has ${hasMem} MB`;
  const slots = hardware.cpusPerNode.map((node, at) =>
    Math.min(Math.floor(node / cpusEach), taskMem ? Math.floor(hardware.memoryPerNode[at]! / taskMem) : tasks));
  if (sum(slots) < tasks) return `asks for ${tasks} tasks of ${cpusEach} CPUs and ${taskMem} MB, its nodes hold ${sum(slots)}`;
  const hosting = hardware.gpusPerNode.filter((_, at) => slots[at]! > 0).sort((a, b) => b - a);
  const reachable = sum(hosting.slice(0, tasks));
  return gpus > reachable ? `asks for ${gpus} GPUs for ${tasks} tasks, on its nodes those reach ${reachable}` : "";
}

const NUMBER = /^\s*[+-]?(\d[\d_]*\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$/;

function holds(offered: string, op: string, wanted: string): boolean {
  if (op === "in" || op === ":in:") return offered.includes(wanted);
  const both = NUMBER.test(offered) && NUMBER.test(wanted);
  const [a, b]: [number | string, number | string] = both ? [Number(offered), Number(wanted)] : [offered, wanted];
  if (op === "<") return a < b;
  if (op === "<=") return a <= b;
  if (op === ">=") return a >= b;
  if (op === ">") return a > b;
  return op === "!=" ? a !== b : a === b;
}

/** The conditions that labels do not satisfy. Of several labels with one key, any may match. */
export function unmet(labels: LabelPair[], conditions: Wanted[]): string[] {
  const failed = conditions.filter(({ key, op, value }) => !labels.some((label) => label.key === key && holds(label.value, op, value)));
  return failed.map(({ key, op, value }) => `${key}${op}${value}`);
}

interface Offering extends Hardware {
  prices: { gpu: bigint; cpu: bigint; memory: bigint };
  labels: LabelPair[];
  approved: boolean;
  banned: boolean;
}

/** Why a cluster cannot take a job; empty if it can. */
export function obstacle(job: JobNeeds, cluster: Offering): string {
  if (cluster.banned) return "is barred from the grid";
  if (!cluster.approved) return "is not approved yet";
  const problem = misfit(job.asked, cluster);
  if (problem) return problem;
  const missing = unmet(cluster.labels, job.conditions);
  if (missing.length) return `does not have ${missing.join(", ")}`;
  const prices: Prices = { gpu: cluster.prices.gpu, cpu: cluster.prices.cpu, memPerMb: cluster.prices.memory };
  const rate = rateWeiPerMinute(job.asked, prices);
  if (affordableMinutes(job.lockedWei, rate) < BigInt(Math.max(1, job.minMinutes))) {
    const wanted = job.minMinutes <= 1 ? "one minute costs" : `${job.minMinutes} minutes wanted; one costs`;
    return `${wanted} ${exact(rate)} credits, ${exact(job.lockedWei)} are locked`;
  }
  if (job.maxRateWei && rate > job.maxRateWei) return `costs ${exact(rate)} credits per minute, above ${exact(job.maxRateWei)}`;
  return "";
}
