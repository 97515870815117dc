import { describe, expect, it } from "vitest";
import raw from "../../tests/web/vectors/newjob.json?raw";
import schema from "../src/generated/schema.json";
import { canonicalOf, type Schema, secretFields, withoutSecrets } from "../src/pure/canonical";
import { compare, parseAffinity, parseUse } from "../src/pure/labels";
import { CREDIT } from "../src/pure/money";
import { needsOf } from "../src/pure/needs";
import { depositAt, placeOf, quote, type Quotable } from "../src/pure/quote";

const vectors = JSON.parse(raw);
const SCHEMA = schema as unknown as Schema;

describe("canonical form", () => {
  for (const { file, canonical } of vectors.canonical) {
    it(file.split("\n")[0], () => expect(canonicalOf(file, SCHEMA)).toBe(canonical));
  }
});

describe("needs", () => {
  for (const { file, canonical, needs } of vectors.canonical) {
    it(file.split("\n")[0], () => expect(needsOf(canonical).map(({ key, op, value }) => [key, op, value])).toEqual(needs));
  }
});

describe("secrets", () => {
  const file = "a: 1\nsecretAccessKey: &s hush # why\nprivateKey: |\n  one\n  two\nb: [{password: 'x y', z: *s}]\n";
  it("are replaced by stand-ins, on the same lines", () => {
    const made = withoutSecrets(file, SCHEMA);
    expect(made).not.toMatch(/hush|one|two|x y/);
    expect(made.split("\n").length).toBe(file.split("\n").length);
    expect(made).toContain("# why");
  });
  it("are those that the language marks", () => {
    expect([...secretFields(SCHEMA).keys()].sort()).toEqual(["password", "preSharedKey", "privateKey", "secret", "secretAccessKey"]);
  });
});

describe("labels", () => {
  it("compare as the scheduler does", () => {
    for (const [a, b, holding] of vectors.labels.compared) {
      const found = vectors.labels.operators.filter((op: string) => compare(a, op, b));
      expect([a, b, found]).toEqual([a, b, holding]);
    }
  });
  it("are read as dps does", () => {
    for (const [text, made] of vectors.labels.uses) {
      const found = parseUse(text);
      expect([text, found && [found.key, found.value]]).toEqual([text, made]);
    }
    for (const [text, made] of vectors.labels.affinities) {
      const found = parseAffinity(text);
      expect([text, found && [found.key, found.op, found.value]]).toEqual([text, made]);
    }
  });
});

describe("quote", () => {
  it("has the rates, minutes and reasons of Python", () => {
    for (const one of vectors.quotes) {
      const [tasks, cpusPerTask, memPerCpu, gpus] = one.shape;
      const [gpu, cpu, memory] = one.prices.map(BigInt);
      const cluster: Quotable = {
        address: `0x${"11".repeat(20)}`, name: "gauss", approved: true, banned: false, nodes: one.cpus.length, prices: { gpu, cpu, memory },
        labels: one.labels.map(([key, value]: string[]) => ({ key, value })), cpusPerNode: one.cpus, memoryPerNode: one.memory, gpusPerNode: one.gpus,
      };
      const conditions = one.affinities.map(([key, op, value]: string[]) => ({ key, op, value }));
      const [row] = quote({ tasks, cpusPerTask, memPerCpu, gpus }, conditions, 100n * CREDIT, [cluster]);
      expect(String(row!.rateWei)).toBe(one.rate);
      expect(String(row!.minutes)).toBe(one.minutes);
      if (one.misfit) expect(row!.obstacle).toBe(one.misfit);
      else if (one.mismatch) expect(row!.obstacle).toBe(one.mismatch);
      else if (one.minutes === "0") expect(row!.obstacle).toContain("one minute costs");
      else expect(row!.obstacle).toBe("");
    }
  });
});

describe("deposit slider", () => {
  it("ends at the least and the balance, exactly", () => {
    const [least, most] = [100n * CREDIT, 1234n * CREDIT + 1n];
    expect(depositAt(0, least, most)).toBe(least);
    expect(depositAt(1000, least, most)).toBe(most);
    expect(depositAt(placeOf(500n * CREDIT, least, most), least, most) - 500n * CREDIT).toBeLessThan(CREDIT);
  });
});
