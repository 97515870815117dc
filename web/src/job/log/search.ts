/** The page's side of the search: hands bytes to the worker, and ends it when it takes too long. */
import workerUrl from "./search.worker?worker&url";
import type { Wanted } from "./find";
import type { LogStore } from "./store";

export interface Found {
  hits: Uint32Array;
  count: number;
  fault?: string;
}

const NOTHING = new Uint32Array(0);
const LIMIT_MS = 10_000;

interface Policies {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): { createScriptURL(url: string): string };
}
const policies = (globalThis as { trustedTypes?: Policies }).trustedTypes;
let policy: ReturnType<Policies["createPolicy"]> | undefined;

/** The one script that the page starts beside itself. Its address comes from the build. */
function start(): Worker {
  policy ??= policies?.createPolicy("log-search", { createScriptURL: () => workerUrl });
  return new Worker(policy?.createScriptURL(workerUrl) ?? workerUrl, { type: "module" });
}

export class LogSearch {
  private worker: Worker | undefined;
  private sent = 0;
  private from = 0;
  private id = 0;

  /** Lines with the text. A search that another one replaces never resolves. */
  find(store: LogStore, wanted: Wanted): Promise<Found> {
    if (store.from !== this.from) this.stop(); // bytes came before the ones that it has
    this.from = store.from;
    const worker = (this.worker ??= start());
    const pieces = store.pieces();
    for (const block of pieces.slice(this.sent)) worker.postMessage({ block });
    this.sent = pieces.length;
    const id = (this.id += 1);
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        if (id !== this.id) return;
        this.stop();
        resolve({ hits: NOTHING, count: 0, fault: "The search took more than 10 seconds and was ended." });
      }, LIMIT_MS);
      worker.onmessage = (event: MessageEvent<Partial<Found> & { id: number }>) => {
        if (event.data.id !== this.id) return;
        clearTimeout(timer);
        resolve({ hits: event.data.hits ?? NOTHING, count: event.data.count ?? 0, fault: event.data.fault });
      };
      worker.onerror = () => {
        clearTimeout(timer);
        this.stop();
        resolve({ hits: NOTHING, count: 0, fault: "The search could not be started." });
      };
      worker.postMessage({ wanted, id });
    });
  }

  stop(): void {
    this.worker?.terminate();
    this.worker = undefined;
    this.sent = 0;
  }
}
