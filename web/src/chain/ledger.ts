/** Credits, allowances, gas, and the grid's terms for new jobs, as of one block. */
import type { Hex } from "viem";
import { addressOf, view } from "./contracts";
import { call } from "./relay";

export interface Account {
  creditsWei: bigint;
  /** What the grid may lock without a new permit. */
  allowanceWei: bigint;
  /** The chain's own currency. */
  gasWei: bigint;
}

export interface Terms {
  minimumWei: bigint;
  cancellationMinutes: number;
  claimTimeoutMinutes: number;
  cutPercent: number;
  acceptsJobs: boolean;
}

export async function readAccount(address: Hex, block: number): Promise<Account> {
  const spender = await addressOf("MetaScheduler");
  const [creditsWei, allowanceWei, gas] = await Promise.all([
    view<bigint>("Credit", "balanceOf", [address], block),
    view<bigint>("Credit", "allowance", [address, spender], block),
    call("eth_getBalance", [address, `0x${block.toString(16)}`]),
  ]);
  return { creditsWei, allowanceWei, gasWei: BigInt(gas as string) };
}

export async function readTerms(block: number): Promise<Terms> {
  const read = <T>(name: string) => view<T>("MetaScheduler", name, [], block);
  const [minimumWei, cancellation, timeout, cut, acceptsJobs] = await Promise.all([
    read<bigint>("minimumAmount"),
    read<number>("cancellationFeeMinute"),
    read<number>("claimJobTimeout"),
    read<number>("deepsquareCut"),
    read<boolean>("enableRequestNewJob"),
  ]);
  const [cancellationMinutes, claimTimeoutMinutes, cutPercent] = [cancellation, timeout, cut].map(Number) as [number, number, number];
  return { minimumWei, cancellationMinutes, claimTimeoutMinutes, cutPercent, acceptsJobs };
}
