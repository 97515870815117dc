/**
 * The canonical form of a workflow file, as deepgrid/workflow/canonical.py makes it: JSON with sorted keys, without
 * defaults. The page makes it by itself and signs nothing if the service's form differs. Faults are the service's part.
 */
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, type Pair, parseDocument, visit, type YAMLMap } from "yaml";

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  allOf?: Schema[];
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  maximum?: number;
  pattern?: string;
  description?: string;
  "x-secret"?: boolean;
  "x-unit"?: string;
}

export type Value = null | boolean | number | string | Value[] | { [name: string]: Value };

const MOST_COST = 1 << 19;
const MOST_MODE = 0o777;
const HOLDER = "x-";
const APART = ["dns", "customNetworkInterfaces"];

export class Unreadable extends Error {
  constructor(message: string, readonly offset: number) {
    super(message);
  }
}

/** The schema of a part without references and `null`. */
export function resolved(part: Schema, root: Schema): Schema {
  if (part.$ref) return resolved(root.$defs?.[part.$ref.split("/").pop()!] ?? {}, root);
  if (part.allOf?.length === 1) return { ...part, ...resolved(part.allOf[0]!, root), description: part.description };
  const inner = part.anyOf?.find((one) => one.type !== "null");
  if (inner) {
    const found = resolved(inner, root);
    return { ...found, description: part.description ?? found.description, "x-secret": part["x-secret"] };
  }
  return part;
}

/** A parsed file. All scalars are texts; the schema says what each is. */
export function read(text: string): { document: Document.Parsed; lines: LineCounter } {
  const lines = new LineCounter();
  const document = parseDocument(text, { schema: "failsafe", merge: false, lineCounter: lines, prettyErrors: false });
  return { document, lines };
}

/** The canonical form of a file that has no faults. Throws Unreadable. */
export function canonicalOf(text: string, schema: Schema): string {
  const { document } = read(text);
  const fault = document.errors[0];
  if (fault) throw new Unreadable(fault.message, fault.pos[0]);
  if (!isMap(document.contents)) throw new Unreadable("must be a mapping of fields", 0);
  return JSON.stringify(sorted(new Fitting(document, schema).model(document.contents, schema, true)));
}

class Fitting {
  #cost = 0;
  constructor(private document: Document.Parsed, private root: Schema) {}

  model(node: YAMLMap, schema: Schema, isRoot = false): Value {
    const fields: Record<string, Value> = {};
    for (const [name, value] of this.#fields(node)) {
      if (isRoot && name.startsWith(HOLDER)) continue;
      const part = schema.properties?.[name];
      const made = this.#value(value, part ?? {});
      if (!part || !isDefault(made, part, schema.required?.includes(name) ?? false)) fields[name] = made;
    }
    const isRun = schema.properties?.command && schema.properties.network;
    if (isRun && [undefined, "host"].includes(fields.network as string)) for (const name of APART) delete fields[name];
    return fields;
  }

  /** The fields of a mapping and of those that it merges. Its own come first. */
  #fields(node: YAMLMap, depth = 0): Map<string, Node | null> {
    if (depth > 64) throw new Unreadable("merges too many levels", node.range?.[0] ?? 0);
    const fields = new Map<string, Node | null>();
    const merged: (Node | null)[] = [];
    for (const { key, value } of node.items as Pair<Node, Node | null>[]) {
      const name = isScalar(key) ? String(key.value) : "";
      if (name === "<<" && isScalar(key) && key.type === "PLAIN") merged.push(...this.#merged(value));
      else fields.set(name, value);
    }
    for (const other of merged) {
      if (!isMap(other)) throw new Unreadable("<< merges mappings", node.range?.[0] ?? 0);
      for (const [name, value] of this.#fields(other as YAMLMap, depth + 1)) if (!fields.has(name)) fields.set(name, value);
    }
    return fields;
  }

  #merged(value: Node | null): (Node | null)[] {
    const found = this.#target(value);
    return isSeq(found) ? found.items.map((one) => this.#target(one as Node)) : [found];
  }

  #target(node: Node | null): Node | null {
    return isAlias(node) ? (node.resolve(this.document) ?? null) : node;
  }

  #value(given: Node | null, declared: Schema): Value {
    const [node, schema] = [this.#target(given), resolved(declared, this.root)];
    this.#cost += 1 + (isScalar(node) ? String(node.value).length : 0);
    if (this.#cost > MOST_COST) throw new Unreadable("too large once its aliases are expanded", 0);
    if (isMap(node)) return this.model(node as YAMLMap, schema);
    if (isSeq(node)) return node.items.map((one) => this.#value(one as Node, schema.items ?? {}));
    return isScalar(node) ? scalar(String(node.value ?? ""), node.type === "PLAIN", schema) : null;
  }
}

/** A value as the schema wants it. Texts need no quotes; modes of files are octal, memory may have a unit. */
function scalar(text: string, plain: boolean, schema: Schema): Value {
  if (schema["x-unit"] === "MB") {
    const amount = megabytesIn(text);
    if (amount) return amount;
  }
  if (!plain) return text;
  if (/^(~|null|Null|NULL)?$/.test(text)) return null;
  if (schema.maximum === MOST_MODE) {
    const mode = /^0o?([0-7]{1,4})$/.exec(text);
    if (mode) return parseInt(mode[1]!, 8);
  }
  if (isText(schema)) return text;
  if (/^(true|false)$/i.test(text)) return text.toLowerCase() === "true";
  return /^[-+]?(0|[1-9][0-9]{0,14})$/.test(text) ? Number(text) + 0 : text;
}

/** The MB of an amount of memory with a unit, as Slurm counts them: `4G` is 4096. Null for any other text. */
function megabytesIn(text: string): number | null {
  const found = /^([0-9]{1,12}(?:\.[0-9]{1,6})?) ?([MGT])(?:i?B)?$/i.exec(text);
  if (!found) return null;
  const amount = Number(found[1]) * 1024 ** "MGT".indexOf(found[2]!.toUpperCase());
  return Number.isInteger(amount) ? amount : null;
}

function isText(schema: Schema): boolean {
  if (schema.enum) return schema.enum.some((one) => typeof one === "string");
  return schema.type === "string" || (Array.isArray(schema.type) && schema.type.includes("string")) || typeof schema.const === "string";
}

function isDefault(value: Value, part: Schema, required: boolean): boolean {
  if (required || !("default" in part)) return false;
  const own = part.default;
  if (value === null) return true;
  return Array.isArray(own) ? Array.isArray(value) && own.length === 0 && value.length === 0 : value === own;
}

function sorted(value: Value): Value {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name]!)]));
}

const TEXT_STAND_IN = "hidden";
const TUNNEL_STAND_IN = `${"A".repeat(43)}=`;

/** Names of the fields whose values are secrets, with a value that may stand for each. */
export function secretFields(schema: Schema): Map<string, string> {
  const found = new Map<string, string>();
  for (const model of [schema, ...Object.values(schema.$defs ?? {})]) {
    for (const [name, part] of Object.entries(model.properties ?? {})) {
      if (!part["x-secret"]) continue;
      found.set(name, resolved(part, schema).pattern?.includes("{43}") ? TUNNEL_STAND_IN : TEXT_STAND_IN);
    }
  }
  return found;
}

/** The file with stand-ins for secrets (or `instead`). Lines stay where they are. Throws Unreadable. */
export function withoutSecrets(text: string, schema: Schema, instead?: string): string {
  const { document } = read(text);
  const fault = document.errors[0];
  if (fault) throw new Unreadable(fault.message, fault.pos[0]);
  const secrets = secretFields(schema);
  const places = new Map<number, [number, string]>();
  const cover = (given: unknown, by: string): void => {
    const node = isAlias(given) ? given.resolve(document) : given;
    if (isScalar(node) && node.range && node.value !== "") places.set(node.range[0], [node.range[1], by]);
    else if (isMap(node) || isSeq(node)) visit(node, { Scalar: (_, inner) => cover(inner, by) });
  };
  visit(document, {
    Pair: (_, { key, value }) => {
      const by = isScalar(key) ? secrets.get(String(key.value)) : undefined;
      if (by !== undefined) cover(value, instead ?? by);
    },
  });
  let made = text;
  for (const [start, [end, by]] of [...places].sort(([a], [b]) => b - a)) {
    const lost = text.slice(start, end).split("\n").length - 1;
    made = `${made.slice(0, start)}${JSON.stringify(by)}${"\n".repeat(lost)}${made.slice(end)}`;
  }
  return made;
}
