/** The file of a job: of this device, by the hash of its definition, else as the services keep it for its customer. */
import { FILE, keep } from "../wallet/local";
import { account, provider } from "../wallet/account.svelte";
import { readKeptFile } from "../wallet/kept";
import { keptSession, openSession } from "../wallet/session";
import type { Job } from "./value";

export interface JobFile {
  text: string;
  /** Tags of the job, as a customer writes them. */
  tags: Record<string, string>;
  note: string;
  /** Places of secrets that are not kept. */
  masked: string[];
}

export function keepFile(definitionHash: string, yaml: string): void {
  void keep(FILE + definitionHash, yaml).catch(() => undefined); // full or refused: the services keep it, without comments
}

/** The file of a job; null if it is not on this device. */
export function keptFile(definitionHash: string): string | null {
  return localStorage.getItem(FILE + definitionHash);
}

/** The file of an own job, with empty secrets; null if it is kept nowhere. The wallet may be asked for a session key. */
export async function fileOf(job: Pick<Job, "id" | "definitionHash">): Promise<JobFile | null> {
  const here = keptFile(job.definitionHash);
  const session = account.address ? await (here === null ? openSession(provider(), account.address) : keptSession(account.address)) : null;
  const kept = session && (await readKeptFile(session, job.id).catch((error: unknown) => {
    if (here === null) throw error;
    return null;
  }));
  const text = here ?? kept?.text;
  return text === undefined ? null : { text, tags: kept?.mark.tags ?? {}, note: kept?.mark.note ?? "", masked: here === null ? (kept?.masked ?? []) : [] };
}

/** Open the file of a job in the editor of a new job. */
export function runAgain(jobId: number): void {
  location.hash = `/new?again=${jobId}`;
}
