/** A client of the grid, with the methods that programs know from the existing one. */
import type { GraphQLClient } from "graphql-request";
import { gql } from "graphql-request";
import {
  padHex, stringToHex, zeroAddress,
  type Account, type Address, type Chain, type Hash, type Hex, type PublicClient, type Transport, type WalletClient, type WebSocketTransport,
} from "viem";
import { CREDIT, JOBS, META_SCHEDULER, PROVIDER_MANAGER } from "./abi.js";
import type { JobInput } from "./job.js";
import type { LogTransport, ReadResponse, Stream } from "./logs.js";

export type Label = { key: string; value: string };
export type Wallet = WalletClient<Transport, Chain, Account>;

const SUBMIT = gql`
  mutation Submit($job: Job!) {
    submit(job: $job)
  }
`;

type Addresses = { credit: Address; jobs: Address; providerManager: Address };

export class GridClient {
  private found: Addresses | undefined;

  /**
   * @param wallet signs transactions and log requests
   * @param logs the transport for logs
   * @param metaScheduler the contract from which all others are found
   * @param jobService the GraphQL service
   * @param chain the node over HTTP
   * @param events the node over a WebSocket, for the watchers
   */
  constructor(
    readonly wallet: Wallet,
    private readonly logs: LogTransport,
    readonly metaScheduler: Address,
    private readonly jobService: GraphQLClient,
    readonly chain: PublicClient,
    readonly events: PublicClient<WebSocketTransport>,
  ) {}

  get address(): Address {
    return this.wallet.account.address;
  }

  /** Let the contract take up to `amount` wei of credits. */
  async setAllowance(amount: bigint): Promise<Hash> {
    const { request } = await this.chain.simulateContract({
      account: this.wallet.account, address: await this.credit(), abi: CREDIT, functionName: "approve",
      args: [this.metaScheduler, amount],
    });
    return this.wallet.writeContract(request);
  }

  async getAllowance(): Promise<bigint> {
    const args = [this.address, this.metaScheduler] as const;
    return this.chain.readContract({ address: await this.credit(), abi: CREDIT, functionName: "allowance", args });
  }

  async getBalance(of: Address = this.address): Promise<bigint> {
    return this.chain.readContract({ address: await this.credit(), abi: CREDIT, functionName: "balanceOf", args: [of] });
  }

  async transferCredits(to: Address, amount: bigint): Promise<Hash> {
    const { request } = await this.chain.simulateContract({
      account: this.wallet.account, address: await this.credit(), abi: CREDIT, functionName: "transfer",
      args: [to, amount],
    });
    return this.wallet.writeContract(request);
  }

  /** Upload a job. Returns the hash of its definition. A job with faults rejects with a ClientError. */
  async upload(job: JobInput): Promise<string> {
    return (await this.jobService.request<{ submit: string }>(SUBMIT, { job })).submit;
  }

  /** Upload a job and request it on chain. Returns its id as simulated, before the transaction is mined. */
  async submitJob(job: JobInput, jobName: string, lockedCredits: bigint, uses: Label[] = []): Promise<Hex> {
    const order = requestOf(job, await this.upload(job), jobName, lockedCredits, uses);
    const { request, result } = await this.chain.simulateContract({
      account: this.wallet.account, address: this.metaScheduler, abi: META_SCHEDULER, functionName: "requestNewJob",
      args: order,
    });
    await this.wallet.writeContract(request);
    return result;
  }

  /** Ids of the wallet's jobs, oldest first. */
  async listJob(): Promise<readonly Hex[]> {
    const address = await this.jobs();
    return this.chain.readContract({ address, abi: JOBS, functionName: "getByCustomer", args: [this.address] });
  }

  /** The id of the wallet's job with this index. */
  async getJobHash(index: number): Promise<Hex | undefined> {
    return (await this.listJob())[index];
  }

  /** The job with its provider (one of the address 0 is empty), and the price per minute in wei of credits. */
  async getJob(jobId: Hex) {
    const job = await this.chain.readContract({ address: await this.jobs(), abi: JOBS, functionName: "get", args: [jobId] });
    const manager = (await this.addresses()).providerManager;
    const provider = await this.chain.readContract({
      address: manager, abi: PROVIDER_MANAGER, functionName: "getProvider", args: [job.providerAddr],
    });
    const { gpus, ntasks, cpusPerTask, memPerCpu } = job.definition;
    const { gpuPricePerMin, cpuPricePerMin, memPricePerMin } = provider.providerPrices;
    const costPerMinute = gpus * gpuPricePerMin + ntasks * (cpusPerTask * cpuPricePerMin + memPerCpu * cpusPerTask * memPricePerMin);
    return { ...job, provider: job.providerAddr === zeroAddress ? null : provider, costPerMinute };
  }

  async getJobs(jobIds: readonly Hex[]) {
    return Promise.all(jobIds.map((jobId) => this.getJob(jobId)));
  }

  async topUp(jobId: Hex, amount: bigint): Promise<Hash> {
    const { request } = await this.chain.simulateContract({
      account: this.wallet.account, address: this.metaScheduler, abi: META_SCHEDULER, functionName: "topUpJob",
      args: [jobId, amount],
    });
    return this.wallet.writeContract(request);
  }

  async cancel(jobId: Hex): Promise<Hash> {
    const { request } = await this.chain.simulateContract({
      account: this.wallet.account, address: this.metaScheduler, abi: META_SCHEDULER, functionName: "cancelJob",
      args: [jobId],
    });
    return this.wallet.writeContract(request);
  }

  getLogsMethods(jobId: Hex): { fetchLogs: () => Promise<Stream<ReadResponse>> } {
    return {
      fetchLogs: async () => {
        const timestamp = String(Date.now());
        const signedHash = await this.signed(`read:${this.address.toLowerCase()}/${jobId}/${timestamp}`);
        return this.logs.read({ address: this.address, logName: jobId, timestamp, signedHash });
      },
    };
  }

  /** The personal signature of a text: 65 bytes, the last of them 27 or 28. */
  async signed(text: string): Promise<Uint8Array> {
    return Buffer.from((await this.wallet.signMessage({ message: text })).slice(2), "hex");
  }

  // -- watchers: each calls back until the returned function is called

  async watchAllowance(told: (value: bigint) => void): Promise<() => void> {
    return this.events.watchContractEvent({
      address: await this.credit(), abi: CREDIT, eventName: "Approval",
      args: { owner: this.address, spender: this.metaScheduler },
      onLogs: (logs) => logs.forEach((log) => told(log.args.value!)), onError: fail,
    });
  }

  async watchTransfers(told: (from: Address, to: Address, value: bigint) => void): Promise<() => void> {
    return this.events.watchContractEvent({
      address: await this.credit(), abi: CREDIT, eventName: "Transfer",
      onLogs: (logs) => logs.forEach((log) => told(log.args.from!, log.args.to!, log.args.value!)), onError: fail,
    });
  }

  /** Tells the new balance after each transfer from or to the wallet. */
  async watchBalance(told: (balance: bigint) => void): Promise<() => void> {
    return this.watchTransfers((from, to) => {
      if (from === this.address || to === this.address) void this.getBalance().then(told, fail);
    });
  }

  async watchNewJobs(told: (jobId: Hex, customer: Address) => void): Promise<() => void> {
    return this.events.watchContractEvent({
      address: this.metaScheduler, abi: META_SCHEDULER, eventName: "NewJobRequestEvent",
      onLogs: (logs) => logs.forEach((log) => told(log.args.jobId!, log.args.customer!)), onError: fail,
    });
  }

  /** Tells the ids of all the wallet's jobs when there is a new one. */
  async watchJobIds(told: (jobIds: readonly Hex[]) => void): Promise<() => void> {
    return this.watchNewJobs((_, customer) => {
      if (customer === this.address) void this.listJob().then(told, fail);
    });
  }

  async watchTransitions(told: (jobId: Hex, from: number, to: number) => void): Promise<() => void> {
    return this.events.watchContractEvent({
      address: await this.jobs(), abi: JOBS, eventName: "JobTransitionEvent",
      onLogs: (logs) => logs.forEach((log) => told(log.args.jobId!, log.args.from!, log.args.to!)), onError: fail,
    });
  }

  async addresses(): Promise<Addresses> {
    const read = (functionName: keyof Addresses) =>
      this.chain.readContract({ address: this.metaScheduler, abi: META_SCHEDULER, functionName });
    this.found ??= { credit: await read("credit"), jobs: await read("jobs"), providerManager: await read("providerManager") };
    return this.found;
  }

  private async credit(): Promise<Address> {
    return (await this.addresses()).credit;
  }

  private async jobs(): Promise<Address> {
    return (await this.addresses()).jobs;
  }
}

/** The arguments of requestNewJob. */
export function requestOf(job: JobInput, batchLocationHash: string, jobName: string, lockedCredits: bigint, uses: Label[]) {
  const { tasks, cpusPerTask, memPerCpu, gpus } = job.resources;
  const definition = {
    gpus: BigInt(gpus), memPerCpu: BigInt(memPerCpu), cpusPerTask: BigInt(cpusPerTask), ntasks: BigInt(tasks),
    batchLocationHash, storageType: storageType(job), uses, affinity: [],
  };
  return [definition, lockedCredits, padHex(stringToHex(jobName), { dir: "right", size: 32 }), true] as const;
}

function storageType(job: JobInput): number {
  if (job.output?.s3) return 2;
  if (job.output?.http) return job.output.http.url === "https://transfer.deepsquare.run/" ? 0 : 1;
  return 4;
}

function fail(error: Error): never {
  throw error;
}
