import { describe, expect, test } from "vitest";
import { figureOf, type OfferEvent, speedsIn } from "../src/chain/offer_history.svelte";

const event = (name: string, gflops: number | null = null): OfferEvent => ({ name, gflops, block: 1, transaction: "0x", prices: null });

describe("the measured speed over time", () => {
  test.each([["310.00", 310], ["0.15", 0.15], ["7", 7], ["", null], ["1e9", null], ["-1", null], ["nan", null], ["9".repeat(40), null]])(
    "reads the label %o as %o",
    (text, figure) => expect(figureOf(text)).toBe(figure),
  );
  test("has what was approved, the oldest first", () => {
    const newestFirst = [
      event("ProviderWaitingForApproval", 900),
      event("ProviderApproved"),
      event("ProviderWaitingForApproval", 300),
      event("ProviderBanChanged"),
      event("ProviderApproved"),
      event("ProviderWaitingForApproval", 100),
      event("ProviderApproved"),
      event("ProviderWaitingForApproval", null),
    ];
    expect(speedsIn(newestFirst)).toEqual([100, 300]);
  });
});
