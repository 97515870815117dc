/** Reads of the grid's contracts as of one block, so that the relay can join equal reads of all pages. */
import { decodeFunctionResult, encodeFunctionData, type Abi, type Hex } from "viem";
import creditAbi from "../generated/Credit.json";
import metaSchedulerAbi from "../generated/MetaScheduler.json";
import providerManagerAbi from "../generated/ProviderManager.json";
import { gridInfo } from "./grid";
import { call } from "./relay";

export const ABIS = {
  Credit: creditAbi as Abi,
  MetaScheduler: metaSchedulerAbi as Abi,
  ProviderManager: providerManagerAbi as Abi,
};
export type ContractName = keyof typeof ABIS;

export async function addressOf(contract: ContractName): Promise<Hex> {
  const grid = await gridInfo();
  return { Credit: grid.credit, MetaScheduler: grid.meta_scheduler, ProviderManager: grid.provider_manager }[contract];
}

/** The result of a view as of `block`; of the newest one if it is not given. */
export async function view<T>(contract: ContractName, functionName: string, args: unknown[], block?: number): Promise<T> {
  const abi = ABIS[contract];
  const data = encodeFunctionData({ abi, functionName, args });
  const at = block === undefined ? "latest" : `0x${block.toString(16)}`;
  const answer = await call("eth_call", [{ to: await addressOf(contract), data }, at]);
  return decodeFunctionResult({ abi, functionName, data: answer as Hex }) as T;
}
