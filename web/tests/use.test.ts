/** The job page says of a receipt what Python says. */
import { describe, expect, test } from "vitest";
import vectors from "../../tests/web/vectors/use.json";
import { resourceUse, useIn } from "../src/pure/use";

const asReceipt = (receipt: unknown) => useIn(new TextEncoder().encode(JSON.stringify({ receipt })));

describe("what a job used", () => {
  test.each(vectors.uses)("$tres in $run_s s", ({ cpus, memory_mb, run_s, tres, words, hint }) => {
    const use = resourceUse(cpus, memory_mb, run_s, tres);
    expect([...use.rows.map((row) => row.words), use.files].filter(Boolean).join("; ")).toBe(words);
    expect(use.hint).toBe(hint);
    expect(asReceipt({ asked: { tasks: 1, cpus_per_task: cpus, mem_per_cpu_mb: memory_mb / cpus }, evidence: { run_s, tres } })).toEqual(use);
  });
  test.each([[null], ["text"], [{}], [{ asked: {}, evidence: {} }]])("of %j is not known", (receipt) => expect(asReceipt(receipt)).toBeNull());
  test("is at most all of it", () => {
    expect(resourceUse(1, 100, 10, "used/cpu=999,used/mem=500M").rows.map(({ share }) => share)).toEqual([1, 1]);
  });
});
