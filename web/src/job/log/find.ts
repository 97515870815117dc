/** Looks for text in a log. Pure; the worker calls it per block. */
import { plainLine } from "../../pure/logline";

export interface Wanted {
  text: string;
  regexp: boolean;
  caseSensitive: boolean;
}

/** The most lines that are listed; beyond, only their number is known. */
export const MOST_HITS = 100_000;

export type Test = (line: string) => boolean;

/** A test of one line. Throws SyntaxError for a faulty regular expression. */
export function testOf(wanted: Wanted): Test {
  if (wanted.regexp) {
    const pattern = new RegExp(wanted.text, wanted.caseSensitive ? "u" : "iu");
    return (line) => pattern.test(line);
  }
  if (wanted.caseSensitive) return (line) => line.includes(wanted.text);
  const text = wanted.text.toLowerCase();
  return (line) => line.toLowerCase().includes(text);
}

/** Collects hits over blocks that arrive in order. A line may span blocks. */
export class Finder {
  readonly hits: number[] = [];
  count = 0;
  private line = 0;
  private rest = "";
  private decoder = new TextDecoder("utf-8");
  private readonly test: Test;

  constructor(wanted: Wanted) {
    this.test = testOf(wanted);
  }

  feed(bytes: Uint8Array, final = false): void {
    const text = this.rest + this.decoder.decode(bytes, { stream: !final });
    const held = !final && text.endsWith("\r") ? text.length - 1 : text.length;
    const lines = text.slice(0, held).split(/\r\n|\n|\r/);
    this.rest = (lines.pop() ?? "") + text.slice(held);
    for (const line of lines) this.look(line);
    if (final && this.rest) this.look(this.rest);
  }

  private look(line: string): void {
    if (this.test(plainLine(line))) {
      this.count += 1;
      if (this.hits.length < MOST_HITS) this.hits.push(this.line);
    }
    this.line += 1 + Math.floor(Math.max(0, line.length - 1) / LONGEST);
  }
}

const LONGEST = 64 * 1024;
