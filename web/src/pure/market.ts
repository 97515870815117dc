/** What a job of some shape costs on a cluster, and whether its nodes hold it. The same rules as the scheduler's. */
import type { Offer, Prices } from "../chain/clusters";

export interface Shape {
  tasks: number;
  cpusPerTask: number;
  /** MB. */
  memPerCpu: number;
  gpus: number;
}

const sum = (each: number[]): number => each.reduce((total, one) => total + one, 0);

/** Wei per minute. */
export function rateOf(shape: Shape, prices: Prices): bigint {
  const cpus = BigInt(shape.tasks) * BigInt(shape.cpusPerTask);
  return BigInt(shape.gpus) * prices.gpu + cpus * prices.cpu + cpus * BigInt(shape.memPerCpu) * prices.memory;
}

/** Why the job can never run on these nodes; empty when it can. */
export function misfit(shape: Shape, offer: Pick<Offer, "gpusPerNode" | "cpusPerNode" | "memoryPerNode">): string {
  const { tasks, cpusPerTask, memPerCpu, gpus } = shape;
  if (tasks < 1 || cpusPerTask < 1) return "asks for no task or no CPU";
  const has = { cpus: sum(offer.cpusPerNode), gpus: sum(offer.gpusPerNode), memory: sum(offer.memoryPerNode) };
  if (tasks * cpusPerTask > has.cpus) return `asks for ${tasks * cpusPerTask} CPUs, it has ${has.cpus}`;
  if (gpus > has.gpus) return `asks for ${gpus} GPUs, it has ${has.gpus}`;
  const taskMemory = cpusPerTask * memPerCpu;
  if (tasks * taskMemory > has.memory) return `asks for ${tasks * taskMemory} MB of memory, it has ${has.memory} MB`;
  const slots = offer.cpusPerNode.map((cpus, node) =>
    Math.min(Math.floor(cpus / cpusPerTask), taskMemory ? Math.floor(offer.memoryPerNode[node]! / taskMemory) : tasks),
  );
  if (sum(slots) < tasks) return `asks for ${tasks} tasks of ${cpusPerTask} CPUs and ${taskMemory} MB, its nodes hold ${sum(slots)}`;
  const hosting = offer.gpusPerNode.filter((_, node) => slots[node]).sort((a, b) => b - a);
  const reachable = sum(hosting.slice(0, tasks));
  if (gpus > reachable) return `asks for ${gpus} GPUs for ${tasks} tasks, on its nodes those reach ${reachable}`;
  return "";
}

/** Memory in words: `128 GB`. */
export function memoryWords(mb: number): string {
  if (mb < 1000) return `${mb} MB`;
  return mb < 1_000_000 ? `${Math.round(mb / 100) / 10} GB` : `${Math.round(mb / 100_000) / 10} TB`;
}

/** A span in words: `2 h 5 min`. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} days`;
}
