/** Stand-ins for the values of secret fields, so that a hosted check never sees a secret. */
import { isMap, isPair, isScalar, parseDocument, visit, type Scalar } from "yaml";
import schema from "../generated/schema.json";

/** Names of fields that the schema marks as secret. */
export const SECRET_FIELDS: ReadonlySet<string> = new Set(secretNames(schema));

function secretNames(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(secretNames);
  if (typeof node !== "object" || node === null) return [];
  const properties = Object.entries((node as { properties?: Record<string, { "x-secret"?: boolean }> }).properties ?? {});
  const own = properties.filter(([, field]) => field["x-secret"]).map(([name]) => name);
  return [...own, ...Object.values(node).flatMap(secretNames)];
}

export interface Hidden {
  text: string;
  /** Each stand-in with the value it stands for. */
  values: Map<string, string>;
}

function secretsIn(text: string): Scalar[] {
  const found: Scalar[] = [];
  visit(parseDocument(text), {
    Pair(_, pair) {
      if (isPair(pair) && isScalar(pair.key) && SECRET_FIELDS.has(String(pair.key.value)) && isScalar(pair.value)) {
        if (pair.value.value !== null && pair.value.range) found.push(pair.value);
      }
    },
  });
  return found.sort((a, b) => b.range![0] - a.range![0]);
}

/** A stand-in has the form of a WireGuard key, which every secret field accepts. */
function standIn(): string {
  return btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))));
}

/** The text with a stand-in for each secret. Line numbers stay if no secret spans lines. */
export function withoutSecrets(text: string): Hidden {
  const values = new Map<string, string>();
  let hidden = text;
  for (const scalar of secretsIn(text)) {
    const [start, end] = scalar.range!;
    const stand = standIn();
    values.set(stand, String(scalar.value));
    hidden = `${hidden.slice(0, start)}"${stand}"${hidden.slice(end)}`;
  }
  return { text: hidden, values };
}

/** Put the secrets back into a definition in canonical form. */
export function withSecrets(definition: string, values: Map<string, string>): string {
  let whole = definition;
  for (const [stand, value] of values) whole = whole.replaceAll(JSON.stringify(stand), JSON.stringify(value));
  return whole;
}

/** The text with empty secret fields, as it may be kept on the device. */
export function emptySecrets(text: string): string {
  let emptied = text;
  for (const { range } of secretsIn(text)) emptied = `${emptied.slice(0, range![0])}""${emptied.slice(range![1])}`;
  return emptied;
}

/** Whether the text uses modules, which only a process of the customer's resolves. */
export function usesModules(text: string): boolean {
  const document = parseDocument(text);
  let found = false;
  visit(document, {
    Pair(_, pair, path) {
      if (isScalar(pair.key) && pair.key.value === "use" && path.some(isMap)) found = true;
    },
  });
  return found;
}
