/** Sweeps as groups, as `deepgrid/client/repeat/sweep_groups.py` makes them: the newest job of each place counts. Pure. */
import { stateOf } from "./states";
import { tagLines } from "./tags";
import type { Job } from "../job/value";
import type { Mark } from "../wallet/kept";

export interface SweepRow {
  /** The place in the sweep, from 1. */
  at: number;
  parameters: Record<string, string>[];
  job: Job;
  /** Number of jobs that this place has had. */
  attempts: number;
  failed: boolean;
}

export interface SweepGroup {
  id: string;
  name: string;
  /** Number of places. */
  size: number;
  rows: SweepRow[];
  /** Names of the parameters, in the order of their first use. */
  columns: string[];
  failed: SweepRow[];
  over: number;
}

type Marks = ReadonlyMap<string, Mark>;

const isOver = (job: Job) => !stateOf(job.status).hot;

/** The sweeps of these jobs by id. */
export function sweepsOf(jobs: Iterable<Job>, marks: Marks): Map<string, SweepGroup> {
  const places = new Map<string, Map<number, Job[]>>();
  for (const job of jobs) {
    const sweep = marks.get(job.definitionHash)?.sweep;
    if (!sweep) continue;
    const rows = places.get(sweep.id) ?? new Map<number, Job[]>();
    rows.set(sweep.at, [...(rows.get(sweep.at) ?? []), job]);
    places.set(sweep.id, rows);
  }
  return new Map([...places].map(([id, rows]) => [id, groupOf(id, rows, marks)]));
}

function groupOf(id: string, places: Map<number, Job[]>, marks: Marks): SweepGroup {
  const rows = [...places].sort(([a], [b]) => a - b).map(([at, jobs]): SweepRow => {
    const job = jobs.reduce((newest, one) => (one.id > newest.id ? one : newest));
    const failed = isOver(job) && stateOf(job.status).word !== "finished";
    return { at, parameters: marks.get(job.definitionHash)!.sweep!.parameters, job, attempts: jobs.length, failed };
  });
  const { name, of } = marks.get(rows[0]!.job.definitionHash)!.sweep!;
  const columns = [...new Set(rows.flatMap((row) => row.parameters.flatMap((one) => Object.keys(one))))];
  return { id, name, size: of, rows, columns, failed: rows.filter((row) => row.failed), over: rows.filter((row) => isOver(row.job)).length };
}

/** The counts in words: `48 finished, 2 failed of 50`. */
export function progressWords(sweep: SweepGroup): string {
  const counts = new Map<string, number>();
  for (const { job } of sweep.rows) counts.set(stateOf(job.status).word, (counts.get(stateOf(job.status).word) ?? 0) + 1);
  if (sweep.size > sweep.rows.length) counts.set("not requested", sweep.size - sweep.rows.length);
  return `${[...counts].map(([words, count]) => `${count} ${words}`).join(", ")} of ${sweep.size}`;
}

/** Rows of the list: ids of jobs, and for each sweep one text, its id, in the place of its newest job. */
export function listed(ids: number[], jobs: ReadonlyMap<number, Job>, marks: Marks): (number | string)[] {
  const rows = new Set<number | string>();
  for (const id of ids) rows.add(marks.get(jobs.get(id)?.definitionHash ?? "")?.sweep?.id ?? id);
  return [...rows];
}

/** All tags of these marks, as a customer writes them. */
export function tagsIn(marks: Iterable<Mark>): string[] {
  const all = new Set<string>();
  for (const { tags } of marks) for (const tag of tagLines(tags)) all.add(tag);
  return [...all].sort();
}

/** Whether a mark has a tag such as `project=wing`. */
export function hasTag(mark: Mark | undefined, tag: string): boolean {
  const [name = "", ...value] = tag.split("=");
  return mark !== undefined && Object.hasOwn(mark.tags, name) && mark.tags[name] === value.join("=");
}
