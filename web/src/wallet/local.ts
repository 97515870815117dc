/** The signer of `dps web`: it signs and sends with the key file that `dps` uses. Its key never reaches the page. */
import type { Eip1193 } from "./eip1193";

const HEADERS = { "Content-Type": "application/json", "X-Grid-Signer": "1" };
const TIMEOUT_MS = 120_000;

/** Whether `dps web` serves this page. */
export async function hasLocalSigner(): Promise<boolean> {
  try {
    return (await fetch("signer", { signal: AbortSignal.timeout(20_000) })).status === 204;
  } catch {
    return false;
  }
}

/** Exchange the token in the address for a cookie, once. Returns a sentence if it is refused. */
export async function useToken(): Promise<string> {
  const found = /(?:^#|[&?])token=([\w-]+)/.exec(location.hash);
  if (!found) return "";
  history.replaceState(null, "", "#/");
  dispatchEvent(new HashChangeEvent("hashchange"));
  try {
    const answer = await fetch("signer/session", { method: "POST", headers: HEADERS, body: JSON.stringify({ token: found[1] }) });
    if (answer.ok) return "";
    const said = (await answer.json()) as { error?: string };
    return said.error ?? "The address's token was refused.";
  } catch {
    return "The process behind this page does not answer.";
  }
}

let nextId = 1;

export const localSigner: Eip1193 = {
  async request({ method, params = [] }) {
    const answer = await fetch("signer", {
      method: "POST",
      headers: HEADERS,
      body: JSON.stringify({ jsonrpc: "2.0", id: nextId++, method, params }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const body = (await answer.json()) as { result?: unknown; error?: unknown };
    if (typeof body.error === "string") throw { code: answer.status, message: body.error };
    if (body.error) throw body.error;
    return body.result;
  },
};
