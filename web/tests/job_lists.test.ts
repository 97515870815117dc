import { describe, expect, test } from "vitest";
import { Finder } from "../src/job/log/find";
import { LONGEST_LINE, LogStore } from "../src/job/log/store";
import { rowsInView, scaled, TALLEST_PX } from "../src/job/window";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const all = (store: LogStore) => Array.from({ length: store.lines }, (_, at) => decoder.decode(store.line(at)));
const TEXT = "one\ntwo\r\nthree\rfour\n\n\nfünf\r\nsix";
const LINES = ["one", "two", "three", "four", "", "", "fünf", "six"];

describe("the index of lines", () => {
  const bytes = encoder.encode(TEXT);
  const cuts = Array.from({ length: bytes.length + 1 }, (_, at) => at);
  test.each(cuts)("is the same for bytes in two blocks, cut at %i", (at) => {
    const store = new LogStore();
    store.append(0, bytes.subarray(0, at));
    store.append(at, bytes.subarray(at));
    expect(all(store)).toEqual(LINES);
  });
  test.each(cuts.slice(1, -1))("is the same when the part before %i comes later", (at) => {
    const store = new LogStore();
    store.append(at, bytes.subarray(at));
    const before = store.lines;
    expect(store.whole).toBe(false);
    const grown = store.prepend(0, bytes.subarray(0, at));
    expect(all(store)).toEqual(LINES);
    expect(before + grown).toBe(LINES.length);
    expect(store.whole).toBe(true);
  });
  test("cuts a line without an end", () => {
    const store = new LogStore();
    store.append(0, new Uint8Array(LONGEST_LINE * 3).fill(65));
    expect(store.lines).toBe(3);
  });
  test("refuses a gap", () => {
    const store = new LogStore();
    store.append(0, encoder.encode("a"));
    expect(() => store.append(5, encoder.encode("b"))).toThrow(RangeError);
  });
});

describe("the search", () => {
  const found = (text: string, options = {}) => {
    const finder = new Finder({ text, regexp: false, caseSensitive: false, ...options });
    for (const byte of encoder.encode(TEXT)) finder.feed(Uint8Array.of(byte));
    finder.feed(new Uint8Array(0), true);
    return finder.hits;
  };
  test("finds the lines of the index", () => {
    expect(found("Ü")).toEqual([6]);
    expect(found("F", { caseSensitive: true })).toEqual([]);
    expect(found("^t.*e", { regexp: true })).toEqual([2]);
    expect(found("s")).toEqual([7]);
  });
  test("looks at text without escapes", () => {
    const finder = new Finder({ text: "red car", regexp: false, caseSensitive: true });
    finder.feed(encoder.encode("\x1b[31mred\x1b[0m car\n"), true);
    expect(finder.hits).toEqual([0]);
  });
  test("a faulty pattern is an error", () => expect(() => found("(", { regexp: true })).toThrow(SyntaxError));
});

describe("windows of rows", () => {
  test("hold few rows of many", () => {
    for (const top of [-500, 0, 100_000, 580_000, 1_000_000]) {
      const rows = rowsInView(10_000, 58, top, 1000);
      expect(rows.last - rows.first).toBeLessThanOrEqual(150);
      expect(rows.above + (rows.last - rows.first) * 58 + rows.below).toBe(580_000);
    }
  });
  test("of nothing are nothing", () => expect(rowsInView(0, 58, 0, 900)).toEqual({ first: 0, last: 0, above: 0, below: 0 }));
  test("reach the last line of a log that is higher than browsers allow", () => {
    const frame = scaled(5_000_000, 20, 600);
    expect(frame.height).toBe(TALLEST_PX);
    expect(frame.rowAt(TALLEST_PX - 600)).toBe(frame.lastTop);
    expect(frame.rowAt(frame.placeOf(1_234_567))).toBe(1_234_567);
  });
});
