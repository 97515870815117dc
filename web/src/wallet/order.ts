/** What a customer orders, and how it goes on chain. */
import { bytesToHex, stringToBytes, type Hex } from "viem";
import { view } from "../chain/contracts";
import type { Mark } from "./kept";

export interface Label {
  key: string;
  value: string;
}

export interface Affinity extends Label {
  /** One of `< <= == >= > != in`. */
  op: string;
}

export interface Quoted {
  address: Hex;
  name: string;
  rateWei: bigint;
}

/** What the customer asks of a cluster. */
export interface Wishes {
  /** Minutes that the deposit must buy. */
  minMinutes: number;
  /** Most wei per minute; null for the dearest that the user saw, 0 for any. */
  maxRateWei: bigint | null;
  /** Seconds after which a job that no cluster has is given up; 0 for never. */
  giveUpAfterS: number;
  /** 0 balanced, 1 price, 2 start, 3 speed. */
  prefer: number;
  /** The job that must be over first; 0 for none. */
  afterJob: number;
  /** Whether that job may end in any way. Else it must finish. */
  afterAny: boolean;
}

export interface JobOrder {
  /** The definition in canonical form. */
  definition: string;
  resources: { tasks: number; cpusPerTask: number; memPerCpu: number; gpus: number };
  name: string;
  lockedWei: bigint;
  uses: Label[];
  affinities: Affinity[];
  /** Lets the grid top the job up from the allowance. */
  delegate: boolean;
  /** What the user saw: the rates of the clusters that can take the job. The dearest is the ceiling. */
  quoted: Quoted[];
  /** The same rates as of now. */
  quoteNow: () => Promise<Quoted[]>;
  /** Sign a permit rather than approve by a transaction. */
  permit: boolean;
  wishes: Wishes;
  mark: Mark | null;
}

const STORAGE_TYPE = 4;
const LONGEST_NAME = 32;

/** 64 hex digits: SHA-256 of the definition with its salt. */
export async function definitionHash(salt: Uint8Array, definition: string): Promise<string> {
  const content = stringToBytes(definition);
  const domain = stringToBytes("deepgrid job definition v1\0");
  const whole = new Uint8Array(domain.length + salt.length + content.length);
  whole.set(domain);
  whole.set(salt, domain.length);
  whole.set(content, domain.length + salt.length);
  return bytesToHex(new Uint8Array(await crypto.subtle.digest("SHA-256", whole))).slice(2);
}

/** Arguments of `requestNewJobWithWishes`, without the permit. */
export function requestArguments(order: JobOrder, hash: string, nowS = 0): unknown[] {
  const { tasks, cpusPerTask, memPerCpu, gpus } = order.resources;
  const definition = {
    gpus: BigInt(gpus), memPerCpu: BigInt(memPerCpu), cpusPerTask: BigInt(cpusPerTask), ntasks: BigInt(tasks),
    batchLocationHash: hash, storageType: STORAGE_TYPE, uses: order.uses,
    affinity: order.affinities.map(({ key, op, value }) => ({ label: { key, value }, op: codedOperator(op) })),
  };
  const { minMinutes, giveUpAfterS, prefer, afterJob, afterAny } = order.wishes;
  const giveUpAt = giveUpAfterS ? Math.max(nowS, Math.floor(Date.now() / 1000)) + giveUpAfterS : 0;
  const wishes = { maxRatePerMinute: ceilingOf(order), minMinutes, giveUpAt, prefer, afterJob, afterAny };
  return [definition, order.lockedWei, codedName(order.name), order.delegate, wishes];
}

/** The highest price that the user named, else the highest rate that the user saw, in wei per minute; 0 is no ceiling. */
export function ceilingOf(order: JobOrder): bigint {
  if (order.wishes.maxRateWei !== null) return order.wishes.maxRateWei;
  return order.quoted.reduce((most, { rateWei }) => (rateWei > most ? rateWei : most), 0n);
}

/** A name in 32 bytes, cut at a whole character. */
export function codedName(name: string): Hex {
  let bytes = stringToBytes(name);
  for (let cut = name; bytes.length > LONGEST_NAME; bytes = stringToBytes(cut)) cut = [...cut].slice(0, -1).join("");
  const padded = new Uint8Array(LONGEST_NAME);
  padded.set(bytes);
  return bytesToHex(padded);
}

function codedOperator(op: string): Hex {
  const bytes = new Uint8Array(2);
  bytes.set(stringToBytes(op).slice(0, 2));
  return bytesToHex(bytes);
}

const RECENT = 50n;

/** The job of `customer` with this hash, among the newest 50; null if there is none. */
export async function findJob(customer: Hex, hash: string): Promise<bigint | null> {
  const all = await view<Hex[]>("MetaScheduler", "getByCustomer", [customer]);
  const newest = all.slice(-Number(RECENT));
  if (!newest.length) return null;
  const [jobs] = await view<[{ jobId: Hex; definition: { batchLocationHash: string } }[]]>("MetaScheduler", "getMany", [newest]);
  const found = jobs.find((job) => job.definition.batchLocationHash === hash);
  return found ? BigInt(found.jobId) : null;
}
