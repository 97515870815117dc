/**
 * The session key: a P-256 key that cannot be exported. The wallet signs it once in 12 hours, `dps web` once per page.
 * It stores definitions, reads the customer's logs and files, and shares files; it cannot spend.
 * `docs/reference/protocol.md` defines the format.
 */
import { bytesToHex, type Hex } from "viem";
import { gridInfo } from "../chain/grid";
import { ask, type Eip1193, WalletFault } from "./eip1193";
import { hasLocalSession } from "./local";

export interface Session {
  address: Hex;
  chainId: number;
  contract: Hex;
  notAfter: number;
  header: string;
  keys: CryptoKeyPair;
}

const LIFETIME_S = 12 * 3600;
const SPARE_S = 120;
const RIGHTS = "read,store";
let current: Session | null = null;

/** The type of a session as wallets show it. */
export const SESSION_TYPES = {
  Session: [
    { name: "publicKey", type: "bytes" },
    { name: "notAfter", type: "uint256" },
    { name: "rights", type: "string" },
    { name: "origin", type: "string" },
  ],
};

export const DOMAIN_TYPE = [
  { name: "name", type: "string" },
  { name: "version", type: "string" },
  { name: "chainId", type: "uint256" },
  { name: "verifyingContract", type: "address" },
];

/** Whether this browser can keep a session key here: HTTPS or loopback. */
export function canKeepKeys(): boolean {
  return isSecureContext && typeof crypto.subtle === "object";
}

/** The session of this account, if one is kept and has not ended. Nothing is prompted. */
export async function keptSession(address: Hex): Promise<Session | null> {
  const grid = await gridInfo();
  current ??= await stored();
  if (!current || current.address !== address || current.chainId !== grid.chain_id) return null;
  if (current.contract !== grid.meta_scheduler || current.notAfter < Date.now() / 1000 + SPARE_S) return null;
  return current;
}

/** The kept session, or a new one that the wallet is asked to sign. */
export async function openSession(wallet: Eip1193, address: Hex): Promise<Session> {
  const kept = await keptSession(address);
  if (kept) return kept;
  if (!canKeepKeys()) {
    throw new WalletFault("This page is read-only here: session keys need HTTPS or an address of this machine.");
  }
  const grid = await gridInfo();
  const keys = (await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign"])) as CryptoKeyPair;
  const publicKey = bytesToHex(new Uint8Array(await crypto.subtle.exportKey("raw", keys.publicKey)));
  const notAfter = Math.floor(Date.now() / 1000) + LIFETIME_S;
  const message = { publicKey, notAfter: String(notAfter), rights: RIGHTS, origin: location.origin };
  const domain = { name: "deepgrid", version: "1", chainId: grid.chain_id, verifyingContract: grid.meta_scheduler };
  const types = { EIP712Domain: DOMAIN_TYPE, ...SESSION_TYPES };
  const signature = (await ask(wallet, "eth_signTypedData_v4", [
    address,
    JSON.stringify({ domain, types, primaryType: "Session", message }),
  ])) as string;
  const header = [publicKey, notAfter, RIGHTS, location.origin, signature].join(";");
  current = { address, chainId: grid.chain_id, contract: grid.meta_scheduler, notAfter, header, keys };
  if (!hasLocalSession()) await store(current); // another account may listen at the address of `dps web` when it has ended
  return current;
}

export async function dropSession(): Promise<void> {
  current = null;
  await store(null);
}

// -- IndexedDB -----------------------------------------------------------------------------

function database(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const open = indexedDB.open("deepgrid-session", 1);
    open.onupgradeneeded = () => open.result.createObjectStore("session");
    open.onsuccess = () => resolve(open.result);
    open.onerror = () => reject(open.error);
  });
}

async function run<T>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest<T>): Promise<T | null> {
  try {
    const db = await database();
    return await new Promise((resolve, reject) => {
      const request = act(db.transaction("session", mode).objectStore("session"));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  } catch {
    return null; // private windows may keep nothing: the session then lasts as long as the page
  }
}

const stored = async () => ((await run("readonly", (one) => one.get("key"))) as Session | undefined) ?? null;
const store = (session: Session | null) => run("readwrite", (one) => (session ? one.put(session, "key") : one.delete("key")) as IDBRequest);
