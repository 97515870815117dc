/** The differences of two offers, as `dps operator approve` shows them. */
import type { Offer } from "../chain/clusters";
import { exact } from "../pure/money";

export interface Difference {
  what: string;
  before: string;
  after: string;
}

export function differences(old: Offer | null, proposed: Offer): Difference[] {
  const before = old ? facts(old) : new Map<string, string>();
  const after = facts(proposed);
  const names = [...new Set([...before.keys(), ...after.keys()])];
  return names
    .map((what) => ({ what, before: before.get(what) ?? "none", after: after.get(what) ?? "none" }))
    .filter((line) => line.before !== line.after);
}

function facts(offer: Offer): Map<string, string> {
  return new Map([
    ["Nodes", String(offer.nodes)],
    ["CPUs by node", offer.cpusPerNode.join(", ")],
    ["GPUs by node", offer.gpusPerNode.join(", ")],
    ["MB by node", offer.memoryPerNode.join(", ")],
    ["Credits per CPU and minute", exact(offer.prices.cpu)],
    ["Credits per GPU and minute", exact(offer.prices.gpu)],
    ["Credits per GB and minute", exact(offer.prices.memory * 1000n)],
    ...offer.labels.map((label): [string, string] => [`Label ${label.key}`, label.value]),
  ]);
}
