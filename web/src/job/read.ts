/** Reads jobs and names of clusters through the relay. */
import type { Hex } from "viem";
import { view } from "../chain/contracts";
import { jobsOf, type Job, type RawMany } from "./value";

export const JOBS_PER_CALL = 50;
const IDS_PER_CALL = 1000;

export const codedId = (id: number | bigint): Hex => `0x${id.toString(16).padStart(64, "0")}`;

/** Ids of a customer's jobs, oldest first, without the `first` oldest ones. */
export async function idsOf(customer: string, first: number, block?: number): Promise<number[]> {
  const ids: number[] = [];
  for (;;) {
    const args = [customer, BigInt(first + ids.length), BigInt(IDS_PER_CALL)];
    const page = await view<Hex[]>("MetaScheduler", "getByCustomerPaged", args, block);
    ids.push(...page.map((coded) => Number(BigInt(coded))));
    if (page.length < IDS_PER_CALL) return ids;
  }
}

/** These jobs, at most `JOBS_PER_CALL`, as of a block. */
export async function readJobs(ids: number[], block?: number): Promise<Job[]> {
  if (ids.length === 0) return [];
  return jobsOf(await view<RawMany>("MetaScheduler", "getMany", [ids.map(codedId)], block));
}

const names = new Map<string, Promise<string>>();

/** The cluster's `name` label, else its address. Empty for no address. */
export function clusterName(address: string): Promise<string> {
  if (!address) return Promise.resolve("");
  let name = names.get(address);
  if (!name) {
    name = readName(address);
    name.catch(() => names.delete(address));
    names.set(address, name);
  }
  return name;
}

async function readName(address: string): Promise<string> {
  const provider = await view<{ labels: { key: string; value: string }[] }>("ProviderManager", "getProvider", [address]);
  return provider.labels.find((label) => label.key === "name")?.value ?? address;
}
