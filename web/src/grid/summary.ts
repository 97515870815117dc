/** Figures of the grid page: jobs by state, waiting times, refusals. */
import { recentEvents } from "../chain/events";
import { readJobCount, readJobs, readPending, type Job } from "../chain/jobs";

export interface Summary {
  count: number;
  /** How many of the newest jobs were counted. */
  counted: number;
  byState: [number, number][];
  pending: Job[];
  /** How many of the newest jobs were searched for pending ones. */
  searched: number;
  refusals: { job: number; provider: string; block: number }[] | null;
  refusalsFrom: number;
}

const NEWEST = 200;
const SEARCHED = 2000;

export async function readSummary(block: number): Promise<Summary> {
  const count = await readJobCount(block);
  const counted = Math.min(count, NEWEST);
  const searched = Math.min(count, SEARCHED);
  const ids = Array.from({ length: counted }, (_, at) => count - at);
  const [jobs, pending, refused] = await Promise.all([
    readJobs(ids, block),
    searched ? readPending(count - searched + 1, searched, block) : [],
    recentEvents("MetaScheduler", ["JobRefusedEvent"], block).catch(() => null),
  ]);
  return {
    count,
    counted,
    byState: statesOf(jobs),
    pending,
    searched,
    refusals: refused && refused.events.reverse().slice(0, 20).map(({ args, block: at }) => ({
      job: Number(BigInt(args.jobId as string)),
      provider: String(args.provider),
      block: at,
    })),
    refusalsFrom: refused?.from ?? 0,
  };
}

function statesOf(jobs: Job[]): [number, number][] {
  const counts = new Map<number, number>();
  for (const { status } of jobs) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => a - b);
}

/** Seconds that pending jobs wait, as of `now`: the middle one and the longest. */
export function waits(pending: Job[], now: number): { median: number; longest: number } | null {
  const each = pending.map((job) => Math.max(0, now - job.submittedAt)).sort((a, b) => a - b);
  if (!each.length) return null;
  return { median: each[Math.floor(each.length / 2)]!, longest: each[each.length - 1]! };
}
