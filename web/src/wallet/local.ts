/** The signer of `dps web`: it signs and sends with the key file that `dps` uses. Its key never reaches the page. */
import { type Eip1193, WalletFault } from "./eip1193";

const JSON_TYPE = { "Content-Type": "application/json" };
const TIMEOUT_MS = 120_000;
const KEPT = `signer ${location.pathname}`;

/** The headers of a call in this origin's session. Pages at other ports cannot read this storage, unlike cookies. */
export function sessionHeaders(): Record<string, string> {
  const secret = localStorage.getItem(KEPT);
  return secret ? { ...JSON_TYPE, "X-Grid-Signer": secret } : JSON_TYPE;
}

/** Whether `dps web` serves this page. */
export async function hasLocalSigner(): Promise<boolean> {
  try {
    return (await fetch("signer", { signal: AbortSignal.timeout(20_000) })).status === 204;
  } catch {
    return false;
  }
}

/** Exchange the token in the address for a session, once. Returns a sentence if it is refused. */
export async function useToken(): Promise<string> {
  const found = /(?:^#|[&?])token=([\w-]+)/.exec(location.hash);
  if (!found) return "";
  history.replaceState(null, "", "#/");
  dispatchEvent(new HashChangeEvent("hashchange"));
  try {
    const answer = await fetch("signer/session", { method: "POST", headers: JSON_TYPE, body: JSON.stringify({ token: found[1] }) });
    const said = (await answer.json()) as { error?: string; session: string };
    if (!answer.ok) return said.error ?? "The address's token was refused.";
    localStorage.setItem(KEPT, said.session);
    return "";
  } catch {
    return "The process behind this page does not answer.";
  }
}

let nextId = 1;

export const localSigner: Eip1193 = {
  async request({ method, params = [] }) {
    const answer = await fetch("signer", {
      method: "POST",
      headers: sessionHeaders(),
      body: JSON.stringify({ jsonrpc: "2.0", id: nextId++, method, params }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const body = (await answer.json()) as { result?: unknown; error?: unknown };
    if (typeof body.error === "string") throw new WalletFault(body.error);
    if (body.error) throw body.error;
    return body.result;
  },
};
