/** The input of a workflow file that the grid keeps: written into the file, so that the file stays what is submitted. */
import { isMap, parseDocument } from "yaml";

/** The file with these sent files as its input, and with an output that the grid keeps if it names none. */
export function withInput(text: string, number: string): string | null {
  const document = parseDocument(text);
  if (document.errors.length || !isMap(document.contents) || otherInput(text)) return null;
  document.set("input", document.createNode({ grid: { files: number } }));
  if (!document.get("output")) document.set("output", document.createNode({ grid: {} }));
  return document.toString({ lineWidth: 0 });
}

/** The file without sent files. */
export function withoutInput(text: string): string {
  const document = parseDocument(text);
  if (document.errors.length || !sentInput(text)) return text;
  document.delete("input");
  return document.toString({ lineWidth: 0 });
}

/** The number of the sent files that a file names as its input; empty if it names none. */
export function sentInput(text: string): string {
  const document = parseDocument(text);
  const found = document.errors.length ? "" : document.getIn(["input", "grid", "files"]);
  return typeof found === "string" ? found : "";
}

/** Whether a file has an input of another kind, which sent files would replace. */
export function otherInput(text: string): boolean {
  const document = parseDocument(text);
  if (document.errors.length) return false;
  const input = document.get("input");
  if (!isMap(input) || !input.items.length) return false;
  return !(input.items.length === 1 && isMap(input.get("grid")));
}
