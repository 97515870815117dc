/** The clusters of the grid as of one block. Amounts are BigInt of wei; figures of hardware are plain numbers. */
import type { Hex } from "viem";
import { view } from "./contracts";

export interface Label {
  key: string;
  value: string;
}

export interface Prices {
  gpu: bigint;
  cpu: bigint;
  /** Per MB and minute. */
  memory: bigint;
}

export interface Offer {
  nodes: number;
  gpusPerNode: number[];
  cpusPerNode: number[];
  memoryPerNode: number[];
  prices: Prices;
  labels: Label[];
}

export interface TrackRecord {
  started: number;
  refused: number;
  panicked: number;
  timedOut: number;
}

export interface Cluster extends Offer {
  address: Hex;
  /** The name that the provider chose; empty if it chose none. Several clusters can have the same. */
  name: string;
  approved: boolean;
  waiting: boolean;
  banned: boolean;
  record: TrackRecord;
}

interface ChainProvider {
  addr: Hex;
  providerHardware: { nodes: bigint; gpusPerNode: bigint[]; cpusPerNode: bigint[]; memPerNode: bigint[] };
  providerPrices: { gpuPricePerMin: bigint; cpuPricePerMin: bigint; memPricePerMin: bigint };
  labels: Label[];
  isBanned: boolean;
}

interface ChainListing {
  provider: ChainProvider;
  approved: boolean;
  waitingForApproval: boolean;
  record: { started: bigint; refused: bigint; panicked: bigint; timedOut: bigint };
}

const PAGE = 50n;
const MOST_PAGES = 40;

/** All clusters, approved or not, in the order in which they joined. */
export async function readClusters(block: number): Promise<Cluster[]> {
  const found: Cluster[] = [];
  let cursor = 0n;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const [listings, next] = await view<[ChainListing[], bigint]>("ProviderManager", "fetchProviders", [cursor, PAGE], block);
    found.push(...listings.map(clusterOf));
    if (next === 0n || listings.length === 0) break;
    cursor = next;
  }
  return found;
}

/** The number of jobs that wait to be claimed by each of these clusters. */
export async function readQueues(addresses: Hex[], block: number): Promise<Map<Hex, number>> {
  const sizes = await Promise.all(
    addresses.map((one) => view<bigint>("MetaScheduler", "getClaimableJobQueueSize", [one], block)),
  );
  return new Map(addresses.map((one, at) => [one, Number(sizes[at])]));
}

/** What the provider wants to offer once the operator approves; null if nothing waits. */
export async function readProposal(address: Hex, block: number): Promise<Offer | null> {
  if (!(await view<boolean>("ProviderManager", "isWaitingForApproval", [address], block))) return null;
  return offerOf(await view<ChainProvider>("ProviderManager", "getWaitingForApprovalProvider", [address], block));
}

export function nameIn(labels: Label[]): string {
  return labels.find((label) => label.key === "name")?.value ?? "";
}

export const sum = (each: number[]): number => each.reduce((total, one) => total + one, 0);

function clusterOf(listing: ChainListing): Cluster {
  const { provider, record } = listing;
  return {
    ...offerOf(provider),
    address: provider.addr,
    name: nameIn(provider.labels),
    approved: listing.approved,
    waiting: listing.waitingForApproval,
    banned: provider.isBanned,
    record: {
      started: Number(record.started),
      refused: Number(record.refused),
      panicked: Number(record.panicked),
      timedOut: Number(record.timedOut),
    },
  };
}

function offerOf(provider: ChainProvider): Offer {
  const { providerHardware: hardware, providerPrices: prices } = provider;
  return {
    nodes: Number(hardware.nodes),
    gpusPerNode: hardware.gpusPerNode.map(Number),
    cpusPerNode: hardware.cpusPerNode.map(Number),
    memoryPerNode: hardware.memPerNode.map(Number),
    prices: { gpu: prices.gpuPricePerMin, cpu: prices.cpuPricePerMin, memory: prices.memPricePerMin },
    labels: provider.labels.map(({ key, value }) => ({ key, value })),
  };
}
