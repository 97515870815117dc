import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import examples from "../src/generated/examples.json";
import { choicesOf } from "../src/pure/conditions";
import { filled, formOf } from "../src/pure/form";

const FILE = "# a file\na: 4 # form: Tasks\nb: {c: x} # no form\nd: some text # form: Who\nsteps:\n  - e: 'it''s' # form: Where\n    f: |\n      kept # form: no\n";
const HOSTILE = [
  "", " ", "yes", "no", "null", "~", "1", "0x1", "1e3", "-", "- a", "a: b", "a # b", "#", "&a", "*a", "!!str x", "|", ">", "%", "@", "`",
  "'", '"', "\\", "a\nb: 1", "\r\n", "\t", "\u0000", "\u0085", "\u2028", "\ufeff", "\u202e", "]}", "? x", "{}", "x\nsteps: []", "a".repeat(5000), "é😀",
];

describe("the form of a file", () => {
  it("has the marked fields", () => {
    expect(formOf(FILE)).toEqual([
      { label: "Tasks", value: "4", isNumber: true },
      { label: "Who", value: "some text", isNumber: false },
      { label: "Where", value: "it's", isNumber: false },
    ]);
  });
  it("has no field if the file is not YAML, and at most eight", () => {
    expect(formOf("a: [ # form: x")).toEqual([]);
    expect(formOf(Array.from({ length: 20 }, (_, at) => `a${at}: 1 # form: x`).join("\n"))).toHaveLength(8);
  });
  it("changes a number only to a number", () => {
    expect(parse(filled(FILE, 0, "16")).a).toBe(16);
    for (const value of ["", "x", "1 # form: x\nb: 2", "-1", "1e9", "0x10"]) expect(filled(FILE, 0, value)).toBe(FILE);
  });
  it.each(HOSTILE)("holds %j as text, and changes nothing else", (value) => {
    const made = filled(FILE, 1, value);
    expect(parse(made)).toEqual({ ...parse(FILE), d: value });
    expect(parse(made, { version: "1.1" }).d).toBe(value);
    expect(made.split("\n").length).toBe(FILE.split("\n").length);
    expect(filled(made, 1, "some text")).toBe(FILE);
  });
  it("is there in some examples", () => {
    const marked = Object.entries(examples).filter(([, text]) => formOf(text).length > 0);
    expect(marked.map(([name]) => name).sort()).toEqual(["environment", "input-http", "s3", "two-nodes"]);
  });
});

describe("choices of labels", () => {
  it("are counted once per cluster, the most frequent first", () => {
    const label = (key: string, value: string) => ({ key, value });
    const clusters = [{ labels: [label("os", "linux"), label("os", "linux"), label("a", "b c")] }, { labels: [label("os", "linux"), label("gpu", "a100")] }];
    expect(choicesOf(clusters, "=")).toEqual([["os=linux", 2], ["gpu=a100", 1]]);
  });
});
