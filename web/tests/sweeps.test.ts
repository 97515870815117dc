import { describe, expect, it } from "vitest";
import { filterOf, passing } from "../src/job/filter";
import type { Job } from "../src/job/value";
import { hasTag, listed, progressWords, sweepsOf, tagsIn } from "../src/pure/sweeps";
import type { Mark } from "../src/wallet/kept";

const FINISHED = 5, FAILED = 6, RUNNING = 3;
const job = (id: number, status: number): Job => ({ id, status, definitionHash: `h${id}`, submittedAt: id, name: "n", provider: "" }) as Job;
const place = (at: number, n: string): Mark => ({ tags: { project: "wing" }, note: "", sweep: { id: "a".repeat(16), name: "wing", at, of: 4, parameters: [{ n }] } });
const jobs = new Map([job(1, FINISHED), job(2, FAILED), job(3, FAILED), job(4, FINISHED), job(5, RUNNING)].map((one) => [one.id, one]));
const marks = new Map<string, Mark>([
  ["h1", place(1, "1")], ["h2", place(2, "2")], ["h3", place(3, "3")], ["h5", place(2, "2")], ["h4", { tags: { best: "" }, note: "", sweep: null }],
]);

describe("sweeps", () => {
  const sweep = sweepsOf(jobs.values(), marks).get("a".repeat(16))!;
  it("count the newest job of each place", () => {
    expect(sweep.rows.map((row) => [row.at, row.job.id, row.attempts, row.failed])).toEqual([[1, 1, 1, false], [2, 5, 2, false], [3, 3, 1, true]]);
    expect([sweep.columns, sweep.over, sweep.failed.length]).toEqual([["n"], 2, 1]);
    expect(progressWords(sweep)).toBe("1 finished, 1 running, 1 failed, 1 not requested of 4");
  });
  it("are one row each, in the place of their newest job", () => {
    expect(listed([5, 4, 3, 2, 1], jobs, marks)).toEqual(["a".repeat(16), 4]);
    expect(listed([9, 4], jobs, new Map())).toEqual([9, 4]);
  });
});

describe("tags", () => {
  it("are listed and filter the jobs", () => {
    expect(tagsIn(marks.values())).toEqual(["best", "project=wing"]);
    const filter = filterOf(new URLSearchParams("tag=project%3Dwing"));
    expect(passing([5, 4, 3], jobs, new Map(), filter, 9, marks)).toEqual([5, 3]);
    expect([hasTag(marks.get("h4"), "best"), hasTag(marks.get("h4"), "best=1"), hasTag(marks.get("h4"), "toString"), hasTag(undefined, "best")]).toEqual([true, false, false, false]);
  });
});
