/** Small changes by the wallet: cancel, top up, allowance, transfer. Each is a flow for the panel. */
import type { Hex } from "viem";
import { view } from "../chain/contracts";
import { gridInfo } from "../chain/grid";
import { exact } from "../pure/money";
import { account } from "./account.svelte";
import { Flow, Stopped } from "./flow.svelte";
import { mined, send, simulate } from "./transactions";

const coded = (jobId: bigint): Hex => `0x${jobId.toString(16).padStart(64, "0")}`;

async function facts(amountWei: bigint | null, contract: "Credit" | "MetaScheduler"): Promise<[string, string][]> {
  const grid = await gridInfo();
  const amount: [string, string][] = amountWei === null ? [] : [["Amount", `${exact(amountWei)} credits`]];
  return [["Contract", contract === "Credit" ? grid.credit : grid.meta_scheduler], ...amount, ["Chain", String(grid.chain_id)]];
}

/** A flow of one transaction. */
async function single(title: string, amountWei: bigint | null, contract: "Credit" | "MetaScheduler", name: string, args: unknown[]): Promise<Flow> {
  let hash: Hex | null = null;
  return new Flow(title, await facts(amountWei, contract), [
    {
      name: "Sent",
      prompt: "one transaction",
      act: async () => {
        await simulate(contract, name, args);
        hash = await send(contract, name, args);
      },
    },
    { name: "Seen in a block", act: async () => void (await mined(hash!)) },
  ]);
}

/** Cancel a job: at once before a cluster claims it, from then on by request to its provider. */
export function cancellation(jobId: bigint): Promise<Flow> {
  return single(`Cancel job ${jobId}`, null, "MetaScheduler", "cancelJob", [coded(jobId)]);
}

/** Set the allowance to exactly `valueWei`; 0 takes it back. */
export async function allowanceChange(valueWei: bigint): Promise<Flow> {
  const grid = await gridInfo();
  return single("Set the allowance", valueWei, "Credit", "approve", [grid.meta_scheduler, valueWei]);
}

/** Send credits to another account. */
export function transfer(to: Hex, valueWei: bigint): Promise<Flow> {
  return single(`Send credits to ${to}`, valueWei, "Credit", "transfer", [to, valueWei]);
}

/** Lock more credits for a claimed job. The allowance is exact, and set only if it is too low. */
export async function topUp(jobId: bigint, amountWei: bigint): Promise<Flow> {
  const grid = await gridInfo();
  const args = [coded(jobId), amountWei];
  let hash: Hex | null = null;
  return new Flow(`Top up job ${jobId}`, await facts(amountWei, "MetaScheduler"), [
    {
      name: "Allowed",
      prompt: "one transaction, unless the allowance covers it",
      act: async () => {
        const owner = account.address!;
        const balance = await view<bigint>("Credit", "balanceOf", [owner]);
        if (balance < amountWei) throw new Stopped(`The account has ${exact(balance)} credits.`);
        const allowance = await view<bigint>("Credit", "allowance", [owner, grid.meta_scheduler]);
        if (allowance >= amountWei) return "The standing allowance covers it.";
        await mined(await send("Credit", "approve", [grid.meta_scheduler, amountWei]));
        return "";
      },
    },
    {
      name: "Sent",
      prompt: "one transaction",
      act: async () => {
        await simulate("MetaScheduler", "topUpJob", args);
        hash = await send("MetaScheduler", "topUpJob", args);
      },
    },
    { name: "Seen in a block", act: async () => void (await mined(hash!)) },
  ]);
}
