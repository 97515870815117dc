import { describe, expect, test } from "vitest";
import bills from "../../tests/web/vectors/bills.json";
import logLines from "../../tests/web/vectors/log_lines.json";
import reasons from "../../tests/web/vectors/reasons.json";
import { affordableMinutes, bill, leastBilled, minutesBegun, minutesGained, rateWeiPerMinute } from "../src/pure/bill";
import { unmet, written } from "../src/pure/labels";
import { plainLine, spansOf } from "../src/pure/logline";
import { misfit } from "../src/pure/market";
import { LogStore } from "../src/job/log/store";
import type { Job } from "../src/job/value";
import { releasableWei, whyNotAgain, whyNotCancel, whyNotTopUp } from "../src/job/wish";
import type { Transition } from "../src/job/history";
import { moment, runTime, waitsAgain, whereabouts } from "../src/job/words";

const decoder = new TextDecoder();

describe("the same results as Python", () => {
  test.each(bills.bills)("bill of $minutes minutes at $rate", (one) => {
    const parts = bill(BigInt(one.minutes), BigInt(one.rate), BigInt(one.locked), one.cut_percent);
    expect(affordableMinutes(BigInt(one.locked), BigInt(one.rate))).toBe(BigInt(one.affordable));
    const texts = Object.fromEntries(Object.entries(parts).map(([name, wei]) => [name, String(wei)]));
    expect(texts).toEqual({ cost: one.cost, paid: one.paid, cut: one.cut, refunded: one.refunded });
    expect(parts.paid + parts.cut + parts.refunded).toBe(BigInt(one.locked));
  });

  test.each(bills.rates)("rate of $shape", ({ shape, rate }) => {
    const [ntasks, cpusPerTask, memPerCpuMb, gpus] = shape.map(BigInt) as [bigint, bigint, bigint, bigint];
    const [gpu, cpu, memPerMb] = bills.prices.map(BigInt) as [bigint, bigint, bigint];
    expect(rateWeiPerMinute({ ntasks, cpusPerTask, memPerCpuMb, gpus }, { gpu, cpu, memPerMb })).toBe(BigInt(rate));
  });

  test.each(bills.begun)("%s seconds are %s minutes", (seconds, minutes) => expect(minutesBegun(seconds!)).toBe(minutes));

  test.each(logLines.lines as [string, string[]][])("cleaned output %j", (text, lines) => {
    const store = new LogStore();
    store.append(0, new TextEncoder().encode(text));
    const found = Array.from({ length: store.lines }, (_, at) => plainLine(decoder.decode(store.line(at))));
    expect(found).toEqual(lines);
  });

  test.each(reasons.misfits as [number[], string][])("misfit of %j", (shape, why) => {
    const [gpus, memPerCpu, cpusPerTask, tasks] = shape as [number, number, number, number];
    const [gpusPerNode, cpusPerNode, memoryPerNode] = reasons.hardware as [number[], number[], number[]];
    expect(misfit({ tasks, cpusPerTask, memPerCpu, gpus }, { gpusPerNode, cpusPerNode, memoryPerNode })).toBe(why);
  });

  test.each(reasons.unmet as [string[], string[]][])("condition %j", ([key, op, value], missing) => {
    const labels = reasons.labels.map(([key, value]) => ({ key: key!, value: value! }));
    expect(unmet(labels, [{ key: key!, op: op!, value: value! }]).map(written)).toEqual(missing);
  });
});

describe("the time that a job ran", () => {
  const job = { startedAt: 1000, endedAt: 1065, finalCostWei: 20n, rateWei: 10n, lockedWei: 100n, cutPercent: 3 } as Job;
  const history = [{ kind: "state", after: 2, at: 990 }, { kind: "state", after: 3, at: 1058 }] as Transition[];
  test("is exact where its history is known", () => expect(runTime(job, 0, history)).toBe("7s"));
  test("is told in billed minutes elsewhere", () => expect(runTime(job, 0)).toBe("2m"));
  test("goes on while it runs", () => expect(runTime({ ...job, endedAt: 0 }, 1100)).toBe("1m"));
  test("is none before its start", () => expect(runTime({ ...job, startedAt: 0 }, 1100, history)).toBe("–"));
});

describe("a repeat of a job that named an earlier one", () => {
  const job = { afterJob: 12, provider: "" } as Job;
  test("waits again if no cluster had it", () => expect(waitsAgain(job)).toBe(true));
  test("runs at once after a cluster had it", () => expect(waitsAgain({ ...job, provider: "0x1" } as Job)).toBe(false));
  test("of no chain never waits", () => expect(waitsAgain({ ...job, afterJob: 0 })).toBe(false));
});

describe("cancel and top up", () => {
  const job = { status: 3, lockedWei: 100n, finalCostWei: 0n, rateWei: 10n, cutPercent: 3, grantedMinutes: 10, startedAt: 1000 };
  test("bills at least the fee", () => expect(leastBilled(job, 5, 1010)).toBe(50n));
  test("bills what it ran if that is more", () => expect(leastBilled(job, 5, 1000 + 6 * 60 + 1)).toBe(70n));
  test("never bills more than is locked", () => expect(leastBilled(job, 50, 1010)).toBe(100n));
  test("bills nothing before it starts", () => expect(leastBilled({ ...job, startedAt: 0 }, 5, 1010)).toBe(0n));
  test("counts whole minutes", () => expect(minutesGained({ ...job, lockedWei: 105n }, 14n)).toBe(1n));
  test("an unknown rate gives no number", () => expect(minutesGained({ ...job, rateWei: 0n }, 14n)).toBeNull());
});

describe("an unanswered cancel request", () => {
  const credit = 10n ** 18n;
  const asked = {
    id: 7, status: 3, lockedWei: 10n * credit, releasedWei: 0n, hasCancelRequest: true, cancelRequestedAt: 1000,
    startedAt: 400, claimedAt: 100, rateWei: credit / 5n, cutPercent: 20,
  } as Job;
  const late = { ...asked, rateWei: credit / 2n }; // its answer is due when the bought time ends
  const released = { ...asked, releasedWei: 6n * credit };
  const held = `4 credits stay locked until ${moment(1000 + 86_400)}, or until the cluster reports; 6 credits came back. After that time, cancel it again`;
  test("cannot be repeated before the answer is due", () => {
    expect(whyNotAgain(asked, 10, 5, 1599)).toContain(`has until ${moment(1600)} to answer`);
    expect(whyNotAgain(asked, 10, 5, 1600)).toBe("");
    expect(whyNotAgain({ ...asked, hasCancelRequest: false }, 10, 5, 0)).toBe("");
  });
  test("cannot be repeated for a day if that returns nothing", () => {
    const words = `Its cluster did not answer; all 10 credits stay locked until ${moment(1000 + 86_400)}, or until the cluster reports.`;
    for (const now of [1600, 1000 + 86_399]) expect(whyNotAgain(late, 10, 5, now)).toContain(words);
    expect(whyNotAgain(late, 10, 5, 1000 + 86_400)).toBe("");
  });
  test("returns what no report can bill", () => {
    expect(releasableWei(asked, 10, 5)).toBe(6n * credit);
    expect(releasableWei(released, 10, 5)).toBe(0n);
    expect(releasableWei(late, 10, 5)).toBe(0n);
    expect(releasableWei({ ...asked, startedAt: 0 }, 10, 5)).toBe(5n * credit);
    expect(releasableWei(asked, 10, 40)).toBe(2n * credit);
  });
  test("says what stays locked, and until when", () => {
    expect(whyNotCancel(released, true, 1000 + 86_399)).toBe(held);
    expect(whereabouts(released, "alpha")).toContain(held);
    expect(whereabouts(asked, "alpha")).toBe("to be cancelled: alpha has been asked to stop it");
    const chained = { ...asked, hasCancelRequest: false, status: 0, afterJob: 12, afterAny: false };
    expect(whereabouts(chained, "")).toBe("job 12 must finish first, then a cluster is found");
    expect(whereabouts({ ...chained, afterAny: true }, "")).toBe("job 12 must end first, then a cluster is found");
  });
  test("returns the rest after a day, however long an answer may take", () => {
    expect(whyNotCancel(released, true, 1000 + 86_400)).toBe("");
    expect(whyNotAgain(asked, 10_080, 5, 1000 + 86_400)).toBe("");
  });
  test("ends top-ups", () => expect(whyNotTopUp(asked, true)).toBe("its cancellation was requested"));
});

describe("colours", () => {
  test("stay as classes only", () => {
    expect(spansOf("a\x1b[1;31mb\x1b[0mc\x1b[5;8;7md")).toEqual([
      { text: "a", look: "" }, { text: "b", look: "fg1 bold" }, { text: "c", look: "" }, { text: "d", look: "" },
    ]);
  });
  test("do not let other marks hide", () => expect(spansOf("a\u200bb")[0]!.text).toBe("a[U+200B]b"));
});
