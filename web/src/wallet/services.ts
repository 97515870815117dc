/** Signed calls to the grid's services: definitions, logs, the end of a session. */
import { bytesToHex, hashTypedData, hexToBytes, keccak256, type Hex, toBytes } from "viem";
import { gridInfo } from "../chain/grid";
import { dropSession, type Session } from "./session";

export const REQUEST_TYPES = {
  Request: [
    { name: "method", type: "string" },
    { name: "path", type: "string" },
    { name: "bodyHash", type: "bytes32" },
    { name: "issuedAt", type: "uint256" },
    { name: "nonce", type: "bytes32" },
  ],
};

/** A refusal or a failure of the services. `transient`: trying again may help. */
export class ServiceFault extends Error {
  constructor(
    readonly sentence: string,
    readonly status: number,
    readonly transient: boolean,
    readonly retryAfterS = 0,
  ) {
    super(sentence);
  }
}

let aheadS = 0; // how far the services' clock is ahead of this one

/** The 32 bytes that a session key signs for a request. */
export function requestDigest(
  chainId: number, contract: Hex, method: string, path: string, body: Uint8Array, issuedAt: number, nonce: Hex,
): Hex {
  const domain = { name: "deepgrid", version: "1", chainId, verifyingContract: contract };
  const message = { method, path, bodyHash: keccak256(body), issuedAt: BigInt(issuedAt), nonce };
  return hashTypedData({ domain, types: REQUEST_TYPES, primaryType: "Request", message });
}

/** Send a request that the session key signs. `path` starts with `/v1/`. Raises ServiceFault unless the status is 2xx. */
export async function signedFetch(
  session: Session, method: string, path: string, content: string | Uint8Array = "", signal?: AbortSignal,
): Promise<Response> {
  const answer = await exchange(session, method, path, content, signal);
  if (answer.status !== 401) return checked(answer);
  await adoptClock();
  return checked(await exchange(session, method, path, content, signal));
}

async function exchange(
  session: Session, method: string, path: string, content: string | Uint8Array, signal?: AbortSignal,
): Promise<Response> {
  const body = typeof content === "string" ? toBytes(content) : content;
  const issuedAt = Math.floor(Date.now() / 1000 + aheadS);
  const nonce = bytesToHex(crypto.getRandomValues(new Uint8Array(32)));
  const digest = requestDigest(session.chainId, session.contract, method, path, body, issuedAt, nonce);
  // eslint-disable-next-line no-restricted-syntax -- a handle of the browser; the key itself cannot be exported
  const signed = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, session.keys.privateKey, hexToBytes(digest) as BufferSource);
  const headers = {
    "X-Grid-Address": session.address,
    "X-Grid-Issued-At": String(issuedAt),
    "X-Grid-Nonce": nonce,
    "X-Grid-Signature": bytesToHex(new Uint8Array(signed)),
    "X-Grid-Session": session.header,
  };
  try {
    return await fetch(path.slice(1), { method, headers, body: body.length ? (body as BodyInit) : undefined, signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ServiceFault("The grid's services do not answer.", 0, true);
  }
}

async function checked(answer: Response): Promise<Response> {
  if (answer.ok) return answer;
  const said = (await answer.json().catch(() => ({}))) as { error?: string };
  if (answer.status === 401) await dropSession();
  const retryAfterS = Number(answer.headers.get("Retry-After") ?? 0) || 0;
  const transient = answer.status === 408 || answer.status === 425 || answer.status === 429 || answer.status >= 500;
  throw new ServiceFault(`The grid's services refused: ${said.error ?? `status ${answer.status}`}.`, answer.status, transient, retryAfterS);
}

async function adoptClock(): Promise<void> {
  const answer = await fetch("v1/health");
  if (!answer.ok) return;
  const health = (await answer.json()) as { time: number };
  const ahead = health.time - Date.now() / 1000;
  if (Math.abs(ahead) < 86_400) aheadS = ahead;
}

// -- definitions -----------------------------------------------------------------------------

const PATIENCE_MS = 300_000;

/** Store a definition in canonical form under its hash. It is tried again while the service is busy with others. */
export async function storeDefinition(session: Session, hash: string, salt: string, definition: string): Promise<void> {
  const body = JSON.stringify({ salt, definition });
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      await signedFetch(session, "PUT", `/v1/definitions/${hash}`, body);
      return;
    } catch (error) {
      const pause = error instanceof ServiceFault && [429, 503].includes(error.status) ? error.retryAfterS : 0;
      if (!pause || Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, pause * 1000 * (1 + Math.random() / 2)));
    }
  }
}

// -- logs ------------------------------------------------------------------------------------

export interface LogChunk {
  data: Uint8Array;
  offset: number;
  nextOffset: number;
  final: boolean;
  claimedAt: number;
  leftOut: number;
}

/** Output of a job from `offset` on; a negative one counts from its end. Waits up to `waitS` (25) for new output. */
export async function readLog(
  session: Session, jobId: bigint | number, offset: number, waitS = 0, signal?: AbortSignal,
): Promise<LogChunk> {
  const answer = await signedFetch(session, "GET", `/v1/jobs/${jobId}/log?offset=${offset}&wait=${waitS}`, "", signal);
  const header = (name: string) => answer.headers.get(`X-${name}`);
  const number = (name: string) => Number(header(name) ?? 0);
  return {
    data: new Uint8Array(await answer.arrayBuffer()),
    offset: number("Offset"),
    nextOffset: number("Next-Offset"),
    final: header("Final") === "true",
    claimedAt: number("Claimed-At"),
    leftOut: number("Left-Out"),
  };
}

/** The signed receipt of a job, as its provider sent it. */
export async function readReceipt(session: Session, jobId: bigint | number): Promise<Uint8Array> {
  return new Uint8Array(await (await signedFetch(session, "GET", `/v1/jobs/${jobId}/receipt`)).arrayBuffer());
}

/** The samples of what a job uses, as its provider sent them. */
export async function readUse(session: Session, jobId: number, signal?: AbortSignal): Promise<unknown> {
  return await (await signedFetch(session, "GET", `/v1/jobs/${jobId}/use`, "", signal)).json();
}

/** End the session key before its time. */
export async function revokeSession(session: Session): Promise<void> {
  await signedFetch(session, "POST", "/v1/sessions/revoke", JSON.stringify({ session: session.header }));
  await dropSession();
}

/** Remarks on the scheduling of a job, oldest first. */
export async function notices(jobId: bigint | number): Promise<{ kind: string; text: string; author: string; at: number }[]> {
  const answer = await fetch(`v1/jobs/${jobId}/notices`);
  return (await checked(answer).then((one) => one.json())).notices as never;
}

/** Chain and contract for which requests are signed. */
export async function domainOf(): Promise<[number, Hex]> {
  const grid = await gridInfo();
  return [grid.chain_id, grid.meta_scheduler];
}
