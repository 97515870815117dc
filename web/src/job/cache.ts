/** Jobs that are over never change: they are kept on the device. Without IndexedDB, they are read anew. */
import { gridInfo } from "../chain/grid";
import { call } from "../chain/relay";
import type { Job } from "./value";

const STORE = "cold";
let opened: Promise<IDBDatabase | null> | undefined;

/** The kept jobs of a customer. */
export async function keptJobs(customer: string): Promise<Job[]> {
  const range = () => IDBKeyRange.bound([customer, 0], [customer, Number.MAX_SAFE_INTEGER]);
  return (await request((db) => db.transaction(STORE).objectStore(STORE).getAll(range()))) ?? [];
}

/** Keep jobs that are over. */
export async function keepJobs(jobs: Job[]): Promise<void> {
  const db = await open();
  if (!db || jobs.length === 0) return;
  const store = db.transaction(STORE, "readwrite", { durability: "relaxed" }).objectStore(STORE);
  for (const job of jobs) store.put(job, [job.customer, job.id]);
}

async function request<T>(make: (db: IDBDatabase) => IDBRequest<T>): Promise<T | null> {
  const db = await open();
  if (!db) return null;
  return new Promise((resolve) => {
    try {
      const asked = make(db);
      asked.onsuccess = () => resolve(asked.result);
      asked.onerror = () => resolve(null);
    } catch {
      resolve(null);
    }
  });
}

function open(): Promise<IDBDatabase | null> {
  return (opened ??= openNow().catch(() => null));
}

/** A chain that began anew has another first block, so that nothing of the earlier one is shown. */
async function openNow(): Promise<IDBDatabase | null> {
  const [grid, first] = await Promise.all([gridInfo(), call("eth_getBlockByNumber", ["0x0", false])]);
  const hash = (first as { hash?: string } | null)?.hash;
  if (!hash) return null;
  const name = `deepgrid-jobs-${grid.chain_id}-${hash.slice(2, 18)}-${grid.meta_scheduler.slice(2, 10)}`;
  return new Promise((resolve) => {
    const asked = indexedDB.open(name, 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE);
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => resolve(null);
  });
}
