/** `dps web` as the page sees it: its signer, and its storage. The key that signs never reaches the page. */
import { type Eip1193, WalletFault } from "./eip1193";

export const FILE = "file:"; // begins the names of files of earlier jobs
const JSON_TYPE = { "Content-Type": "application/json" };
const TIMEOUT_MS = 120_000;
const session = () => `signer ${location.pathname}`; // the name of its secret in the storage
const GONE = "`dps web` does not answer. If it was started again, open the newest address that it has printed.";

/** The headers of a call in this origin's session. Pages at other ports cannot read this storage, unlike cookies. */
export function sessionHeaders(): Record<string, string> {
  const secret = localStorage.getItem(session());
  return secret ? { ...JSON_TYPE, "X-Grid-Signer": secret } : JSON_TYPE;
}

/** Whether this origin has a session, which may have ended. */
export const hasLocalSession = (): boolean => localStorage.getItem(session()) !== null;

/** Whether `dps web` serves this page. */
export async function hasLocalSigner(): Promise<boolean> {
  try {
    return (await fetch("signer", { signal: AbortSignal.timeout(20_000) })).status === 204;
  } catch {
    return false;
  }
}

/** Exchange the token in the address for a session, once, and fetch what is stored. Returns a sentence if that fails. */
export async function useToken(): Promise<string> {
  const found = /(?:^#|[&?])token=([\w-]+)/.exec(location.hash);
  if (!found) return "";
  history.replaceState(null, "", "#/");
  try {
    const answer = await post("signer/session", { token: found[1] });
    const said = (await answer.json()) as { error?: string; session: string };
    if (!answer.ok) return said.error ?? "The address's token was refused.";
    localStorage.setItem(session(), said.session);
    const stored = (await (await post("signer/storage", {})).json()) as { error?: string; texts: Record<string, string> };
    if (stored.error) return stored.error;
    for (const [name, text] of Object.entries(stored.texts)) store(name, text);
    return "";
  } catch {
    return GONE;
  }
}

let lastChange: Promise<unknown> = Promise.resolve();

/**
 * Keep a text on this device; null forgets it. The origin of `dps web` is new at each start, so it stores a copy, in
 * the order of the changes. Raises WalletFault if it does not, and what the browser raises.
 */
export async function keep(name: string, text: string | null): Promise<void> {
  if (!hasLocalSession()) return store(name, text);
  const change = lastChange.then(async () => {
    if (localStorage.getItem(name) === text) return;
    const answer = await post("signer/storage", { changes: { [name]: text } }).catch(() => {
      throw new WalletFault(GONE);
    });
    if (!answer.ok) throw new WalletFault(((await answer.json()) as { error: string }).error);
    store(name, text);
  });
  lastChange = change.catch(() => undefined);
  return change;
}

/** Keep a text in this browser. Files of earlier jobs make room if it is full. */
function store(name: string, text: string | null): void {
  if (text === null) return localStorage.removeItem(name);
  for (;;) {
    try {
      return localStorage.setItem(name, text);
    } catch (full) {
      const file = Object.keys(localStorage).find((other) => other.startsWith(FILE) && other !== name);
      if (file === undefined) throw full;
      localStorage.removeItem(file);
    }
  }
}

/** Open a port of an own running job on this machine. Returns its address there. Raises WalletFault. */
export async function forwardedPort(job: number, port: number): Promise<string> {
  const answer = await post("signer/forward", { job, port }).catch(() => {
    throw new WalletFault(GONE);
  });
  const said = (await answer.json()) as { url?: string; error?: string };
  if (!/^http:\/\/127\.0\.0\.1:\d{1,5}$/.test(said.url ?? "")) throw new WalletFault(said.error ?? GONE);
  return said.url!;
}

let nextId = 1;

export const localSigner: Eip1193 = {
  async request({ method, params = [] }) {
    const call = { jsonrpc: "2.0", id: nextId++, method, params };
    const answer = await post("signer", call).catch(() => {
      throw new WalletFault(GONE);
    });
    const body = (await answer.json()) as { result?: unknown; error?: unknown };
    if (typeof body.error === "string") throw new WalletFault(body.error);
    if (body.error) throw body.error;
    return body.result;
  },
};

function post(path: string, body: unknown): Promise<Response> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  return fetch(path, { method: "POST", headers: sessionHeaders(), body: JSON.stringify(body), signal });
}
