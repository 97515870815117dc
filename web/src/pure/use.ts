/** What a job used of what it asked for, from its receipt, in the words of `deepgrid.billing.resource_use`. */

const LEAST_S = 10; // a shorter run says nothing about the CPUs that a job needs
const HINT_S = 60;
const HINT_SHARE = 4; // a hint from a quarter on
const MB_PER_GB = 1000;

/** CPUs or memory: their share that was used, 0 to 1, and words. */
export interface Used {
  name: "CPUs" | "memory";
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

/** `tres` is `evidence.tres` of a receipt, with seconds of CPU and MB; `runS` are the seconds that the job ran. */
export function resourceUse(cpus: number, memoryMb: number, runS: number, tres: string): ResourceUse {
  const found = new Map([...tres.matchAll(/(?<=^|,)used\/([a-z]+)=([0-9]{1,12})M?(?=,|$)/g)].map(([, name, count]) => [name, Number(count)]));
  const rows: Used[] = [];
  const less: string[] = [];
  const cpuS = found.get("cpu");
  if (cpuS !== undefined && runS >= LEAST_S) {
    const used = cpuS / runS;
    rows.push({ name: "CPUs", share: share(used, cpus), words: `asked ${cpus} CPU${cpus === 1 ? "" : "s"}, used ${tenths(used)}` });
    if (cpus > 1 && HINT_SHARE * used <= cpus) less.push("fewer CPUs");
  }
  const memory = found.get("mem");
  if (memory !== undefined) {
    rows.push({ name: "memory", share: share(memory, memoryMb), words: `asked ${size(memoryMb)}, used ${size(memory)}` });
    if (HINT_SHARE * memory <= memoryMb) less.push("less memory");
  }
  const moved = [["read", found.get("read")], ["wrote", found.get("written")]] as const;
  const files = moved.flatMap(([verb, count]) => (count === undefined ? [] : [`${verb} ${size(count)}`])).join(", ");
  const hint = runS >= HINT_S && less.length ? `a quarter or less was used: ask for ${less.join(" and ")}, and pay less` : "";
  return { rows, files, hint };
}

/** What the bytes of a receipt say, or null if they are no receipt. */
export function useIn(receipt: Uint8Array): ResourceUse | null {
  try {
    const { asked, evidence } = (JSON.parse(new TextDecoder().decode(receipt)) as { receipt: Receipt }).receipt;
    const cpus = asked.tasks * asked.cpus_per_task;
    const numbers = [cpus, asked.mem_per_cpu_mb, evidence.run_s];
    if (!numbers.every(Number.isFinite)) return null;
    return resourceUse(cpus, cpus * asked.mem_per_cpu_mb, evidence.run_s, evidence.tres);
  } catch {
    return null;
  }
}

interface Receipt {
  asked: { tasks: number; cpus_per_task: number; mem_per_cpu_mb: number };
  evidence: { run_s: number; tres: string };
}

const share = (used: number, asked: number) => (asked > 0 ? Math.min(1, used / asked) : 0);
const size = (mb: number) => (mb < MB_PER_GB ? `${mb} MB` : `${tenths(mb / MB_PER_GB)} GB`);

/** One digit behind the point, a half to the even digit, as Python writes it. */
function tenths(value: number): string {
  const scaled = value * 10;
  const isHalf = scaled % 1 === 0.5 && Math.floor(scaled) % 2 === 0;
  return isHalf ? (Math.floor(scaled) / 10).toFixed(1) : value.toFixed(1);
}
