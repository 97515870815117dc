import { beforeEach, expect, test, vi } from "vitest";

let block = 1;

beforeEach(() => {
  vi.stubGlobal("location", { pathname: "/" });
  vi.stubGlobal("localStorage", { getItem: () => null });
  vi.stubGlobal("document", { hidden: false, addEventListener: () => undefined });
  vi.stubGlobal("fetch", async (_path: string, { body }: { body: string }) => {
    const [{ id }] = JSON.parse(body) as [{ id: number }];
    return Response.json([{ jsonrpc: "2.0", id, result: { number: `0x${block.toString(16)}`, timestamp: "0x1" } }]);
  });
});

test("a block that comes during a read is read after it, once, as the newest one", async () => {
  vi.stubGlobal("BroadcastChannel", class { addEventListener() { /* no other tabs */ } postMessage() { /* the same */ } });
  const { onBlock, refresh } = await import("../src/chain/head");
  const seen: number[] = [];
  let end = (): void => undefined;
  const stop = onBlock((head) => {
    seen.push(head.number);
    return new Promise((resolve) => (end = resolve));
  });
  await vi.waitFor(() => expect(seen).toEqual([1]));
  for (block of [2, 3]) await refresh();
  expect(seen).toEqual([1]);
  end();
  await vi.waitFor(() => expect(seen).toEqual([1, 3]));
  block = 4;
  await refresh();
  stop();
  end();
  await refresh();
  expect(seen).toEqual([1, 3]);
});
