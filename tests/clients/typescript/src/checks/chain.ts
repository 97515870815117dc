/** Checks of the chain: credits, six watchers, and what the existing command asks of a node. */
import { encodeFunctionData, type Address, type Hash, type Hex } from "viem";
import { CREDIT as TOKEN, PROVIDER_MANAGER } from "../abi.js";
import type { GridClient } from "../client.js";
import { assert, check, rejection, until } from "../harness.js";
import { CREDIT, type Parties } from "../parties.js";

const GAS_OF_THE_COMMAND = 20_000_000n;

/** What the six watchers have told. */
export class Watched {
  readonly allowances: bigint[] = [];
  readonly transfers: { from: Address; to: Address; value: bigint }[] = [];
  readonly balances: bigint[] = [];
  readonly newJobs: Hex[] = [];
  readonly lists: (readonly Hex[])[] = [];
  readonly transitions = new Map<Hex, number[]>();
  /** Events of a filter that names addresses twice, as the existing command does. */
  twice = 0;
  private readonly stops: (() => void)[] = [];

  async start(client: GridClient): Promise<void> {
    const address = [client.metaScheduler, (await client.addresses()).jobs, client.metaScheduler];
    const { unsubscribe } = await client.events.transport.subscribe({
      params: ["logs", { address }], onData: () => (this.twice += 1), onError: () => {},
    });
    this.stops.push(
      () => void unsubscribe(),
      await client.watchAllowance((value) => this.allowances.push(value)),
      await client.watchTransfers((from, to, value) => this.transfers.push({ from, to, value })),
      await client.watchBalance((balance) => this.balances.push(balance)),
      await client.watchNewJobs((jobId, customer) => customer === client.address && this.newJobs.push(jobId)),
      await client.watchJobIds((jobIds) => this.lists.push(jobIds)),
      await client.watchTransitions((jobId, _, to) => this.transitions.set(jobId, [...(this.transitions.get(jobId) ?? []), to])),
    );
  }

  stop(): void {
    for (const stop of this.stops) stop();
  }
}

/**
 * Wait until a transaction is mined, which must succeed, and one block more: while it mines, the node may answer a read
 * from the block before.
 */
export async function mined(client: GridClient, hash: Hash): Promise<void> {
  const receipt = await client.chain.waitForTransactionReceipt({ hash, timeout: 60_000 });
  assert.equal(receipt.status, "success");
  await until(() => client.chain.getBlockNumber({ cacheTime: 0 }), (head) => head > receipt.blockNumber);
}

export async function checkCredits({ customer, stranger, settings }: Parties, watched: Watched): Promise<void> {
  await check("chain id", async () => assert.equal(await customer.chain.getChainId(), settings.chainId));
  await check("watchers start", () => watched.start(customer));
  await check("allowance", async () => {
    await mined(customer, await customer.setAllowance(12_345n));
    assert.equal(await customer.getAllowance(), 12_345n);
    await until(async () => watched.allowances, (told) => told.includes(12_345n));
  });
  await check("balance and transfer", async () => {
    const [mine, theirs] = [await customer.getBalance(), await stranger.getBalance()];
    await mined(customer, await customer.transferCredits(stranger.address, CREDIT));
    assert.equal(await customer.getBalance(), mine - CREDIT);
    assert.equal(await stranger.getBalance(), theirs + CREDIT);
    await until(async () => watched.transfers, (told) => told.some(({ to, value }) => to === stranger.address && value === CREDIT));
    await until(async () => watched.balances, (told) => told.at(-1) === mine - CREDIT);
  });
  await check("too few credits is a sentence", async () => {
    const error = await rejection(stranger.transferCredits(customer.address, 10n ** 30n));
    assert.match(error.message, /ERC20: transfer amount exceeds balance/);
  });
}

/** The command's transactions are legacy ones with a fixed gas limit, after an estimate. */
export async function checkCommand({ customer, settings }: Parties): Promise<void> {
  const { credit, providerManager } = await customer.addresses();
  await check("legacy transaction with 20 million gas", async () => {
    const data = encodeFunctionData({ abi: TOKEN, functionName: "approve", args: [settings.metaScheduler, 100_000n * CREDIT] });
    const account = customer.wallet.account;
    await customer.chain.estimateGas({ account, to: credit, data });
    await mined(customer, await customer.wallet.sendTransaction({ to: credit, data, type: "legacy", gas: GAS_OF_THE_COMMAND }));
    assert.equal(await customer.getAllowance(), 100_000n * CREDIT);
  });
  await check("events from block 0", async () => {
    const found = await customer.chain.getContractEvents({
      address: providerManager, abi: PROVIDER_MANAGER, eventName: "ProviderWaitingForApproval", fromBlock: 0n, toBlock: "latest",
    });
    assert.ok(found.length > 0);
  });
}
