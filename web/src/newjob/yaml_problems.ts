/** What the YAML parser says as sentences for the author of the file, in the words of deepgrid/workflow/yaml_problems.py. */
import type { YAMLError } from "yaml";

const SENTENCES: Record<string, string> = {
  TAB_AS_INDENT: "a tab cannot indent; indent with spaces, not tabs",
  BAD_INDENT: "the indentation of this line fits no line above it",
  BLOCK_AS_IMPLICIT_KEY: "a value that contains ': ' must be in quotes",
  MULTILINE_IMPLICIT_KEY: "a field needs a colon after its name, as in `name: value`",
  DUPLICATE_KEY: "this field is there twice",
  MULTIPLE_DOCS: "a second document begins here (---); a workflow file has one",
};
const BY_MESSAGE: [RegExp, string][] = [
  [/Missing closing .*quote/, "the file ends before a quote is closed"],
  [/end with a \]|Missing ,.*\]|flow sequence/i, "a list that [ opens is not closed, or lacks a comma"],
  [/end with a \}|Missing ,.*\}|flow map/i, "a mapping that { opens is not closed, or lacks a comma"],
  [/Implicit map keys need to be followed by map values|must be followed by a :|need to be on a single line/, SENTENCES.MULTILINE_IMPLICIT_KEY!],
  [/Unresolved alias/, "* repeats a value that no & above marks; text with * needs quotes"],
  [/cannot start with reserved character|Plain value cannot start with/, "a value that begins with this character must be in quotes"],
];

export function sentenceFor({ code, message }: Pick<YAMLError, "code" | "message">): string {
  const said = message.split(" at line")[0]!;
  return BY_MESSAGE.find(([pattern]) => pattern.test(said))?.[1] ?? SENTENCES[code] ?? said;
}
