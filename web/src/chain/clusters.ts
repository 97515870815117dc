/** Clusters with hardware, prices, labels and track record, as of one block. */
import type { Hex } from "viem";
import type { Label } from "../pure/labels";
import type { Hardware, Prices } from "../pure/quote";
import { view } from "./contracts";

export interface Cluster {
  address: Hex;
  name: string;
  approved: boolean;
  waits: boolean;
  banned: boolean;
  hardware: Hardware;
  prices: Prices;
  labels: Label[];
  record: { started: bigint; refused: bigint; panicked: bigint; timedOut: bigint };
}

interface RawProvider {
  addr: Hex;
  providerHardware: { gpusPerNode: bigint[]; cpusPerNode: bigint[]; memPerNode: bigint[] };
  providerPrices: { gpuPricePerMin: bigint; cpuPricePerMin: bigint; memPricePerMin: bigint };
  labels: Label[];
  isBanned: boolean;
}

interface Entry {
  provider: RawProvider;
  approved: boolean;
  waitingForApproval: boolean;
  record: Cluster["record"];
}

const PER_CALL = 20n;

/** All clusters, in the order of their registration. */
export async function readClusters(block?: number): Promise<Cluster[]> {
  const found: Cluster[] = [];
  let cursor = 0n;
  do {
    const [page, next] = await view<[Entry[], bigint]>("ProviderManager", "fetchProviders", [cursor, PER_CALL], block);
    found.push(...page.map(({ provider, approved, waitingForApproval, record }) => ({
      ...clusterOf(provider), approved, waits: waitingForApproval, record,
    })));
    cursor = next;
  } while (cursor !== 0n);
  return found;
}

/** The proposal of a cluster that waits for approval; null if none waits. */
export async function readProposal(address: Hex, block?: number): Promise<Omit<Cluster, "approved" | "waits" | "record"> | null> {
  const raw = await view<RawProvider>("ProviderManager", "getWaitingForApprovalProvider", [address], block);
  return /^0x0+$/.test(raw.addr) ? null : clusterOf(raw);
}

function clusterOf(raw: RawProvider) {
  const { gpusPerNode, cpusPerNode, memPerNode } = raw.providerHardware;
  const { gpuPricePerMin, cpuPricePerMin, memPricePerMin } = raw.providerPrices;
  return {
    address: raw.addr,
    name: raw.labels.find((label) => label.key === "name")?.value ?? raw.addr,
    banned: raw.isBanned,
    hardware: { gpus: gpusPerNode.map(Number), cpus: cpusPerNode.map(Number), memMb: memPerNode.map(Number) },
    prices: { gpuWei: gpuPricePerMin, cpuWei: cpuPricePerMin, memWei: memPricePerMin },
    labels: raw.labels.map(({ key, value }) => ({ key, value })),
  };
}

/** Jobs that a cluster was assigned and has not claimed. */
export async function waitingAt(address: Hex, block?: number): Promise<bigint> {
  return view<bigint>("MetaScheduler", "getClaimableJobQueueSize", [address], block);
}
