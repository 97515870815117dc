/** Reads jobs and names of clusters through the relay. */
import type { Hex } from "viem";
import { view } from "../chain/contracts";
import { jobsOf, type Job, type RawMany } from "./value";

export const JOBS_PER_CALL = 50;
const IDS_PER_CALL = 1000;
const PAGES_AT_ONCE = 4;

export const codedId = (id: number | bigint): Hex => `0x${id.toString(16).padStart(64, "0")}`;

/** Ids of a customer's jobs, oldest first, without the `first` oldest ones. A full page is followed by several at once. */
export async function idsOf(customer: string, first: number, block?: number): Promise<number[]> {
  const ids: number[] = [];
  for (let atOnce = 1; ; atOnce = PAGES_AT_ONCE) {
    const starts = Array.from({ length: atOnce }, (_, page) => first + ids.length + page * IDS_PER_CALL);
    const pages = await Promise.all(
      starts.map((start) => view<Hex[]>("MetaScheduler", "getByCustomerPaged", [customer, BigInt(start), BigInt(IDS_PER_CALL)], block)),
    );
    for (const page of pages) ids.push(...page.map((coded) => Number(BigInt(coded))));
    if (pages.at(-1)!.length < IDS_PER_CALL) return ids;
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
