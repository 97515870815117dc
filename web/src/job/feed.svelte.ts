/** All jobs of one address: newest first at once, then the others in pages. Hot jobs are read again at each block. */
// Maps are replaced as a whole when they change: a reactive entry for each of 10,000 jobs would be slow.
/* eslint-disable svelte/prefer-svelte-reactivity */
import { type Cluster, readClusters } from "../chain/clusters";
import { onBlock, refresh } from "../chain/head";
import { RelayFault } from "../chain/relay";
import { keepJobs, keptJobs } from "./cache";
import { clusterName, idsOf, JOBS_PER_CALL, readJobs } from "./read";
import { type Job, STATUS } from "./value";
import { isOver } from "./words";

const AT_ONCE = 4;
const TELL_MS = 250;
const OFFERS_MS = 30_000;

export class JobFeed {
  /** Ids, newest first; null until they were read. */
  ids: number[] | null = $state.raw(null);
  jobs: Map<number, Job> = $state.raw(new Map());
  clusters: Map<string, string> = $state.raw(new Map());
  /** All clusters, if a job waits for one; null until they were read. */
  offers: Cluster[] | null = $state.raw(null);
  private offersAt = 0;
  /** Why they cannot be read at the moment; empty if all is well. */
  trouble = $state("");
  readAt = $state(0);
  private known = new Map<number, Job>();
  private told = 0;
  private busy = false;
  private ended = false;
  private stop: (() => void) | undefined;

  constructor(readonly customer: string) {}

  start(): void {
    this.stop = onBlock((head) => this.look(head.number));
  }

  close(): void {
    this.ended = true;
    this.stop?.();
  }

  /** Read again now, for example after a fault or a transaction. */
  async again(): Promise<void> {
    await this.look((await refresh()).number);
  }

  get complete(): boolean {
    return this.ids !== null && this.jobs.size >= this.ids.length;
  }

  private async look(block: number): Promise<void> {
    if (this.busy || this.ended) return;
    this.busy = true;
    try {
      if (this.ids === null) await this.recall();
      const fresh = await idsOf(this.customer, this.ids?.length ?? 0, block);
      const ids = [...fresh.reverse(), ...(this.ids ?? [])];
      const hot = [...this.known.values()].filter((job) => !isOver(job)).map((job) => job.id);
      const missing = ids.filter((id) => !this.known.has(id));
      await this.page([...missing.slice(0, JOBS_PER_CALL)], block);
      this.ids = ids;
      this.tell(true);
      await this.pages(hot, block);
      await this.pages(missing.slice(JOBS_PER_CALL), block);
      await this.readOffers(block);
      this.trouble = "";
      this.readAt = Date.now();
    } catch (error) {
      this.trouble = error instanceof RelayFault ? error.sentence : "The grid's services do not answer.";
    } finally {
      this.busy = false;
      this.tell(true);
    }
  }

  private async readOffers(block: number): Promise<void> {
    const waits = [...this.known.values()].some((job) => job.status === STATUS.pending);
    if (!waits || Date.now() - this.offersAt < OFFERS_MS) return;
    this.offersAt = Date.now();
    this.offers = await readClusters(block);
  }

  private async recall(): Promise<void> {
    const kept = await keptJobs(this.customer);
    for (const job of kept) this.known.set(job.id, job);
    for (const address of new Set(kept.map((job) => job.provider))) void this.name(address);
  }

  private async pages(ids: number[], block: number): Promise<void> {
    for (let at = 0; at < ids.length && !this.ended; at += JOBS_PER_CALL * AT_ONCE) {
      const part = ids.slice(at, at + JOBS_PER_CALL * AT_ONCE);
      const starts = Array.from({ length: Math.ceil(part.length / JOBS_PER_CALL) }, (_, page) => page * JOBS_PER_CALL);
      await Promise.all(starts.map((start) => this.page(part.slice(start, start + JOBS_PER_CALL), block)));
      this.tell();
    }
  }

  private async page(ids: number[], block: number): Promise<void> {
    const jobs = await readJobs(ids, block);
    for (const job of jobs) this.known.set(job.id, job);
    void keepJobs(jobs.filter(isOver));
    await Promise.all([...new Set(jobs.map((job) => job.provider))].map((address) => this.name(address)));
  }

  private async name(address: string): Promise<void> {
    if (!address || this.clusters.has(address)) return;
    const name = await clusterName(address).catch(() => address);
    this.clusters = new Map(this.clusters).set(address, name);
  }

  /** Show what is known. Many pages in a row are shown together. */
  private tell(now = false): void {
    if (!now && Date.now() - this.told < TELL_MS) return;
    this.told = Date.now();
    this.jobs = new Map(this.known);
  }
}
