import { describe, expect, it } from "vitest";
import { syntaxFaults } from "../src/newjob/check";

const faultIn = (text: string) => syntaxFaults(text).map((one) => `${one.line}: ${one.text}`)[0];

describe("faults of YAML", () => {
  it("are sentences for the author of the file, as dps says them", () => {
    expect(faultIn("a: b: c\n")).toBe("1: a value that contains ': ' must be in quotes");
    expect(faultIn("a:\n\tb: 1\n")).toBe("2: a tab cannot indent; indent with spaces, not tabs");
    expect(faultIn("a:\n  b: 1\n c: 2\n")).toBe("3: the indentation of this line fits no line above it");
    expect(faultIn("a: [1, 2\nb: 3\n")).toBe("2: a list that [ opens is not closed, or lacks a comma");
    expect(faultIn("a: {x: 1\nb: 3\n")).toBe("2: a mapping that { opens is not closed, or lacks a comma");
    expect(faultIn('a: "x\nb: 1\n')).toBe("3: the file ends before a quote is closed");
    expect(faultIn("a: 1\na: 2\n")).toBe("2: this field is there twice");
    expect(faultIn("a: 1\nfoo\nb: 2\n")).toBe("2: a field needs a colon after its name, as in `name: value`");
    expect(faultIn("a: @x\n")).toBe("1: a value that begins with this character must be in quotes");
    expect(faultIn("a: 1\n---\nb: 2\n")).toBe("2: a second document begins here (---); a workflow file has one");
    expect(faultIn("a: 1\n")).toBeUndefined();
  });
});
