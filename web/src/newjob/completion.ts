/** Completion and hover texts of workflow files, from the schema of the language. */
import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import type { Text } from "@codemirror/state";
import schema from "../generated/schema.json";

interface Node {
  $ref?: string;
  anyOf?: Node[];
  allOf?: Node[];
  items?: Node;
  properties?: Record<string, Node>;
  enum?: unknown[];
  description?: string;
  type?: string | string[];
}

const DEFINITIONS = (schema as { $defs: Record<string, Node> }).$defs;

/** All alternatives of a node, without references. */
function alternatives(node: Node | undefined, depth = 0): Node[] {
  if (!node || depth > 8) return [];
  if (node.$ref) return alternatives(DEFINITIONS[node.$ref.split("/").pop()!], depth + 1);
  const nested = [...(node.anyOf ?? []), ...(node.allOf ?? [])];
  return [node, ...nested.flatMap((one) => alternatives(one, depth + 1))];
}

function below(nodes: Node[], key: string): Node[] {
  return nodes
    .flatMap((node) => [node, ...alternatives(node.items)])
    .flatMap((node) => alternatives(node.properties?.[key]));
}

const KEY = /^(\s*(?:- +)*)([\w-]+):/;

/** The keys above a line, outermost first, by indentation. */
export function pathAt(doc: Text, number: number, indent: number): string[] {
  const path: string[] = [];
  let limit = indent;
  for (let at = number - 1; at >= 1 && limit > 0; at -= 1) {
    const found = KEY.exec(doc.line(at).text);
    if (!found) continue;
    const depth = found[1]!.length;
    const dashes = found[1]!.indexOf("-");
    if (depth < limit) {
      path.unshift(found[2]!);
      limit = dashes >= 0 ? dashes : depth;
    }
  }
  return path;
}

function nodesAt(path: string[]): Node[] {
  return path.reduce((nodes, key) => below(nodes, key), alternatives(schema as Node));
}

function propertiesOf(nodes: Node[]): [string, Node][] {
  const all = nodes.flatMap((node) => [node, ...alternatives(node.items)]);
  return [...new Map(all.flatMap((node) => Object.entries(node.properties ?? {})))];
}

/** Fields that fit at the cursor, or the values of an enumeration. */
export function complete(context: CompletionContext): CompletionResult | null {
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, context.pos - line.from);
  const value = /^(\s*(?:- +)*)([\w-]+):\s+(\w*)$/.exec(before);
  if (value) {
    const nodes = below(nodesAt(pathAt(context.state.doc, line.number, value[1]!.length)), value[2]!);
    const options = nodes.flatMap((node) => node.enum ?? []).map((one): Completion => ({ label: String(one), type: "enum" }));
    return options.length ? { from: context.pos - value[3]!.length, options } : null;
  }
  const key = /^(\s*(?:- +)*)([\w-]*)$/.exec(before);
  if (!key || (!key[2] && !context.explicit)) return null;
  const fields = propertiesOf(nodesAt(pathAt(context.state.doc, line.number, key[1]!.length)));
  const options = fields.map(([label, node]): Completion => ({ label, type: "property", info: node.description, apply: `${label}: ` }));
  return options.length ? { from: context.pos - key[2]!.length, options } : null;
}

/** What the field on a line means; empty if it is not in the schema. */
export function meaning(doc: Text, number: number): string {
  const found = KEY.exec(doc.line(number).text);
  if (!found) return "";
  const nodes = below(nodesAt(pathAt(doc, number, found[1]!.length)), found[2]!);
  return nodes.find((node) => node.description)?.description ?? "";
}
