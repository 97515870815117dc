/** Checks a workflow file: YAML syntax in the page, everything else by the project's own validator. */
import { parseDocument } from "yaml";
import schema from "../generated/schema.json";
import { canonicalOf, type Schema } from "../pure/canonical";
import type { Shape } from "../pure/market";
import { sessionHeaders } from "../wallet/local";
import { usesModules, withoutSecrets, withSecrets } from "./secrets";
import { sentenceFor } from "./yaml_problems";

export interface Fault {
  /** From 1. */
  line: number;
  /** From 1. */
  column: number;
  text: string;
}

export interface Checked {
  /** The file that was checked. */
  file: string;
  /** In canonical form; empty if the file has faults. */
  definition: string;
  shape: Shape | null;
  faults: Fault[];
  warnings: string[];
}

interface Answer {
  definition: string | null;
  resources: { gpus: number; mem_per_cpu_mb: number; cpus_per_task: number; ntasks: number } | null;
  faults: Fault[];
  warnings: string[];
  error?: string;
}

/** Faults of YAML syntax; nothing is sent. */
export function syntaxFaults(text: string): Fault[] {
  return parseDocument(text).errors.map((error) => ({
    line: error.linePos?.[0].line ?? 1,
    column: error.linePos?.[0].col ?? 1,
    text: sentenceFor(error),
  }));
}

/** The resources that the text names, before any check; null if it names none. */
export function shapeOf(text: string): Shape | null {
  try {
    const { resources } = (parseDocument(text).toJS() ?? {}) as { resources?: Partial<Shape> };
    const { tasks = 1, cpusPerTask = 1, memPerCpu, gpus = 0 } = resources ?? {};
    if (![tasks, cpusPerTask, memPerCpu, gpus].every((one) => Number.isInteger(one))) return null;
    return { tasks, cpusPerTask, memPerCpu: memPerCpu!, gpus };
  } catch {
    return null;
  }
}

/** Let the services check the file. Raises Error with a sentence if they do not answer. */
export async function check(file: string, hideSecrets: boolean, signal?: AbortSignal): Promise<Checked> {
  const hidden = hideSecrets ? withoutSecrets(file) : { text: file, values: new Map<string, string>() };
  let answer: Response;
  try {
    answer = await fetch("v1/check", {
      method: "POST",
      headers: sessionHeaders(),
      body: JSON.stringify({ file: hidden.text }),
      signal,
    });
  } catch {
    throw new Error("The grid's services do not answer. Your text is kept.");
  }
  const said = (await answer.json().catch(() => ({}))) as Partial<Answer>;
  if (!answer.ok) throw new Error(`The file was not checked: ${said.error ?? `status ${answer.status}`}`);
  const { definition, resources: has, faults = [], warnings = [] } = said;
  if (definition && !usesModules(file) && canonicalOf(hidden.text, schema as Schema) !== definition) {
    throw new Error("The grid's services read the file differently from this page. Nothing is signed; tell the operator.");
  }
  const shape = has ? { tasks: has.ntasks, cpusPerTask: has.cpus_per_task, memPerCpu: has.mem_per_cpu_mb, gpus: has.gpus } : null;
  return { file, definition: withSecrets(definition ?? "", hidden.values), shape, faults, warnings };
}
