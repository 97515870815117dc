/** One job as the pages show it: the chain's values at each block, its history when it changed, remarks of the grid. */
import { Live } from "../chain/live.svelte";
import { RelayFault } from "../chain/relay";
import { notices } from "../wallet/services";
import { readHistory, type Transition } from "./history";
import { clusterName, readJobs } from "./read";
import type { Job } from "./value";
import { isOver, type Remark } from "./words";

const REMARKS_MS = 5_000;

/** The answer of the chain; `job` is null if there is no such job. */
interface Read {
  job: Job | null;
  cluster: string;
}

export class JobWatch {
  live: Live<Read>;
  history: Transition[] | null = $state.raw(null);
  historyFault = $state("");
  /** Null while they are not known. */
  remarks: Remark[] | null = $state.raw(null);
  private seen = "";
  private remarksAt = 0;

  constructor(readonly id: number) {
    this.live = new Live((block) => this.read(block));
  }

  private async read(block: number): Promise<Read> {
    const known = this.live.value;
    if (known?.job && isOver(known.job) && this.history && this.remarks) return known;
    let job: Job;
    try {
      job = (await readJobs([this.id], block))[0]!;
    } catch (error) {
      if (error instanceof RelayFault && !error.transient) return { job: null, cluster: "" };
      throw error;
    }
    const cluster = await clusterName(job.provider).catch(() => job.provider);
    void this.readMore(job, block);
    return { job, cluster };
  }

  private async readMore(job: Job, block: number): Promise<void> {
    const state = `${job.status}:${job.lastChangeBlock}:${job.lockedWei}:${job.grantedMinutes}`;
    if (state !== this.seen) {
      this.seen = state;
      readHistory(job, isOver(job) ? job.lastChangeBlock : block).then(
        (history) => ([this.history, this.historyFault] = [history, ""]),
        (error: unknown) => {
          this.seen = "";
          this.historyFault = error instanceof RelayFault ? error.sentence : "The history cannot be read.";
        },
      );
    }
    if (Date.now() - this.remarksAt < REMARKS_MS) return;
    this.remarksAt = Date.now();
    this.remarks = await notices(this.id).catch(() => this.remarks);
  }
}
