/** `dps web` as the page sees it: its signer, and what it keeps. The key that signs never reaches the page. */
import { type Eip1193, WalletFault } from "./eip1193";

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

/** Exchange the token in the address for a session, once, and fetch what is kept. Returns a sentence if that fails. */
export async function useToken(): Promise<string> {
  const found = /(?:^#|[&?])token=([\w-]+)/.exec(location.hash);
  if (!found) return "";
  history.replaceState(null, "", "#/");
  try {
    const answer = await post("signer/session", { token: found[1] });
    const said = (await answer.json()) as { error?: string; session: string };
    if (!answer.ok) return said.error ?? "The address's token was refused.";
    localStorage.setItem(session(), said.session);
    const { kept } = (await (await post("signer/kept", {})).json()) as { kept: Record<string, string> };
    for (const [name, text] of Object.entries(kept)) localStorage.setItem(name, text);
    return "";
  } catch {
    return GONE;
  }
}

/** Keep a text on this device; null forgets it. The origin of `dps web` is new at each start, so it keeps a copy. */
export function keep(name: string, text: string | null): void {
  if (localStorage.getItem(name) === text) return;
  if (text === null) localStorage.removeItem(name);
  else localStorage.setItem(name, text);
  if (hasLocalSession()) void post("signer/kept", { changes: { [name]: text } }).catch(() => undefined);
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
