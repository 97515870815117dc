/** The New job page's form, filled in from an earlier job. */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { encodeFunctionData } from "viem";
import type { Cluster } from "../src/chain/clusters";
import { ABIS } from "../src/chain/contracts";
import type { Job } from "../src/job/value";
import schema from "../src/generated/schema.json";
import { Desk, type Market } from "../src/newjob/desk.svelte";
import { canonicalOf, type Schema } from "../src/pure/canonical";
import { CREDIT } from "../src/pure/money";
import { requestArguments } from "../src/wallet/order";

const TEXT = "resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 100, gpus: 0}\nsteps: [{name: a, run: {command: echo}}]\n";
const DRAFT = {
  uses: "gpu=a100", affinities: "mem>=9", time: "3h", depositWei: "7", minTime: "7h", maxPrice: "7", giveUpAfter: "7h", prefer: 3, after: "7",
  afterAny: true, tags: "draft=yes", note: "draft", delegate: true,
};
const JOB = {
  id: 12, name: "wing", uses: [], affinity: [], lockedWei: 240n * CREDIT, minMinutes: 240, maxRateWei: CREDIT, giveUpAt: 0, submittedAt: 1_764_400_000,
  prefer: 0, delegateSpending: false, afterJob: 0, afterAny: false, provider: "0x1",
} as unknown as Job;
const alpha = {
  address: "0x1", name: "alpha", approved: true, banned: false, labels: [], nodes: 1, cpusPerNode: [4], gpusPerNode: [0], memoryPerNode: [8000],
  prices: { gpu: 0n, cpu: CREDIT, memory: 0n },
} as unknown as Cluster;
const market = { clusters: [alpha], terms: { minimumWei: 1n } } as unknown as Market;

/** The form after Run again, over the draft of another job. */
function repeated(job: Partial<Job> = {}): Desk {
  const desk = new Desk();
  desk.repeat({ ...JOB, ...job }, { text: TEXT, tags: {}, note: "", masked: [] });
  return desk;
}
const obstacle = (desk: Desk) => desk.offers(market)[0]!.obstacle;

beforeEach(() => {
  const nothing = { getItem: () => null, setItem: () => undefined, removeItem: () => undefined };
  vi.stubGlobal("localStorage", nothing);
  vi.stubGlobal("sessionStorage", { ...nothing, getItem: () => JSON.stringify({ text: "x", name: "hello-world", terms: DRAFT }) });
  vi.stubGlobal("location", { pathname: "/", hash: "" });
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("no network")));
});

describe("Run again", () => {
  test("leaves no term of another draft", () => {
    const { terms } = repeated().draft({ uses: null, affinities: null });
    expect(terms).toEqual({
      uses: "", affinities: "", time: "", depositWei: String(240n * CREDIT), minTime: "240m", maxPrice: "1", giveUpAfter: "", prefer: 0, after: "",
      afterAny: false, tags: "", note: "", delegate: false,
    });
  });
  test("keeps the highest price, also none", () => {
    expect(repeated({ maxRateWei: CREDIT / 2n }).wishes.value.maxRateWei).toBe(CREDIT / 2n);
    expect(repeated({ maxRateWei: 0n }).wishes.value.maxRateWei).toBe(0n);
  });
  test("for a shorter time asks for this time", () => {
    const desk = repeated();
    expect(obstacle(desk)).toBe("");
    desk.setTime("1h");
    desk.follow(market, 1n);
    expect([desk.depositWei, desk.wishes.value.minMinutes, obstacle(desk)]).toEqual([60n * CREDIT, 60, ""]);
  });
  test("keeps the name of the job, also that of the first example", () => {
    expect(repeated({ name: "hello-world" }).name).toBe("hello-world");
  });
});

describe("wishes", () => {
  test.each([
    ["giveUpAfter", "10.51m"], ["giveUpAfter", "17280000s"], ["giveUpAfter", "3650d"], ["minTime", "1.5m"], ["minTime", "0.7h"],
    ["maxPrice", "0.5"], ["maxPrice", "any"],
  ] as const)("with %s %s fit into a request", (name, text) => {
    const desk = repeated();
    desk[name] = text;
    desk.checked = { definition: "{}", shape: { tasks: 1, cpusPerTask: 1, memPerCpu: 100, gpus: 0 } } as Desk["checked"];
    expect(desk.wishes.faults).toEqual([]);
    expect(() => encodeFunctionData({ abi: ABIS.MetaScheduler, functionName: "requestNewJobWithWishes", args: requestArguments(desk.order(market), "00") })).not.toThrow();
  });
  test.each([
    ["giveUpAfter", "9m"], ["giveUpAfter", "3651d"], ["giveUpAfter", "9999999d 9999999d"], ["minTime", "366d"], ["maxPrice", "99999999999"],
    ["maxPrice", "0"], ["after", "1.5"],
  ] as const)("with %s %s are refused in the form", (name, text) => {
    const desk = repeated();
    desk[name] = text;
    expect(desk.wishes.faults).toHaveLength(1);
  });
});

describe("a deposit", () => {
  test("that does not buy the minimum time is refused, even with a time", () => {
    const desk = repeated();
    desk.minTime = "2h"; // as typed
    desk.setTime("1h");
    desk.follow(market, 1n);
    expect([desk.depositWei, desk.minTime]).toEqual([60n * CREDIT, "2h"]);
    expect(obstacle(desk)).toBe("the deposit lasts for 60 minutes there, and the minimum time is 120");
  });
  test("that the time gives is never refused", () => {
    const desk = repeated();
    for (const time of ["1m", "61s", "90m", "365d"]) {
      desk.setTime(time);
      desk.follow(market, 1n);
      expect([time, obstacle(desk)]).toEqual([time, ""]);
    }
  });
});

describe("Check", () => {
  test("that a later one replaces has its answer, so that Submit goes on", async () => {
    const asked: (() => void)[] = [];
    vi.stubGlobal("fetch", (_: string, { signal }: { signal: AbortSignal }) => new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
      const definition = canonicalOf(TEXT, schema as Schema);
      asked.push(() => resolve(new Response(JSON.stringify({ definition, resources: null }))));
    }));
    const desk = repeated();
    const checks = [desk.check(), desk.check()];
    asked.at(-1)!();
    expect(await Promise.all(checks)).toEqual([true, true]);
    expect(desk.checking).toBe(false);
  });
});
