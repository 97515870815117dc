/** What happened to a cluster's offer, read in windows of blocks: the newest one at first, earlier ones on demand. */
import { decodeFunctionData, type Hex } from "viem";
import type { Prices } from "./clusters";
import { ABIS, addressOf } from "./contracts";
import { eventsIn, windowOf } from "./events";
import { call } from "./relay";

export interface OfferEvent {
  name: string;
  block: number;
  transaction: Hex;
  /** The proposed prices; null for other events, and if a contract of the provider's own proposed them. */
  prices: Prices | null;
  /** The proposed label `compute.gflops`; null if there is none, or no plausible one. */
  gflops: number | null;
}

const NAMES = ["ProviderWaitingForApproval", "ProviderApproved", "ProviderRemoved", "ProviderBanChanged"];
const AT_ONCE = 10;
/** The newest blocks are read again with each block, as a chain may replace them. */
const UNSURE_BLOCKS = 32;

export class OfferHistory {
  /** Newest first. */
  events: OfferEvent[] = $state.raw([]);
  /** The first block that was read; all later ones were read too. */
  from = $state(0);
  #to = -1;

  constructor(readonly address: Hex) {}

  /** Read up to `block`. The first call reads one window. */
  async follow(block: number): Promise<void> {
    const size = await windowOf();
    const isNew = this.#to < 0 || block - this.#to > size - UNSURE_BLOCKS;
    const from = Math.max(0, isNew ? block - size + 1 : Math.max(this.from, this.#to - UNSURE_BLOCKS + 1));
    const found = await this.#read(from, block);
    const kept = isNew ? [] : this.events.filter((one) => one.block < from);
    if (isNew) this.from = from;
    this.events = [...found, ...kept];
    this.#to = block;
  }

  /** Read earlier windows until one has an event; at most ten. */
  async earlier(): Promise<void> {
    const size = await windowOf();
    for (let count = 0; count < AT_ONCE && this.from > 0; count += 1) {
      const from = Math.max(0, this.from - size);
      const found = await this.#read(from, this.from - 1);
      this.events = [...this.events, ...found];
      this.from = from;
      if (found.length) return;
    }
  }

  async #read(from: number, to: number): Promise<OfferEvent[]> {
    const events = await eventsIn("ProviderManager", NAMES, from, to);
    const own = events.filter((one) => String(one.args.addr).toLowerCase() === this.address.toLowerCase()).reverse();
    return Promise.all(own.map(async ({ name, block, transaction }) => {
      const proposed = name === "ProviderWaitingForApproval" ? await proposedIn(transaction) : null;
      return { name, block, transaction, prices: proposed?.prices ?? null, gflops: proposed?.gflops ?? null };
    }));
  }
}

/** Prices and measured speed in a call of `register`. Nodes keep transactions longer than old states. */
async function proposedIn(transaction: Hex): Promise<Pick<OfferEvent, "prices" | "gflops"> | null> {
  const sent = (await call("eth_getTransactionByHash", [transaction])) as { to: Hex | null; input: Hex } | null;
  if (sent?.to?.toLowerCase() !== (await addressOf("ProviderManager")).toLowerCase()) return null;
  const { functionName, args } = decodeFunctionData({ abi: ABIS.ProviderManager, data: sent.input });
  if (functionName !== "register") return null;
  const prices = (args as unknown[])[1] as { gpuPricePerMin: bigint; cpuPricePerMin: bigint; memPricePerMin: bigint };
  const labels = (args as unknown[])[2] as { key: string; value: string }[];
  return {
    prices: { gpu: prices.gpuPricePerMin, cpu: prices.cpuPricePerMin, memory: prices.memPricePerMin },
    gflops: figureOf(labels.find((label) => label.key === "compute.gflops")?.value ?? ""),
  };
}

/** The number in a measured label, as benchmarks write it; null for any other text. */
export function figureOf(text: string): number | null {
  return /^[0-9]{1,12}(\.[0-9]{1,2})?$/.test(text) ? Number(text) : null;
}

/** The prices that an event shows: its own, or the approved proposal's. Null if they are not known. */
export function pricesAt(events: OfferEvent[], at: number): Prices | null {
  const event = events[at]!;
  if (event.name !== "ProviderApproved") return event.prices;
  return events.slice(at + 1).find((one) => one.name === "ProviderWaitingForApproval")?.prices ?? null;
}

/** The measured speeds that came into force, the oldest first. */
export function speedsIn(events: OfferEvent[]): number[] {
  const approved = events.flatMap((event, at) => {
    if (event.name !== "ProviderApproved") return [];
    return events.slice(at + 1).find((one) => one.name === "ProviderWaitingForApproval")?.gflops ?? [];
  });
  return approved.reverse();
}
