/** Fields of a file that stand in a form: values with a comment such as `# form: Number of tasks`. Pure. */
import { isScalar, parseDocument, type Scalar, visit } from "yaml";
import { marked } from "./clean";

export interface FormField {
  label: string;
  value: string;
  isNumber: boolean;
}

export const MOST_FIELDS = 8;
const LONGEST_LABEL = 40;
const MARK = /^\s*form:\s*(\S.*)$/;
const NUMBER = /^\d{1,15}(\.\d{1,9})?$/;
// Words that YAML 1.1 or 1.2 reads as something else than text are quoted.
const PLAIN = /^[A-Za-z_/][\w./-]*( [\w./-]+)*$/;
const WORD = /^(y|n|yes|no|on|off|true|false|null)$/i;

/** The fields of a file, in its order; none if the file is not YAML. */
export function formOf(text: string): FormField[] {
  return scalarsOf(text).map((node) => ({
    label: marked(MARK.exec(node.comment!)![1]!).slice(0, LONGEST_LABEL),
    value: String(node.value ?? ""),
    isNumber: typeof node.value === "number",
  }));
}

/** The file with another value in a field. Unchanged if the field is a number and the value is none. */
export function filled(text: string, field: number, value: string): string {
  const node = scalarsOf(text)[field];
  if (!node?.range || (typeof node.value === "number" && !NUMBER.test(value))) return text;
  const written = typeof node.value === "number" ? value : quoted(value);
  return text.slice(0, node.range[0]) + written + text.slice(node.range[1]);
}

function scalarsOf(text: string): Scalar[] {
  const doc = parseDocument(text, { keepSourceTokens: true });
  const found: Scalar[] = [];
  if (doc.errors.length) return found;
  visit(doc, {
    Pair(_, { value }) {
      if (isScalar(value) && MARK.test(value.comment ?? "") && !value.type?.startsWith("BLOCK")) found.push(value);
    },
  });
  return found.slice(0, MOST_FIELDS);
}

/** A text as a YAML scalar of one line. No text can end it. */
function quoted(text: string): string {
  if (PLAIN.test(text) && !WORD.test(text)) return text;
  const escaped = (c: string) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, escaped);
}
