/** Recent events of a contract, decoded. Only the newest blocks are read; the relay bounds the range. */
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

/** The events with these names in the newest blocks up to `block`, oldest first, and the first block that was read. */
export async function recentEvents(contract: ContractName, names: string[], block: number): Promise<{ events: ChainEvent[]; from: number }> {
  const abi = ABIS[contract];
  const wanted = abi.filter((one): one is AbiEvent => one.type === "event" && names.includes(one.name));
  const { limits } = await gridInfo();
  const from = Math.max(0, block - (limits?.log_blocks ?? USUAL_RANGE) + 1);
  const filter = {
    address: await addressOf(contract),
    fromBlock: `0x${from.toString(16)}`,
    toBlock: `0x${block.toString(16)}`,
    topics: [wanted.map((one) => toEventSelector(one))],
  };
  const logs = (await call("eth_getLogs", [filter])) as RawLog[];
  const events = logs.map((log) => {
    const { eventName, args } = decodeEventLog({ abi, topics: log.topics, data: log.data });
    const plain = args as unknown as Record<string, unknown>;
    return { name: eventName ?? "", args: plain, block: parseInt(log.blockNumber, 16), transaction: log.transactionHash };
  });
  return { events, from };
}
