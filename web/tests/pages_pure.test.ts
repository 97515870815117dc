import { describe, expect, it } from "vitest";
import { found, gallery } from "../src/newjob/gallery";
import { labelRows } from "../src/pure/conditions";
import { about } from "../src/pure/money";

describe("gallery", () => {
  for (const [, examples] of gallery) {
    for (const { name, title } of examples) {
      it(`describes ${name} in a whole sentence`, () => expect(title).toMatch(/^[A-Z`$0-9].*\.$/));
    }
  }
  it("finds examples by words of their name and text", () => {
    const names = found("MPI container").flatMap(([, examples]) => examples.map((one) => one.name));
    expect(names).toContain("container-mpi");
    expect(names).not.toContain("hello-world");
    expect(found("no such words anywhere")).toEqual([]);
  });
});

describe("labels", () => {
  it("stand by subject, with units, and how they were measured last", () => {
    const keys = ["compute.benchmark", "zone", "storage.scratch.read.bw.mibps", "compute.gflops", "name", "cpu", "containers"];
    const rows = labelRows(keys.map((key) => ({ key, value: "1" })));
    expect(rows.map(({ key, unit }) => (unit ? `${key} ${unit}` : key))).toEqual([
      "cpu", "containers", "compute.gflops GFLOPS", "storage.scratch.read.bw.mibps MiB/s", "zone", "compute.benchmark",
    ]);
  });
});

describe("amounts that still change", () => {
  it("have one mark", () => expect([about(3_841n * 10n ** 14n * 10n + 1n), about(10n ** 18n)]).toEqual(["~3.841", "~1"]));
});
