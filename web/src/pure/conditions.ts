/** Conditions on labels as customers write them for `--affinities`: `gpu==a100 zone!=north compute.gflops>=500`. */
import type { Label } from "../chain/clusters";

export interface Condition {
  key: string;
  op: string;
  value: string;
}

const WRITTEN = /^([^<>=!:]+)(:in:|<=|>=|==|!=|<|>|=)(.+)$/;
const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;

/** The conditions of a text, separated by spaces, and the parts that are none. */
export function conditionsOf(text: string): { conditions: Condition[]; faults: string[] } {
  const conditions: Condition[] = [];
  const faults: string[] = [];
  for (const part of text.split(/\s+/).filter(Boolean)) {
    const found = WRITTEN.exec(part);
    if (found) conditions.push({ key: found[1]!, op: found[2]!, value: found[3]! });
    else faults.push(part);
  }
  return { conditions, faults };
}

/** Whether the labels satisfy a condition. A missing label satisfies none; of equal keys any may match. */
export function holds(labels: Label[], { key, op, value }: Condition): boolean {
  return labels.some((label) => label.key === key && compare(label.value, op, value));
}

function compare(offered: string, op: string, wanted: string): boolean {
  if (op === ":in:") return offered.includes(wanted);
  const order = NUMBER.test(offered) && NUMBER.test(wanted) ? Number(offered) - Number(wanted) : textOrder(offered, wanted);
  switch (op) {
    case "<":
      return order < 0;
    case "<=":
      return order <= 0;
    case ">":
      return order > 0;
    case ">=":
      return order >= 0;
    case "!=":
      return order !== 0;
    default:
      return order === 0;
  }
}

const textOrder = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

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
