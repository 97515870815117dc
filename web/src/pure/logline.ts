/**
 * A job's output as text that is safe to show. Of escape sequences only colours stay, as names of classes: none has a
 * background, and each can be read on the page's own.
 */
import { marked } from "./clean";

// As in deepgrid/client/display/text.py, where colours are written anew for terminals.
const ESCAPE = /(\x1b\[[0-9;:]*m)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b-\x1f\x7f-\x9f]|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
const COLOUR = /\x1b\[([0-9;:]*)m/;
const STEERING = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;

/** Text of one look. `look` holds names of classes such as `fg1 bold`. */
export interface Span {
  text: string;
  look: string;
}

/** One line without any sequence: what is searched, and saved as text. */
export function plainLine(line: string): string {
  return STEERING.test(line) ? line.replace(ESCAPE, "") : line;
}

/** The line in pieces of one look each. Other marks that cannot be seen are shown as marks. */
export function spansOf(line: string): Span[] {
  const kept = STEERING.test(line) ? line.replace(ESCAPE, (_, colour: string | undefined) => colour ?? "") : line;
  const parts = kept.split(COLOUR);
  const spans: Span[] = [];
  let colour = "";
  let bold = false;
  parts.forEach((part, at) => {
    if (at % 2 === 1) [colour, bold] = styled(part, colour, bold);
    else if (part) spans.push({ text: shown(part), look: [colour, bold ? "bold" : ""].filter(Boolean).join(" ") });
  });
  return spans;
}

function shown(text: string): string {
  return text.split("\t").map(marked).join("\t");
}

function styled(codes: string, colour: string, bold: boolean): [string, boolean] {
  const numbers = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at]!;
    if (code === 0) [colour, bold] = ["", false];
    else if (code === 1) bold = true;
    else if (code === 22) bold = false;
    else if (code === 39) colour = "";
    else if (code >= 30 && code <= 37) colour = `fg${code - 30}`;
    else if (code >= 90 && code <= 97) colour = `fg${code - 90}`;
    else if (code === 38 || code === 48) {
      const index = numbers[at + 2] ?? 16;
      if (code === 38 && numbers[at + 1] === 5 && index < 16) colour = `fg${index % 8}`;
      at += numbers[at + 1] === 5 ? 2 : 4;
    }
  }
  return [colour, bold];
}
