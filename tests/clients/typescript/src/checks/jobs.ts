/** Checks of jobs: all examples on chain, one job that runs to its end, one that is topped up and cancelled. */
import type { Hex } from "viem";
import { isFinal, META_SCHEDULER, STATUS } from "../abi.js";
import { requestOf, type GridClient } from "../client.js";
import { assert, check, rejection, until } from "../harness.js";
import type { JobInput } from "../job.js";
import { CREDIT, type Parties } from "../parties.js";
import { mined, type Watched } from "./chain.js";
import { SMALL, type Uploaded } from "./service.js";

const LOCKED = 100n * CREDIT;
const NOWHERE = [{ key: "zone", value: "nowhere" }]; // no cluster has it, so the job stays pending
const TALKER: JobInput = {
  ...SMALL, steps: [{ run: { command: "for n in 1 2 3 4 5; do echo \"line $n\"; sleep 0.5; done; printf 'é\\r\\n\\nlast'" } }],
};
const SLEEPER: JobInput = { ...SMALL, steps: [{ run: { command: "echo asleep; exec sleep 10000" } }] };

/** What the job TALKER writes, line by line. */
export const TALK = ["line 1", "line 2", "line 3", "line 4", "line 5", "é", "", "last"];

/** Request all uploaded examples in one go, and cancel them. The existing SDK would do it one by one. */
export async function checkExamplesOnChain({ customer }: Parties, uploaded: Uploaded[]): Promise<void> {
  await check("every example is a job on chain", async () => {
    const before = await customer.getBalance();
    const known = new Set(await customer.listJob());
    await together(customer, uploaded.map(({ name, job, hash }) => ({
      functionName: "requestNewJob", args: requestOf(job, hash, name.slice(0, 32), LOCKED, NOWHERE),
    })));
    const ids = (await customer.listJob()).filter((id) => !known.has(id));
    const jobs = await customer.getJobs(ids);
    assert.deepEqual(new Set(jobs.map((job) => job.definition.batchLocationHash)), new Set(uploaded.map(({ hash }) => hash)));
    for (const job of jobs) assert.deepEqual([STATUS[job.status], job.provider], ["PENDING", null]);
    await together(customer, ids.map((id) => ({ functionName: "cancelJob", args: [id] })));
    for (const job of await customer.getJobs(ids)) {
      assert.equal(STATUS[job.status], "CANCELLED");
      assert.ok(job.hasCancelRequest && job.time.cancelRequestTimestamp > 0n, "a cancelled job says when");
      assert.equal(job.time.start, job.time.end);
    }
    assert.equal(await customer.getBalance(), before);
  });
}

type Call = { functionName: "requestNewJob"; args: ReturnType<typeof requestOf> } | { functionName: "cancelJob"; args: [Hex] };

/** Send many transactions at once, and wait for all. */
async function together(client: GridClient, calls: Call[]): Promise<void> {
  const first = await client.chain.getTransactionCount({ address: client.address });
  const gas = 2_000_000n;
  const hashes = await Promise.all(calls.map((call, place) =>
    client.wallet.writeContract({ address: client.metaScheduler, abi: META_SCHEDULER, ...call, nonce: first + place, gas } as never),
  ));
  for (const hash of hashes) await mined(client, hash);
}

export type Submitted = { talker: Hex; sleeper: Hex };

/** Submit the jobs that run. The id of a submission comes from the simulation, so that the next one waits for the block. */
export async function submitJobs({ customer, settings }: Parties): Promise<Submitted | null> {
  const found: Partial<Submitted> = {};
  const done = await check("submit", async () => {
    const cluster = [{ key: "name", value: settings.cluster }];
    for (const [name, job] of [["talker", TALKER], ["sleeper", SLEEPER]] as const) {
      const jobId = await customer.submitJob(job, name, LOCKED, cluster);
      await until(() => customer.listJob(), (ids) => ids.includes(jobId));
      found[name] = jobId;
    }
    assert.equal(await customer.getJobHash((await customer.listJob()).length - 1), found.sleeper);
    const [talker] = await customer.getJobs([found.talker!]);
    assert.equal(Buffer.from(talker!.jobName.slice(2), "hex").toString().replace(/\0+$/, ""), "talker");
    assert.deepEqual([talker!.cost.maxCost, talker!.cost.delegateSpendingAuthority], [LOCKED, true]);
    assert.equal(talker!.definition.storageType, 4);
  });
  return done ? (found as Submitted) : null;
}

/** Jobs that the contract refuses, with its reason in words. */
export async function checkRefusals({ customer, stranger }: Parties, { talker }: Submitted): Promise<void> {
  await check("refusals on chain are sentences", async () => {
    const [little, broke] = [await rejection(customer.submitJob(SMALL, "little", 1n)), await rejection(stranger.submitJob(SMALL, "broke", LOCKED))];
    assert.match(little.message, /InsufficientFunds/);
    assert.match(broke.message, /ERC20: insufficient allowance/);
    assert.match((await rejection(stranger.cancel(talker))).message, /JobHotStatusOnly/); // it has ended
    assert.match((await rejection(customer.getJob(`0x${"ff".repeat(32)}`))).message, /InvalidJob/);
  });
}

/** Top up and cancel a running job. */
export async function checkTopUpAndCancel({ customer, stranger }: Parties, { sleeper }: Submitted): Promise<void> {
  await check("top up and cancel", async () => {
    await until(() => customer.getJob(sleeper), (job) => STATUS[job.status] === "RUNNING");
    await mined(customer, await customer.topUp(sleeper, 50n * CREDIT));
    const running = await customer.getJob(sleeper);
    assert.equal(running.cost.maxCost, LOCKED + 50n * CREDIT);
    assert.ok(running.provider !== null && running.costPerMinute > 0n);
    assert.match((await rejection(stranger.cancel(sleeper))).message, /CustomerOnly/);
    // The gas is estimated before the block. The provider's answer to the top-up may come first and make it too little.
    await until(async () => (await mined(customer, await customer.cancel(sleeper)).catch((error) => error)) === undefined, (done) => done, 60);
    const job = await until(() => customer.getJob(sleeper), (one) => isFinal(one.status));
    assert.deepEqual([STATUS[job.status], job.hasCancelRequest], ["CANCELLED", true]);
    assert.ok(job.cost.finalCost < job.cost.maxCost);
  });
}

/** The job that wrote a log has finished, and the watchers have seen all of it. */
export async function checkEnd({ customer }: Parties, { talker, sleeper }: Submitted, watched: Watched): Promise<void> {
  await check("the job finishes", async () => {
    const job = await until(() => customer.getJob(talker), (one) => isFinal(one.status));
    assert.deepEqual([STATUS[job.status], job.exitCode], ["FINISHED", 0n]);
    assert.ok(job.time.end >= job.time.start && job.time.start > 0n);
  });
  await check("six watchers", async () => {
    for (const jobId of [talker, sleeper]) {
      await until(async () => watched.newJobs, (told) => told.includes(jobId));
      await until(async () => watched.lists, (told) => told.some((ids) => ids.includes(jobId)));
      const seen = await until(async () => watched.transitions.get(jobId) ?? [], (told) => isFinal(told.at(-1) ?? 0));
      assert.deepEqual(seen.map((status) => STATUS[status]).slice(-4, -1), ["META_SCHEDULED", "SCHEDULED", "RUNNING"]);
    }
    assert.ok(watched.balances.length > 0 && watched.allowances.length > 0);
    assert.ok(watched.twice > 0, "a filter with one address twice tells nothing");
  });
}
