/** The grid that serves this page: its contracts, limits, and whether the process behind the page can sign. */

export interface GridInfo {
  chain_id: number;
  credit: `0x${string}`;
  meta_scheduler: `0x${string}`;
  provider_manager: `0x${string}`;
  local: boolean;
  modules: boolean;
  node_url?: string;
  prefect_url?: string;
  /** Of `dps web`: where others reach the services. */
  services_url?: string;
  limits: Record<string, number>;
}

const RETRY_MS = 3_000;
let known: Promise<GridInfo> | undefined;

/** Read once per page. A failed read is tried again by the next call. */
export function gridInfo(): Promise<GridInfo> {
  known ??= read().catch((error: unknown) => {
    known = undefined;
    throw error;
  });
  return known;
}

/** The same, tried again until the services answer. */
export async function gridInfoInTime(): Promise<GridInfo> {
  for (;;) {
    try {
      return await gridInfo();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

async function read(): Promise<GridInfo> {
  const answer = await fetch("v1/grid", { signal: AbortSignal.timeout(20_000) });
  if (!answer.ok) throw new Error(`The grid's services answered with status ${answer.status}.`);
  return (await answer.json()) as GridInfo;
}
