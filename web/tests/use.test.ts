/** The job page says of a receipt what Python says. */
import { describe, expect, test } from "vitest";
import vectors from "../../tests/web/vectors/use.json";
import { cpusOf, overTime, type ResourceUse, resourceUse, useIn } from "../src/pure/use";

const asReceipt = (receipt: unknown) => useIn(new TextEncoder().encode(JSON.stringify({ receipt })));

const said = (use: ResourceUse) => [...use.rows.map((row) => row.words), use.files].filter(Boolean).join("; ");

describe("what a job used", () => {
  test.each(vectors.uses)("$tres in $run_s s", ({ cpus, memory_mb, gpus, run_s, tres, words, hint }) => {
    const use = resourceUse({ cpus, memoryMb: memory_mb, gpus }, run_s, tres);
    expect(said(use)).toBe(words);
    expect(use.hint).toBe(hint);
    expect(asReceipt({ asked: { tasks: 1, cpus_per_task: cpus, mem_per_cpu_mb: memory_mb / cpus, gpus }, evidence: { run_s, tres } })).toEqual(use);
  });
  test.each([[null], ["text"], [{}], [{ asked: {}, evidence: {} }]])("of %j is not known", (receipt) => expect(asReceipt(receipt)).toBeNull());
  test("is at most all of it", () => {
    expect(resourceUse({ cpus: 1, memoryMb: 100, gpus: 0 }, 10, "used/cpu=999,used/mem=500M").rows.map(({ share }) => share)).toEqual([1, 1]);
  });
});

describe("what a job uses over time", () => {
  const asked = { cpus: 2, memoryMb: 800, gpus: 2 };
  test.each(vectors.over_time)("$words", ({ samples, words, hint, cpus }) => {
    const found = overTime(asked, { samples });
    expect(found && said(found.soFar)).toBe(words || (samples.length ? "" : null));
    expect(found?.soFar.hint ?? "").toBe(hint);
    expect(cpusOf(samples.map((one) => ({ runS: one.run_s, cpu: one.cpu_s ?? undefined })))).toEqual(cpus);
  });
  test("is drawn as shares of what was asked, with gaps", () => {
    const samples = [{ run_s: 30, cpu_s: 30, memory_mb: 400 }, { run_s: 60, cpu_s: 90 }, { run_s: 120, cpu_s: 999, memory_mb: 9000 }];
    const graphs = overTime(asked, { samples })!.graphs;
    expect(graphs.map(({ name, steps }) => [name, ...steps.map((step) => step.share)])).toEqual([["CPUs", 0.5, 1, 1], ["memory", 0.5, null, 1]]);
  });
  const lies = [null, 7, {}, { samples: 1 }, { samples: [] }, { samples: [null] }, { samples: [{ run_s: -1 }] }, { samples: [{ run_s: 9 }, { run_s: 9 }] }];
  test.each(lies.map((lie) => [lie]))("of %j is not known", (lie) => expect(overTime(asked, lie)).toBeNull());
  test("is bounded, whatever a provider says", () => {
    const strange = [-1, 1e308, 1.5, "12", "\u001b[2J", true, [], {}, 10 ** 12 + 1];
    for (const lie of strange) {
      const found = overTime(asked, { samples: [{ run_s: 60, cpu_s: lie, memory_mb: lie, gpu_percent: lie, gpu_memory_mb: lie }] })!;
      expect(said(found.soFar)).toBe("");
    }
    const many = Array.from({ length: 10_000 }, (_, at) => ({ run_s: at, cpu_s: 10 ** 12 }));
    expect(overTime(asked, { samples: many })!.graphs[0]!.steps.length).toBe(64);
  });
});
