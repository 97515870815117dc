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

const GROUPS: [string, RegExp][] = [
  ["CPU", /^(cpu|arch|compute)(\.|$)/],
  ["GPU", /^gpu(\.|$)/],
  ["Storage", /^storage\./],
  ["Network", /^(network\.|interconnect$)/],
];

/** Labels by subject, without the name: CPU, GPU, storage, network, others. Empty groups are left out. */
export function grouped(labels: Label[]): [string, Label[]][] {
  const groupOf = (key: string) => GROUPS.find(([, keys]) => keys.test(key))?.[0] ?? "Other";
  const shown = labels.filter((label) => label.key !== "name");
  return [...GROUPS.map(([name]) => name), "Other"]
    .map((name): [string, Label[]] => [name, shown.filter((label) => groupOf(label.key) === name)])
    .filter(([, each]) => each.length > 0);
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
