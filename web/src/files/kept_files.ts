/** Files that the grid keeps: the output of a job, links to it, and input that is sent. */
import { sha256 } from "@noble/hashes/sha2";
import { bytesToHex, type Hex } from "viem";
import { gridInfo } from "../chain/grid";
import { ServiceFault, signedFetch } from "../wallet/services";
import type { Session } from "../wallet/session";
import { BadList, type FileEntry, listText, manifestOf, parseManifest } from "./manifest";

const PART_BYTES = 4 * 1024 * 1024;
const AT_ONCE = 3;
const TRIES = 5;
const HASHED_AT_ONCE = 8 * 1024 * 1024;

/** The output of a job. `address` is a capability for a day: it is never kept. */
export interface KeptOutput {
  address: string;
  entries: FileEntry[];
  size: number;
  /** In unix seconds. */
  keptUntil: number;
}

export interface Link {
  id: number;
  made_at: number;
  until: number;
  revoked_at: number | null;
  address: string | null;
}

/** The output of an own job; null if the grid keeps none. */
export async function outputOf(session: Session, jobId: number): Promise<KeptOutput | null> {
  try {
    const said = await (await signedFetch(session, "GET", `/v1/jobs/${jobId}/files`)).json();
    const list = await (await fetched(`${said.address}/manifest`)).arrayBuffer();
    const entries = parseManifest(listText(new Uint8Array(list)));
    return { address: said.address, entries, size: said.size, keptUntil: said.kept_until };
  } catch (error) {
    if (error instanceof ServiceFault && error.status === 404) return null;
    if (error instanceof BadList) throw new ServiceFault(error.message, 0, false);
    throw error;
  }
}

/** Where the browser saves one file. */
export const fileUrl = (output: KeptOutput, path: string) => `${output.address.slice(1)}/file?path=${encodeURIComponent(path)}`;
export const zipUrl = (output: KeptOutput) => `${output.address.slice(1)}/zip`;

/** The first bytes of a file. */
export async function beginningOf(output: KeptOutput, entry: FileEntry, most: number): Promise<Uint8Array> {
  if (!entry.size) return new Uint8Array();
  const range = { Range: `bytes=0-${Math.min(entry.size, most) - 1}` };
  return new Uint8Array(await (await fetched(`/${fileUrl(output, entry.path)}`, { headers: range })).arrayBuffer());
}

async function fetched(path: string, init: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path.slice(1), init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ServiceFault("The grid's services do not answer.", 0, true);
  }
  if (answer.ok) return answer;
  const said = (await answer.json().catch(() => ({}))) as { error?: string };
  const transient = answer.status === 429 || answer.status >= 500;
  throw new ServiceFault(`The grid's services refused: ${said.error ?? `status ${answer.status}`}.`, answer.status, transient);
}

// -- links -----------------------------------------------------------------------------------

/** Make a link to the output of a job that works for `forS` seconds. Returns its address, which is shown once. */
export async function share(session: Session, jobId: number, forS: number): Promise<string> {
  const link = (await (await signedFetch(session, "POST", `/v1/jobs/${jobId}/links`, JSON.stringify({ for_s: forS }))).json()) as Link;
  const base = (await gridInfo()).services_url ?? new URL(".", document.baseURI).href;
  return `${base.replace(/\/$/, "")}${link.address}/zip`;
}

export async function linksOf(session: Session, jobId: number): Promise<Link[]> {
  return ((await (await signedFetch(session, "GET", `/v1/jobs/${jobId}/links`)).json()) as { links: Link[] }).links;
}

export async function revokeLinks(session: Session, jobId: number): Promise<void> {
  await signedFetch(session, "DELETE", `/v1/jobs/${jobId}/links`);
}

// -- sending ---------------------------------------------------------------------------------

/** A file that was chosen, under the name that the job sees. */
export interface Chosen {
  path: string;
  file: File;
}

const hash = (bytes: Uint8Array) => bytesToHex(sha256(bytes)).slice(2);

/** Send files; returns the number by which a job names them. `tell` gets a share of 1 for hashing, then for sending. */
export async function send(session: Session, chosen: readonly Chosen[], tell: (step: string, part: number) => void, signal?: AbortSignal): Promise<string> {
  const files = [...chosen].sort((a, b) => (a.path < b.path ? -1 : 1));
  const total = files.reduce((sum, { file }) => sum + file.size, 0);
  const entries: FileEntry[] = [];
  let read = 0;
  for (const { path, file } of files) {
    const sum = await checksumOf(file, (bytes) => tell("Reading", (read += bytes) / Math.max(1, total)), signal);
    entries.push({ path, size: file.size, sha256: sum });
  }
  const manifest = new TextEncoder().encode(manifestOf(entries));
  const wish = JSON.stringify({ digest: hash(manifest), size: total, files: files.length });
  const said = (await (await signedFetch(session, "POST", "/v1/files", wish)).json()) as { id: string; address: string; finished: boolean };
  if (!said.finished) await sendAll(said.address, manifest, new Blob(files.map(({ file }) => file)), tell, signal);
  return said.id;
}

async function sendAll(address: string, manifest: Uint8Array, whole: Blob, tell: (step: string, part: number) => void, signal?: AbortSignal): Promise<void> {
  await put(address, "manifest", manifest, signal);
  for (;;) {
    const { missing, left } = (await (await fetched(`${address}/parts`, { signal })).json()) as { missing: number[]; left: number };
    if (!left) break;
    const parts = Math.ceil(whole.size / PART_BYTES);
    let [next, done] = [0, parts - left];
    const one = async () => {
      for (let at = next++; at < missing.length; at = next++) {
        const start = missing[at]! * PART_BYTES;
        const bytes = await whole.slice(start, start + PART_BYTES).arrayBuffer().catch(() => {
          throw new ServiceFault("A file changed while it was sent. Choose it again.", 0, false);
        });
        await put(address, `parts/${missing[at]}`, new Uint8Array(bytes), signal);
        tell("Sending", ++done / parts);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
  }
  await put(address, "finish", new Uint8Array(), signal);
}

async function put(address: string, what: string, body: Uint8Array, signal?: AbortSignal): Promise<void> {
  const headers = { "X-Grid-Checksum": hash(body) };
  for (let attempt = 1; ; attempt += 1) {
    try {
      await fetched(`${address}/${what}`, { method: "PUT", body: body as BodyInit, headers, signal });
      return;
    } catch (error) {
      if (!(error instanceof ServiceFault && error.transient) || attempt === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1000 * 2 ** attempt * (0.5 + Math.random())));
    }
  }
}

/** SHA-256 of a file that need not fit into memory. */
async function checksumOf(file: Blob, tell: (bytes: number) => void, signal?: AbortSignal): Promise<string> {
  const sum = sha256.create();
  for (let at = 0; at < file.size; at += HASHED_AT_ONCE) {
    signal?.throwIfAborted();
    const bytes = new Uint8Array(await file.slice(at, at + HASHED_AT_ONCE).arrayBuffer().catch(() => {
      throw new ServiceFault("A chosen file cannot be read. Choose it again.", 0, false);
    }));
    sum.update(bytes);
    tell(bytes.length);
  }
  return (bytesToHex(sum.digest()) as Hex).slice(2);
}
