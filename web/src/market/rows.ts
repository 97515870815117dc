/** The rows of the market: each cluster with its totals, queue, cost and obstacle; filtered and sorted. */
import { sum, type Cluster } from "../chain/clusters";
import { holds, type Condition } from "../pure/conditions";
import { misfit, rateOf, type Shape } from "../pure/market";

export interface Row {
  cluster: Cluster;
  cpus: number;
  gpus: number;
  memory: number;
  queue: number | undefined;
  /** Wei for the whole time; null where the job cannot run. */
  cost: bigint | null;
  /** Why the job cannot run there; empty if it can. */
  obstacle: string;
  twin: boolean;
}

export function rowsOf(clusters: Cluster[], queues: Map<string, number>, shape: Shape, minutes: number): Row[] {
  const names = clusters.map((one) => one.name);
  return clusters.map((cluster) => {
    const obstacle = standing(cluster) || misfit(shape, cluster);
    return {
      cluster,
      cpus: sum(cluster.cpusPerNode),
      gpus: sum(cluster.gpusPerNode),
      memory: sum(cluster.memoryPerNode),
      queue: queues.get(cluster.address),
      cost: obstacle ? null : rateOf(shape, cluster.prices) * BigInt(minutes),
      obstacle,
      twin: cluster.name !== "" && names.indexOf(cluster.name) !== names.lastIndexOf(cluster.name),
    };
  });
}

/** Why a cluster gets no jobs; empty if it does. */
export function standing(cluster: Cluster): string {
  if (cluster.banned) return "banned by the operator";
  if (!cluster.approved) return cluster.waiting ? "waits for approval" : "not approved";
  return "";
}

export function filtered(rows: Row[], conditions: Condition[]): Row[] {
  return rows.filter((row) => conditions.every((one) => holds(row.cluster.labels, one)));
}

type Value = bigint | number | string | null | undefined;
const COLUMNS: Record<string, (row: Row) => Value> = {
  name: (row) => row.cluster.name.toLowerCase(),
  cpus: (row) => row.cpus,
  memory: (row) => row.memory,
  gpus: (row) => row.gpus,
  cpuPrice: (row) => row.cluster.prices.cpu,
  gpuPrice: (row) => (row.gpus ? row.cluster.prices.gpu : null),
  memoryPrice: (row) => row.cluster.prices.memory,
  queue: (row) => row.queue,
  cost: (row) => row.cost,
};

/** Sorted by a column, with `-` before it for falling order. Unknown values are last in both orders. */
export function sorted(rows: Row[], sort: string): Row[] {
  const valueOf = COLUMNS[sort.replace("-", "")] ?? COLUMNS.cost!;
  const way = sort.startsWith("-") ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [one, other] = [valueOf(a) ?? null, valueOf(b) ?? null];
    if (one === null || other === null) return Number(one === null) - Number(other === null);
    return one < other ? -way : one > other ? way : 0;
  });
}
