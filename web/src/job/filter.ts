/** Filters of the table of jobs. They are kept in the address, so that a link shows the same rows. */
import { stateOf } from "../pure/states";
import { hasTag } from "../pure/sweeps";
import type { Mark } from "../wallet/kept";
import type { Job } from "./value";

export interface Filter {
  /** A state in words; empty for all. */
  state: string;
  name: string;
  cluster: string;
  /** Jobs of the last hours; 0 for all. */
  hours: number;
  /** A tag such as `project=wing`; empty for all. */
  tag: string;
}

export const TIMES: [string, string][] = [["", "Any time"], ["1", "Last hour"], ["24", "Last day"], ["168", "Last week"], ["720", "Last 30 days"]];

export function filterOf(query: URLSearchParams): Filter {
  const hours = Number(query.get("hours") ?? 0);
  return {
    state: query.get("state") ?? "",
    name: query.get("name") ?? "",
    cluster: query.get("cluster") ?? "",
    hours: Number.isFinite(hours) && hours > 0 ? hours : 0,
    tag: query.get("tag") ?? "",
  };
}

export const isFiltered = (filter: Filter) => Boolean(filter.state || filter.name || filter.cluster || filter.hours || filter.tag);

/** Ids of jobs that pass, in the given order. A job that was not read yet passes if there is no filter. */
export function passing(
  ids: number[], jobs: Map<number, Job>, clusters: Map<string, string>, filter: Filter, now: number, marks: ReadonlyMap<string, Mark> = new Map(),
): number[] {
  if (!isFiltered(filter)) return ids;
  const name = filter.name.trim().toLowerCase();
  const cluster = filter.cluster.trim().toLowerCase();
  const since = filter.hours ? now - filter.hours * 3600 : 0;
  return ids.filter((id) => {
    const job = jobs.get(id);
    if (!job || job.submittedAt < since) return false;
    if (filter.state === "hot" ? !stateOf(job.status).hot : filter.state && stateOf(job.status).word !== filter.state) return false;
    if (filter.tag && !hasTag(marks.get(job.definitionHash), filter.tag)) return false;
    if (name && !job.name.toLowerCase().includes(name) && String(id) !== name) return false;
    const where = `${clusters.get(job.provider) ?? ""} ${job.provider}`.toLowerCase();
    return !cluster || where.includes(cluster);
  });
}
