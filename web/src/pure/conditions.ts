/** Conditions on labels as customers write them for `--affinities`: `gpu==a100 zone!=north compute.gflops>=500`. */
import type { Label } from "../chain/clusters";
import { compare, type Condition, parseAffinity } from "./labels";

export type { Condition } from "./labels";

/** The conditions of a text, separated by spaces, and the parts that are none. */
export function conditionsOf(text: string): { conditions: Condition[]; faults: string[] } {
  const conditions: Condition[] = [];
  const faults: string[] = [];
  for (const part of text.split(/\s+/).filter(Boolean)) {
    const found = parseAffinity(part);
    if (found) conditions.push(found);
    else faults.push(part);
  }
  return { conditions, faults };
}

/** Whether the labels satisfy a condition. A missing label satisfies none; of equal keys any may match. */
export function holds(labels: Label[], { key, op, value }: Condition): boolean {
  return labels.some((label) => label.key === key && compare(label.value, op, value));
}

const SUBJECTS: [string, RegExp][] = [
  ["Machine", /^(cpu|arch|os|mem|cpus|nodes)(\.|$)/],
  ["GPU", /^gpus?(\.|$)/],
  ["Features", /^(containers|memory\.limits|storage\.(s3|http)|network\.(pasta|slirp4netns|wireguard))$/],
  ["Speed", /^compute\./],
  ["Network", /^(network\.|interconnect$)/],
  ["Storage", /^storage\./],
];
const UNITS: [RegExp, string][] = [
  [/\.gflops$/, "GFLOPS"], [/\.us$/, "µs"], [/\.mbps$/, "MB/s"], [/\.mibps$/, "MiB/s"], [/\.iops$/, "per second"], [/^mem$/, "MB"],
];
const ASIDE = /\.(benchmark|remark)$/;

export interface LabelRow extends Label {
  subject: string;
  unit: string;
}

/** Labels without the name, ordered by subject; those that only tell how another one was measured come last. */
export function labelRows(labels: Label[]): LabelRow[] {
  const orderOf = ({ subject, key }: LabelRow) => {
    const at = SUBJECTS.findIndex(([name]) => name === subject);
    return (ASIDE.test(key) ? 100 : 0) + (at < 0 ? SUBJECTS.length : at);
  };
  return labels
    .filter((label) => label.key !== "name")
    .map((label): LabelRow => ({
      ...label,
      subject: SUBJECTS.find(([, keys]) => keys.test(label.key))?.[0] ?? "Others",
      unit: UNITS.find(([keys]) => keys.test(label.key))?.[1] ?? "",
    }))
    .map((row, at) => ({ row, at }))
    .sort((a, b) => orderOf(a.row) - orderOf(b.row) || a.at - b.at)
    .map(({ row }) => row);
}

/** Labels of clusters as conditions with this sign, and how many clusters have each; the most frequent first. */
export function choicesOf(clusters: { labels: Label[] }[], sign: string): [string, number][] {
  const counts = new Map<string, number>();
  for (const { labels } of clusters) {
    const written = labels.map(({ key, value }) => `${key}${sign}${value}`).filter((one) => !/[\s,]/.test(one));
    for (const one of new Set(written)) counts.set(one, (counts.get(one) ?? 0) + 1);
  }
  return [...counts].sort(([one, many], [other, more]) => more - many || (one < other ? -1 : 1));
}
