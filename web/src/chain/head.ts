/** The newest block. One loop per tab asks for it: every 2 s, in a hidden tab every 30 s, after faults up to every 15 s.
 *
 * Tabs share what they read: a tab that just heard of a block from another one does not ask. */
import { readable } from "svelte/store";
import { call, RelayFault } from "./relay";

export interface Head {
  /** Number of the newest block; 0 before the first one was read. */
  number: number;
  /** Its time in unix seconds. */
  timestamp: number;
  /** When this page read it, in milliseconds. */
  readAt: number;
  /** Why it cannot be read at the moment; null if all is well. */
  trouble: string | null;
}

const VISIBLE_MS = 2_000;
const HIDDEN_MS = 30_000;
const LONGEST_MS = 15_000;

const listeners = new Set<(head: Head) => void>();
let current: Head = { number: 0, timestamp: 0, readAt: 0, trouble: null };
let faults = 0;
let heardAt = 0;
const tabs = "BroadcastChannel" in globalThis ? new BroadcastChannel(`head ${location.pathname}`) : null;
let timer: ReturnType<typeof setTimeout> | undefined;

export const head = readable<Head>(current, (set) => {
  set(current);
  return listen(set);
});

/** Call `fn` for each new block, and once now if a block is known. Returns a function that ends it.
 *
 * While a promise of `fn` is open, `fn` is not called: after it, once, for the newest block if it is another one. */
export function onBlock(fn: (head: Head) => void | Promise<void>): () => void {
  let last = 0;
  let busy = false;
  let ended = false;
  const changed = async (next: Head) => {
    if (next.trouble) last = 0; // after an outage the same block is told again, as its reads may have failed
    if (next.number === 0 || next.number === last || next.trouble || busy || ended) return;
    last = next.number;
    busy = true;
    try {
      await fn(next);
    } finally {
      busy = false;
      void changed(current);
    }
  };
  const stop = listen((next) => void changed(next));
  queueMicrotask(() => void changed(current)); // not in the caller's effect, which would depend on all that `fn` reads
  return () => {
    ended = true;
    stop();
  };
}

/** Read the newest block now, for example after a transaction. */
export async function refresh(): Promise<Head> {
  try {
    const block = (await call("eth_getBlockByNumber", ["latest", false])) as { number: string; timestamp: string };
    faults = 0;
    const number = Math.max(current.number, parseInt(block.number, 16));
    const timestamp = Math.max(current.timestamp, parseInt(block.timestamp, 16));
    tell({ number, timestamp, readAt: Date.now(), trouble: null });
    tabs?.postMessage({ number, timestamp });
  } catch (error) {
    faults += 1;
    const sentence = error instanceof RelayFault ? error.sentence : "The grid's services do not answer.";
    tell({ ...current, trouble: sentence });
  }
  return current;
}

function tell(next: Head): void {
  current = next;
  for (const listener of listeners) listener(current);
}

function listen(listener: (head: Head) => void): () => void {
  listeners.add(listener);
  if (listeners.size === 1) void loop();
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) clearTimeout(timer);
  };
}

async function loop(): Promise<void> {
  clearTimeout(timer);
  if (Date.now() - heardAt >= VISIBLE_MS * 0.75) await refresh();
  const pause = document.hidden ? HIDDEN_MS : Math.min(VISIBLE_MS * 2 ** faults, LONGEST_MS);
  if (listeners.size > 0) timer = setTimeout(() => void loop(), pause);
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && listeners.size > 0) void loop();
});

tabs?.addEventListener("message", ({ data }: MessageEvent<{ number: number; timestamp: number }>) => {
  if (listeners.size === 0 || data.number < current.number) return;
  heardAt = Date.now();
  faults = 0;
  tell({ ...data, readAt: heardAt, trouble: null });
});
