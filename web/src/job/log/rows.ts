/** The rows of a log view: lines of all sections, a heading per claim, and what a section lacks. */
import { lackWords, type Section } from "./feed.svelte";

export interface Row {
  kind: "line" | "claim" | "lack";
  text: string;
  /** Number of the line from 1; 0 if the lines before it are not here. */
  number: number;
  /** When the line was written, in milliseconds; 0 if that is unknown. */
  arrived: number;
}

const LONGEST_SHOWN = 8192;
const decoder = new TextDecoder("utf-8");

interface Part {
  section: Section;
  first: number;
  rows: number;
  heading: number;
}

export class Rows {
  readonly count: number;
  private readonly parts: Part[] = [];

  constructor(sections: Section[]) {
    let count = 0;
    for (const section of sections) {
      const heading = sections.length > 1 ? 1 : 0;
      const rows = heading + section.store.lines + (lackWords(section) ? 1 : 0);
      this.parts.push({ section, first: count, rows, heading });
      count += rows;
    }
    this.count = count;
  }

  /** The row of a line of the section with this index. */
  rowOf(section: number, line: number): number {
    const part = this.parts[section]!;
    return part.first + part.heading + line;
  }

  row(index: number): Row {
    const at = this.parts.findLastIndex((part) => part.first <= index);
    const { section, first, heading } = this.parts[at]!;
    const line = index - first - heading;
    if (line < 0) return { kind: "claim", text: `Claim ${at + 1}${at > 0 ? ": the job started again" : ""}`, number: 0, arrived: 0 };
    if (line >= section.store.lines) return { kind: "lack", text: lackWords(section), number: 0, arrived: 0 };
    const bytes = section.store.line(line);
    const shown = decoder.decode(bytes.subarray(0, LONGEST_SHOWN));
    const more = bytes.length - LONGEST_SHOWN;
    const text = more > 0 ? `${shown} … ${more.toLocaleString("en")} bytes more` : shown;
    return { kind: "line", text, number: section.store.whole ? line + 1 : 0, arrived: arrivalOf(section, line) };
  }
}

function arrivalOf(section: Section, line: number): number {
  let [low, high] = [0, section.arrivals.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (section.arrivals[middle]![0] > line) high = middle;
    else low = middle + 1;
  }
  return section.arrivals[low]?.[1] ?? 0;
}
