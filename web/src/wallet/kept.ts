/** What the services keep of the customer's jobs: files without secrets, tags, notes, places in sweeps. */
import { stringify } from "yaml";
import schema from "../generated/schema.json";
import { emptySecrets } from "../newjob/secrets";
import type { Session } from "./session";
import { ServiceFault, signedFetch } from "./services";

export interface SweepPlace {
  id: string;
  name: string;
  at: number;
  of: number;
  parameters: Record<string, string>[];
}

export interface Mark {
  tags: Record<string, string>;
  note: string;
  sweep: SweepPlace | null;
}

export interface KeptFile {
  /** The workflow file, as YAML with empty secrets. */
  text: string;
  /** Places of the secrets. */
  masked: string[];
  mark: Mark;
}

/** The file of an own job; null if it is not kept any more. */
export async function readKeptFile(session: Session, jobId: number): Promise<KeptFile | null> {
  const kept = await readDefinition(session, jobId);
  return kept && { text: fileOf(kept.definition), masked: kept.masked, mark: kept.mark };
}

/** The definition of an own job in canonical form, with hidden secrets; null if it is not kept any more. */
export async function readDefinition(session: Session, jobId: number): Promise<{ definition: string; masked: string[]; mark: Mark } | null> {
  try {
    return await (await signedFetch(session, "GET", `/v1/jobs/${jobId}/file`)).json();
  } catch (error) {
    if (error instanceof ServiceFault && error.status === 404) return null;
    throw error;
  }
}

/** The marks of all own jobs, by the hashes of their definitions. */
export async function readMarks(session: Session): Promise<Map<string, Mark>> {
  const found = new Map<string, Mark>();
  try {
    for (let after: string | null = ""; after !== null; ) {
      const answer = await signedFetch(session, "GET", `/v1/marks${after ? `?after=${after}` : ""}`);
      const page = (await answer.json()) as { marks: (Mark & { definition_hash: string })[]; after: string | null };
      for (const { definition_hash: hash, ...mark } of page.marks) found.set(hash, mark);
      after = page.after;
    }
  } catch (error) {
    if (!(error instanceof ServiceFault && error.status === 404)) throw error;
  }
  return found;
}

/** Note tags and a note about a stored definition. */
export async function writeMark(session: Session, hash: string, mark: Mark): Promise<void> {
  await signedFetch(session, "PUT", "/v1/marks", JSON.stringify({ marks: [{ definition_hash: hash, ...mark }] }));
}

/** A definition in canonical form as a workflow file in the order of the language. Hidden secrets are empty. */
export function fileOf(definition: string): string {
  const text = stringify(ordered(JSON.parse(definition)), { lineWidth: 0, indentSeq: true });
  return emptySecrets(text).replaceAll(/^(\s*(?:- )?(?:value|url|endpointUrl): ).*\*\*\*.*$/gm, '$1""');
}

const PLACES: ReadonlyMap<string, number> = new Map(namesIn(schema).map((name, at) => [name, at]));

function namesIn(root: unknown): string[] {
  const whole = root as { properties?: object; $defs?: Record<string, { properties?: object }>; definitions?: Record<string, { properties?: object }> };
  const parts = [whole, ...Object.values(whole.$defs ?? whole.definitions ?? {})];
  return [...new Set(parts.flatMap((part) => Object.keys(part.properties ?? {})))];
}

function ordered(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(ordered);
  if (typeof part !== "object" || part === null) return part;
  const place = (name: string) => PLACES.get(name) ?? PLACES.size;
  return Object.fromEntries(Object.entries(part).sort(([a], [b]) => place(a) - place(b)).map(([name, value]) => [name, ordered(value)]));
}
