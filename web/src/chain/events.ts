/** Events of a contract, decoded. They are read in windows of blocks, as the relay bounds the range. */
import { decodeEventLog, toEventSelector, type AbiEvent, type Hex } from "viem";
import { ABIS, addressOf, type ContractName } from "./contracts";
import { gridInfo } from "./grid";
import { call } from "./relay";

export interface ChainEvent {
  name: string;
  args: Record<string, unknown>;
  block: number;
  transaction: Hex;
}

interface RawLog {
  topics: [Hex, ...Hex[]];
  data: Hex;
  blockNumber: Hex;
  transactionHash: Hex;
}

const USUAL_RANGE = 2000;

/** The most blocks that the relay reads at once. */
export async function windowOf(): Promise<number> {
  const { limits } = await gridInfo();
  return limits?.log_blocks ?? USUAL_RANGE;
}

/** The events with these names in the newest blocks up to `block`, oldest first, and the first block that was read. */
export async function recentEvents(contract: ContractName, names: string[], block: number): Promise<{ events: ChainEvent[]; from: number }> {
  const from = Math.max(0, block - (await windowOf()) + 1);
  return { events: await eventsIn(contract, names, from, block), from };
}

/** The events with these names in blocks of one window, oldest first. */
export async function eventsIn(contract: ContractName, names: string[], from: number, to: number): Promise<ChainEvent[]> {
  const abi = ABIS[contract];
  const wanted = abi.filter((one): one is AbiEvent => one.type === "event" && names.includes(one.name));
  const filter = {
    address: await addressOf(contract),
    fromBlock: `0x${from.toString(16)}`,
    toBlock: `0x${to.toString(16)}`,
    topics: [wanted.map((one) => toEventSelector(one))],
  };
  const logs = (await call("eth_getLogs", [filter])) as RawLog[];
  return logs.map((log) => {
    const { eventName, args } = decodeEventLog({ abi, topics: log.topics, data: log.data });
    const plain = args as unknown as Record<string, unknown>;
    return { name: eventName ?? "", args: plain, block: parseInt(log.blockNumber, 16), transaction: log.transactionHash };
  });
}
