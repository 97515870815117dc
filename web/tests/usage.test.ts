/** The wallet page's usage has the sums that Python computes, to the wei. */
import { expect, test } from "vitest";
import vectors from "../../tests/web/vectors/usage.json";
import { type By, groupsOf, monthsBetween, settledIn, type UsedJob } from "../src/pure/usage";

const names = vectors.clusters as Record<string, string>;
const jobs: UsedJob[] = vectors.jobs.map(([id, name, status, provider, endedAt, locked, cost, rate]) => ({
  id: Number(id), name: String(name), status: Number(status), provider: String(provider), endedAt: Number(endedAt),
  lockedWei: BigInt(locked!), finalCostWei: BigInt(cost!), rateWei: BigInt(rate!),
}));

for (const { since, until, by, rows } of vectors.sums)
  test(`usage by ${by} from ${since}`, () => {
    const found = groupsOf(settledIn(jobs, since, until), by as By, (provider) => names[provider]!);
    expect(found.map(([key, sums]) => [key, sums.jobs, ...[sums.minutes, sums.cost, sums.refunded].map(String)])).toEqual(rows);
  });

test("a plot has no gaps between months", () => {
  expect(monthsBetween("2026-11", "2027-02")).toEqual(["2026-11", "2026-12", "2027-01", "2027-02"]);
});
