/** Transactions: simulated first, sent by the wallet, followed by the relay. Pending ones survive a reload. */
import { decodeErrorResult, decodeFunctionResult, encodeFunctionData, type Hex } from "viem";
import { ABIS, addressOf, type ContractName } from "../chain/contracts";
import { refresh } from "../chain/head";
import { call, RelayFault } from "../chain/relay";
import sentences from "../generated/sentences.json";
import { exact } from "../pure/money";
import { stateOf } from "../pure/states";
import { account, provider } from "./account.svelte";
import { ask, readByWallet } from "./eip1193";
import { Stopped } from "./flow.svelte";

export interface Log {
  address: Hex;
  topics: [Hex, ...Hex[]];
  data: Hex;
}

export interface Receipt {
  transactionHash: Hex;
  status: Hex;
  blockNumber: Hex;
  logs: Log[];
}

const POLL_MS = 1000;
const LOST_AFTER_MS = 60_000;
const AGREED_WITHIN_MS = 10_000;

/** Check a call on the relay's node and, where the wallet reads, on the wallet's own. Raises Stopped with the reason. */
export async function simulate(contract: ContractName, functionName: string, args: unknown[]): Promise<void> {
  const abi = ABIS[contract];
  const data = encodeFunctionData({ abi, functionName, args });
  const request = { from: account.address, to: await addressOf(contract), data };
  try {
    await call("eth_call", [request, "latest"]);
    if (account.kind === "injected") await readByWallet(provider(), "eth_call", [request, "latest"]);
  } catch (error) {
    const reason = contractReason((error as RelayFault).data);
    if (reason) throw new Stopped(reason);
    throw error;
  }
}

/**
 * Read a value that decides about money, and compare it with the wallet's own node where the wallet reads. One of the
 * two may be a block behind, so they have some seconds to agree. Raises Stopped if they do not.
 */
export async function agreed<T>(contract: ContractName, functionName: string, args: unknown[], what: string): Promise<T> {
  const abi = ABIS[contract];
  const request = [{ to: await addressOf(contract), data: encodeFunctionData({ abi, functionName, args }) }, "latest"];
  for (const deadline = Date.now() + AGREED_WITHIN_MS; ; await pause(POLL_MS)) {
    const theirs = account.kind === "injected" ? readByWallet(provider(), "eth_call", request) : undefined;
    const [our, their] = await Promise.all([call("eth_call", request), theirs]);
    if (their === undefined || their === our) return decodeFunctionResult({ abi, functionName, data: our as Hex }) as T;
    if (Date.now() >= deadline) break;
  }
  throw new Stopped(`The wallet's node and the grid's node disagree about the ${what}. Nothing was signed; try again later.`);
}

/** Send a call by the wallet. Returns the transaction's hash. */
export async function send(contract: ContractName, functionName: string, args: unknown[]): Promise<Hex> {
  const data = encodeFunctionData({ abi: ABIS[contract], functionName, args });
  const transaction = { from: account.address, to: await addressOf(contract), data };
  return (await ask(provider(), "eth_sendTransaction", [transaction])) as Hex;
}

/** Wait until a transaction is mined. Raises Stopped if it reverted, or was dropped or replaced. */
export async function mined(hash: Hex): Promise<Receipt> {
  let lost = 0;
  for (;;) {
    const receipt = await patiently(() => call("eth_getTransactionReceipt", [hash]) as Promise<Receipt | null>);
    if (receipt) {
      await seenBlock(Number.parseInt(receipt.blockNumber, 16));
      if (Number.parseInt(receipt.status, 16) === 1) return receipt;
      throw new Stopped("The contract refused the transaction. Only its gas is spent.");
    }
    const known = await patiently(() => call("eth_getTransactionByHash", [hash]));
    lost = known ? 0 : lost + POLL_MS;
    if (lost > LOST_AFTER_MS) throw new Stopped("The transaction was dropped or replaced in the wallet.");
    await pause(POLL_MS);
  }
}

/** Wait until reads of the newest block see this one: the relay reads the head once per second for all pages. */
async function seenBlock(number: number): Promise<void> {
  while ((await refresh()).number < number) await pause(POLL_MS / 4);
}

/** A read that goes on through outages of the relay. */
async function patiently<T>(read: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof RelayFault) || !error.transient) throw error;
      await pause(3 * POLL_MS);
    }
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The sentence of a contract's error in revert data; empty if it is none. */
export function contractReason(data: unknown): string {
  const hex = typeof data === "string" ? data : ((data as { data?: unknown } | undefined)?.data ?? "");
  if (typeof hex !== "string" || !/^0x[0-9a-f]{8,}$/i.test(hex)) return "";
  for (const abi of Object.values(ABIS)) {
    try {
      const { errorName, args, abiItem } = decodeErrorResult({ abi, data: hex as Hex });
      const texts = (sentences as Record<string, string[]>)[errorName];
      if (!texts) return `The contract refused: ${errorName === "Error" ? String((args as unknown[])[0]) : errorName}.`;
      const inputs = "inputs" in abiItem ? (abiItem.inputs ?? []) : [];
      const values = Object.fromEntries(inputs.map((input, at) => [input.name ?? "", (args as unknown[])[at]]));
      return texts.map((text) => filled(text, values)).join(" ").trim();
    } catch {
      continue; // not an error of this contract
    }
  }
  return "";
}

function filled(text: string, values: Record<string, unknown>): string {
  return text.replace(/\{(\w+)(?::(\w+))?\}/g, (_, name: string, format?: string) => {
    const value = values[name];
    if (format === "ceiling" && !value) return "the prices at its request, which rose since";
    if (format === "credits" || format === "ceiling") return exact(BigInt(value as bigint));
    if (format === "status") return stateOf(Number(value)).word;
    return String(value);
  });
}
