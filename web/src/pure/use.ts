/** What a job used of what it asked for, from its receipt, in the words of `deepgrid.billing.resource_use`. */

const LEAST_S = 10; // a shorter run says nothing about the CPUs that a job needs
const HINT_S = 60;
const HINT_SHARE = 4; // a hint from a quarter on
const MB_PER_GB = 1000;
const MOST = 10 ** 12; // of a figure
const MOST_SAMPLES = 64;

/** CPUs, memory or GPUs: their share that was used, 0 to 1, and words. */
export interface Used {
  name: "CPUs" | "memory" | "GPUs";
  share: number;
  words: string;
}

export interface ResourceUse {
  rows: Used[];
  /** Bytes read and written, in words; empty if they are not known. */
  files: string;
  /** What to ask for next time, if a quarter or less was used; empty otherwise. */
  hint: string;
}

/** What a job asked for. */
export interface AskedOfUse {
  cpus: number;
  memoryMb: number;
  gpus: number;
}

/** Seconds of CPU, MB, and percent of one GPU; undefined for what is not known. */
interface Figures {
  cpu?: number;
  mem?: number;
  read?: number;
  written?: number;
  gpu?: number;
  gpumem?: number;
}

/** `tres` is `evidence.tres` of a receipt, with seconds of CPU and MB; `runS` are the seconds that the job ran. */
export function resourceUse(asked: AskedOfUse, runS: number, tres: string): ResourceUse {
  const found = [...tres.matchAll(/(?<=^|,)used\/([a-z]+)=([0-9]{1,12})M?(?=,|$)/g)];
  return useOf(asked, runS, Object.fromEntries(found.map(([, name, count]) => [name, Number(count)])));
}

function useOf({ cpus, memoryMb, gpus }: AskedOfUse, runS: number, found: Figures): ResourceUse {
  const rows: Used[] = [];
  const less: string[] = [];
  if (found.cpu !== undefined && runS >= LEAST_S) {
    const used = found.cpu / runS;
    rows.push({ name: "CPUs", share: share(used, cpus), words: `asked ${cpus} CPU${cpus === 1 ? "" : "s"}, used ${tenths(used)}` });
    if (cpus > 1 && HINT_SHARE * used <= cpus) less.push("fewer CPUs");
  }
  if (found.mem !== undefined) {
    rows.push({ name: "memory", share: share(found.mem, memoryMb), words: `asked ${size(memoryMb)}, used ${size(found.mem)}` });
    if (HINT_SHARE * found.mem <= memoryMb) less.push("less memory");
  }
  if (found.gpu !== undefined) {
    const memory = found.gpumem === undefined ? "" : ` and ${size(found.gpumem)} of their memory`;
    const words = `asked ${gpus} GPU${gpus === 1 ? "" : "s"}, used ${tenths(found.gpu / 100)} at most${memory}`;
    rows.push({ name: "GPUs", share: share(found.gpu, 100 * gpus), words });
    if (gpus > 1 && HINT_SHARE * found.gpu <= 100 * gpus) less.push("fewer GPUs");
  }
  const moved = [["read", found.read], ["wrote", found.written]] as const;
  const files = moved.flatMap(([verb, count]) => (count === undefined ? [] : [`${verb} ${size(count)}`])).join(", ");
  const hint = runS >= HINT_S && less.length ? `a quarter or less was used: ask for ${list(less)}, and pay less` : "";
  return { rows, files, hint };
}

/** What the bytes of a receipt say, or null if they are no receipt. */
export function useIn(receipt: Uint8Array): ResourceUse | null {
  try {
    const { asked, evidence } = (JSON.parse(new TextDecoder().decode(receipt)) as { receipt: Receipt }).receipt;
    const cpus = asked.tasks * asked.cpus_per_task;
    const numbers = [cpus, asked.mem_per_cpu_mb, evidence.run_s];
    if (!numbers.every(Number.isFinite)) return null;
    return resourceUse({ cpus, memoryMb: cpus * asked.mem_per_cpu_mb, gpus: asked.gpus ?? 0 }, evidence.run_s, evidence.tres);
  } catch {
    return null;
  }
}

interface Receipt {
  asked: { tasks: number; cpus_per_task: number; mem_per_cpu_mb: number; gpus?: number };
  evidence: { run_s: number; tres: string };
}

/** A figure over time, as shares of what was asked: from nothing (0) to all of it (1), null where it is not known. */
export interface Graph {
  name: Used["name"];
  words: string;
  /** Steps of equal meaning, not of equal length: each holds from the one before until its second. */
  steps: { untilS: number; share: number | null }[];
}

export interface OverTime {
  soFar: ResourceUse;
  /** Seconds from the job's start to its last sample. */
  runS: number;
  graphs: Graph[];
}

type Sample = Figures & { runS: number };

/** What the services' answer says, or null if it is none. Its figures are a provider's: only whole amounts count. */
export function overTime(asked: AskedOfUse, answer: unknown): OverTime | null {
  const list = (answer as { samples?: unknown } | null)?.samples;
  if (!Array.isArray(list)) return null;
  const samples = list.slice(0, MOST_SAMPLES).map(sampleOf);
  const sane = samples.every((sample, at) => sample.runS > (samples[at - 1]?.runS ?? -1));
  const last = samples.at(-1);
  if (!last || !sane) return null;
  const most = (name: "mem" | "gpu" | "gpumem") => {
    const known = samples.flatMap((sample) => sample[name] ?? []);
    return known.length ? Math.max(...known) : undefined;
  };
  const soFar = useOf(asked, last.runS, { ...last, mem: most("mem"), gpu: most("gpu"), gpumem: most("gpumem") });
  const figures: [Used["name"], number, (number | null)[]][] = [
    ["CPUs", asked.cpus, cpusOf(samples)],
    ["memory", asked.memoryMb, samples.map(({ mem }) => mem ?? null)],
    ["GPUs", 100 * asked.gpus, samples.map(({ gpu }) => gpu ?? null)],
  ];
  const graphs = figures.flatMap(([name, full, values]) => {
    const words = soFar.rows.find((row) => row.name === name)?.words;
    if (!words || !full || values.filter((value) => value !== null).length < 2) return [];
    const steps = values.map((value, at) => ({ untilS: samples[at]!.runS, share: value === null ? null : share(value, full) }));
    return [{ name, words, steps }];
  });
  return { soFar, runS: last.runS, graphs };
}

/** CPUs in use on average until each sample, since the one before. */
export function cpusOf(samples: readonly { runS: number; cpu?: number }[]): (number | null)[] {
  return samples.map(({ runS, cpu }, at) => {
    const before = at ? samples[at - 1]! : { runS: 0, cpu: 0 };
    if (cpu === undefined || before.cpu === undefined || runS <= before.runS) return null;
    return Math.max(0, cpu - before.cpu) / (runS - before.runS);
  });
}

function sampleOf(value: unknown): Sample {
  const from = (value ?? {}) as Record<string, unknown>;
  const figure = (name: string) => {
    const found = from[name];
    return typeof found === "number" && Number.isInteger(found) && found >= 0 && found <= MOST ? found : undefined;
  };
  return {
    runS: figure("run_s") ?? -1, cpu: figure("cpu_s"), mem: figure("memory_mb"), read: figure("read_mb"),
    written: figure("written_mb"), gpu: figure("gpu_percent"), gpumem: figure("gpu_memory_mb"),
  };
}

const list = (words: string[]) => [words.slice(0, -1).join(", "), ...words.slice(-1)].filter(Boolean).join(" and ");
const share = (used: number, asked: number) => (asked > 0 ? Math.min(1, used / asked) : 0);
const size = (mb: number) => (mb < MB_PER_GB ? `${mb} MB` : `${tenths(mb / MB_PER_GB)} GB`);

/** One digit behind the point, a half to the even digit, as Python writes it. */
function tenths(value: number): string {
  const scaled = value * 10;
  const isHalf = scaled % 1 === 0.5 && Math.floor(scaled) % 2 === 0;
  return isHalf ? (Math.floor(scaled) / 10).toFixed(1) : value.toFixed(1);
}
