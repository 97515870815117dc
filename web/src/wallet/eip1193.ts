/** Wallets as the page sees them (EIP-1193), and their refusals as sentences. */
import type { Hex } from "viem";

export interface Eip1193 {
  request(call: { method: string; params?: unknown[] }): Promise<unknown>;
  on?(event: string, listener: (value: never) => void): void;
  removeListener?(event: string, listener: (value: never) => void): void;
}

export interface Transaction {
  to: Hex;
  data: Hex;
}

/** Why a wallet did not sign or send. `refused` means that its user or its rules said no: nothing was signed or sent. */
export class WalletFault extends Error {
  constructor(
    readonly sentence: string,
    readonly refused = false,
    readonly data: unknown = undefined,
  ) {
    super(sentence);
  }
}

const REFUSED = 4001;
const NOT_ALLOWED = 4100;
const UNSUPPORTED = [4200, -32601, -32004];

interface RawFault {
  code?: number;
  message?: string;
  data?: unknown;
}

/** Ask the wallet. Raises WalletFault. */
export async function ask(wallet: Eip1193, method: string, params: unknown[] = []): Promise<unknown> {
  try {
    return await wallet.request({ method, params });
  } catch (error) {
    if (error instanceof WalletFault) throw error;
    const raw = (error ?? {}) as RawFault;
    if (raw.code === REFUSED) throw new WalletFault("You refused this in your wallet.", true);
    throw new WalletFault(`The wallet answered: ${raw.message ?? "it failed without a reason"}`, raw.code === NOT_ALLOWED, raw.data);
  }
}

/** The wallet's own read of the chain; undefined if the wallet does not read. */
export async function readByWallet(wallet: Eip1193, method: string, params: unknown[]): Promise<unknown> {
  try {
    return await wallet.request({ method, params });
  } catch (error) {
    const raw = (error ?? {}) as RawFault;
    if (raw.code !== undefined && UNSUPPORTED.includes(raw.code)) return undefined;
    throw new WalletFault(`The wallet's node answered: ${raw.message ?? "nothing"}`, false, raw.data);
  }
}
