/**
 * Submits a job: checked, stored, allowed, requested, seen. The definition's hash is kept on the device before the
 * request, and looked up on chain after a reload. So a repeated submission never makes a second job.
 */
import { decodeEventLog, type Hex } from "viem";
import { ABIS, view } from "../chain/contracts";
import { gridInfo } from "../chain/grid";
import { refresh } from "../chain/head";
import { exact } from "../pure/money";
import { account, provider } from "./account.svelte";
import { WalletFault } from "./eip1193";
import { Flow, PricesRose, Stopped } from "./flow.svelte";
import { definitionHash, findJob, type JobOrder, type Quoted, requestArguments } from "./order";
import { type Permit, PERMIT_LASTS_S, signPermit } from "./permits";
import { storeDefinition } from "./services";
import { writeMark } from "./kept";
import { keep as keepOnDevice } from "./local";
import { keptSession, openSession } from "./session";
import { agreed, mined, type Receipt, send, simulate } from "./transactions";

const KEPT = "submission";

/** A submission that a reload interrupted. */
export interface Interrupted {
  account: Hex;
  chainId: number;
  hash: string;
  name: string;
  lockedWei: string;
  transaction?: Hex;
}

export class Submission extends Flow {
  /** The new job, once it is seen in a block. */
  jobId = $state<bigint | null>(null);
  /** Hash of the stored definition; empty before it is stored. */
  hash = $state("");
}

interface Progress {
  hash: string;
  salt: string;
  permit?: Permit;
  allowanceBefore?: bigint;
  transaction?: Hex;
}

let latest: Submission | undefined;

/** The steps for an order. Nothing is locked before "requested". Raises Stopped while another one is under way. */
export async function submission(order: JobOrder): Promise<Submission> {
  if (latest?.busy) throw new Stopped("Another submission waits for your wallet. Answer it there first.");
  const grid = await gridInfo();
  const owner = account.address!;
  const progress: Progress = { hash: "", salt: "" };
  const hasSession = (await keptSession(owner)) !== null;
  const facts: [string, string][] = [
    ["Contract", grid.meta_scheduler],
    ["Amount", `${exact(order.lockedWei)} credits at most; what is not used comes back`],
    ["Permission lasts", order.permit ? `${PERMIT_LASTS_S / 60} minutes` : "until the request"],
    ["Chain", String(grid.chain_id)],
  ];
  const kept = () => keep({ account: owner, chainId: grid.chain_id, name: order.name, lockedWei: String(order.lockedWei), ...progress });
  const flow: Submission = new Submission(
    `Submit ${order.name}`,
    facts,
    [
      { name: "Checked", act: () => check(order, owner) },
      {
        name: "Stored",
        prompt: hasSession ? "" : "one signature for a session key; it cannot spend",
        act: async () => {
          const session = await openSession(provider(), owner);
          const salt = crypto.getRandomValues(new Uint8Array(32));
          progress.salt = [...salt].map((byte) => byte.toString(16).padStart(2, "0")).join("");
          progress.hash = await definitionHash(salt, order.definition);
          await storeDefinition(session, progress.hash, progress.salt, order.definition);
          if (order.mark) await writeMark(session, progress.hash, order.mark);
          flow.hash = progress.hash;
        },
      },
      {
        name: "Allowed",
        prompt: order.permit ? "one signature for exactly these credits" : "one transaction for exactly these credits",
        act: () => allow(order, owner, progress),
      },
      { name: "Requested", prompt: "one transaction", act: () => request(order, owner, progress, kept) },
      {
        name: "Seen in a block",
        act: async () => {
          flow.jobId = await seen(owner, progress);
          forget();
        },
      },
    ],
    (rises) => {
      order.quoted = order.quoted.map((one) => {
        const rise = rises.find((risen) => risen.cluster === one.name);
        return rise ? { ...one, rateWei: rise.newWei } : one;
      });
    },
  );
  latest = flow;
  return flow;
}

async function check(order: JobOrder, owner: Hex): Promise<void> {
  await refresh();
  await confirmPrices(order);
  const [isOpen, minimum, balance] = await Promise.all([
    view<boolean>("MetaScheduler", "enableRequestNewJob", []),
    view<bigint>("MetaScheduler", "minimumAmount", []),
    agreed<bigint>("Credit", "balanceOf", [owner], "balance"),
  ]);
  if (!isOpen) throw new Stopped("The grid takes no new jobs at the moment. Try again later.");
  if (order.lockedWei < minimum) throw new Stopped(`Lock at least ${exact(minimum)} credits.`);
  if (order.lockedWei > balance) {
    throw new Stopped(`${exact(order.lockedWei)} credits cannot be locked; the account has ${exact(balance)}.`);
  }
}

/** Raises PricesRose if a cluster is dearer than the user saw. */
async function confirmPrices(order: JobOrder): Promise<void> {
  const before = new Map(order.quoted.map((one) => [one.address.toLowerCase(), one]));
  const now: Quoted[] = await order.quoteNow();
  const rises = now
    .map((one) => ({ cluster: one.name, oldWei: before.get(one.address.toLowerCase())?.rateWei ?? one.rateWei, newWei: one.rateWei }))
    .filter(({ oldWei, newWei }) => newWei > oldWei);
  if (rises.length) throw new PricesRose(rises);
}

async function allow(order: JobOrder, owner: Hex, progress: Progress): Promise<string> {
  const grid = await gridInfo();
  await confirmPrices(order);
  progress.permit = undefined;
  const allowance = await agreed<bigint>("Credit", "allowance", [owner, grid.meta_scheduler], "allowance");
  if (allowance >= order.lockedWei) return "The standing allowance covers it.";
  if (order.permit) {
    progress.permit = await signPermit(order.lockedWei, (await refresh()).timestamp);
    return "";
  }
  progress.allowanceBefore = allowance;
  await mined(await send("Credit", "approve", [grid.meta_scheduler, order.lockedWei]));
  return "";
}

/** Let the grid lock these credits, for several requests. Returns a note. */
export async function approve(wei: bigint): Promise<string> {
  const grid = await gridInfo();
  const allowance = await agreed<bigint>("Credit", "allowance", [account.address!, grid.meta_scheduler], "allowance");
  if (allowance >= wei) return "The standing allowance covers it.";
  await mined(await send("Credit", "approve", [grid.meta_scheduler, wei]));
  return "";
}

async function request(order: JobOrder, owner: Hex, progress: Progress, kept: () => Promise<void>): Promise<void> {
  if (progress.transaction) return;
  const existing = await findJob(owner, progress.hash);
  if (existing !== null) return;
  await confirmPrices(order);
  const args = requestArguments(order, progress.hash, (await refresh()).timestamp);
  const permit = progress.permit;
  if (permit && Number(permit.deadline) < (await refresh()).timestamp + 30) {
    progress.permit = await signPermit(order.lockedWei, (await refresh()).timestamp);
  }
  const [name, all] = progress.permit
    ? ["requestNewJobWithWishesAndPermit", [...args, progress.permit]]
    : ["requestNewJobWithWishes", args];
  await simulate("MetaScheduler", name, all);
  await kept();
  try {
    progress.transaction = await send("MetaScheduler", name, all);
  } catch (error) {
    if (error instanceof WalletFault && error.refused) forget();
    throw error;
  }
  void kept().catch(() => undefined); // the hash is kept already
}

async function seen(owner: Hex, progress: Progress): Promise<bigint> {
  if (!progress.transaction) return (await findJob(owner, progress.hash))!;
  try {
    return jobOf(await mined(progress.transaction));
  } catch (error) {
    progress.transaction = undefined; // it may be requested again
    throw error;
  }
}

/** Id of the job that a request made. */
function jobOf(receipt: Receipt): bigint {
  for (const { topics, data } of receipt.logs) {
    try {
      const event = decodeEventLog({ abi: ABIS.MetaScheduler, topics, data });
      if (event.eventName === "NewJobRequestEvent") return BigInt((event.args as unknown as { jobId: Hex }).jobId);
    } catch {
      continue; // an event of another contract
    }
  }
  throw new Stopped("The transaction requested no job.");
}

/** Set the allowance back that an approval for a refused request has raised. */
export async function restoreAllowance(before: bigint): Promise<void> {
  const grid = await gridInfo();
  await mined(await send("Credit", "approve", [grid.meta_scheduler, before]));
}

// -- after a reload --------------------------------------------------------------------------

function keep(state: Interrupted & { salt?: string }): Promise<void> {
  const { account: address, chainId, hash, name, lockedWei, transaction } = state;
  return keepOnDevice(KEPT, JSON.stringify({ account: address, chainId, hash, name, lockedWei, transaction }));
}

/** Forget the interrupted submission, when its user knows that the wallet will not send it. */
export function forget(): void {
  void keepOnDevice(KEPT, null).catch(() => undefined); // else it is looked up once more
}

/** The submission that was under way when the page was closed; null if there is none. */
export function interrupted(): Interrupted | null {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "null") as Interrupted | null;
  } catch {
    return null;
  }
}

/**
 * Look an interrupted submission up on chain: its job, or null if nothing was requested. It is forgotten then.
 * Undefined if its transaction is not known: the wallet may still send it.
 */
export async function lookUp(left: Interrupted): Promise<bigint | null | undefined> {
  if (left.transaction) await mined(left.transaction).catch(() => null);
  const job = await findJob(left.account, left.hash);
  if (job === null && !left.transaction) return undefined;
  forget();
  return job;
}
