/** The page's side of the search: hands bytes to the worker, and ends it when it takes too long. */
import type { Wanted } from "./find";
import type { LogStore } from "./store";

export interface Found {
  hits: Uint32Array;
  count: number;
  fault?: string;
}

const NOTHING = new Uint32Array(0);
const LIMIT_MS = 10_000;

export class LogSearch {
  private worker: Worker | undefined;
  private sent = 0;
  private id = 0;

  /** Lines with the text. A search that another one replaces never resolves. */
  find(store: LogStore, wanted: Wanted): Promise<Found> {
    const worker = (this.worker ??= new Worker(new URL("./search.worker.ts", import.meta.url), { type: "module" }));
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
      worker.postMessage({ wanted, id });
    });
  }

  /** End the worker. Needed too when bytes were added before the ones that it has. */
  stop(): void {
    this.worker?.terminate();
    this.worker = undefined;
    this.sent = 0;
  }
}
