/** The changes of one job's state, from the contract's events. Events have no indexed fields, so all blocks of its life are read. */
import { decodeEventLog, toEventSelector, type AbiEvent, type Hex } from "viem";
import { ABIS, addressOf } from "../chain/contracts";
import { call, RelayFault } from "../chain/relay";
import { codedId } from "./read";
import type { Job } from "./value";

export interface Transition {
  kind: "state" | "topup";
  before: number | null;
  after: number;
  /** Minutes that the provider was told after a top-up. */
  minutes: number;
  at: number;
  block: number;
  transaction: string;
}

interface RawLog {
  topics: [Hex, ...Hex[]];
  data: Hex;
  blockNumber: Hex;
  transactionHash: Hex;
}

const NAMES = ["NewJobRequestEvent", "JobTransitionEvent", "ClaimNextTopUpJobEvent"];
const RANGE = 2000;

/** All changes up to `last`, oldest first. */
export async function readHistory(job: Job, last: number): Promise<Transition[]> {
  const first = await firstBlockAt(job.submittedAt, last);
  const logs: RawLog[] = [];
  for (let at = first; at <= last; at += RANGE) logs.push(...(await logsOf(at, Math.min(last, at + RANGE - 1))));
  const own = logs.flatMap((log) => transitionOf(log, codedId(job.id)));
  const times = new Map<number, number>();
  await Promise.all([...new Set(own.map((one) => one.block))].map(async (block) => times.set(block, await timeOf(block))));
  return own.map((one) => ({ ...one, at: times.get(one.block)! }));
}

async function logsOf(from: number, to: number): Promise<RawLog[]> {
  const abi = ABIS.MetaScheduler;
  const wanted = abi.filter((one): one is AbiEvent => one.type === "event" && NAMES.includes(one.name));
  const filter = {
    address: await addressOf("MetaScheduler"), fromBlock: `0x${from.toString(16)}`, toBlock: `0x${to.toString(16)}`,
    topics: [wanted.map((one) => toEventSelector(one))],
  };
  try {
    return (await call("eth_getLogs", [filter])) as RawLog[];
  } catch (error) {
    if (!(error instanceof RelayFault) || from === to || error.sentence === "The grid's services do not answer.") throw error;
    const middle = Math.floor((from + to) / 2); // too much for one answer
    return [...(await logsOf(from, middle)), ...(await logsOf(middle + 1, to))];
  }
}

function transitionOf(log: RawLog, id: Hex): Transition[] {
  const { eventName, args } = decodeEventLog({ abi: ABIS.MetaScheduler, topics: log.topics, data: log.data });
  const found = args as unknown as { jobId: Hex; from?: number; to?: number; maxDurationMinute?: bigint };
  if (found.jobId !== id) return [];
  return [{
    kind: eventName === "ClaimNextTopUpJobEvent" ? "topup" : "state", before: found.from ?? null, after: found.to ?? 0,
    minutes: Number(found.maxDurationMinute ?? 0), at: 0, block: parseInt(log.blockNumber, 16), transaction: log.transactionHash,
  }];
}

async function timeOf(block: number): Promise<number> {
  const found = (await call("eth_getBlockByNumber", [`0x${block.toString(16)}`, false])) as { timestamp: Hex } | null;
  if (!found) throw new RelayFault("The node no longer keeps an old block.", false);
  return parseInt(found.timestamp, 16);
}

async function firstBlockAt(time: number, last: number): Promise<number> {
  let [low, high] = [0, last];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const found = await timeOf(middle).catch((error: unknown) => {
      if (error instanceof RelayFault && !error.transient) return 0;
      throw error;
    });
    if (found < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** What stands in the life of a job, in order. `cluster` of a step is known for the present request only. */
export interface LifeEntry {
  at: number;
  what: string;
  words: string;
  /** Number of the state; null for remarks, requests and top-ups. */
  status: number | null;
  author: string;
  transaction: string;
}
