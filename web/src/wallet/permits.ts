/** Permits: signed permissions for the grid's contract to lock exactly some credits, for ten minutes. */
import { parseSignature, type Hex } from "viem";
import { view } from "../chain/contracts";
import { gridInfo } from "../chain/grid";
import { account, provider } from "./account.svelte";
import { ask } from "./eip1193";
import { DOMAIN_TYPE } from "./session";

export interface Permit {
  value: bigint;
  deadline: bigint;
  v: number;
  r: Hex;
  s: Hex;
}

export const PERMIT_LASTS_S = 600;

const TYPES = {
  EIP712Domain: DOMAIN_TYPE,
  Permit: [
    { name: "owner", type: "address" },
    { name: "spender", type: "address" },
    { name: "value", type: "uint256" },
    { name: "nonce", type: "uint256" },
    { name: "deadline", type: "uint256" },
  ],
};

/** Ask the wallet for a permit of exactly `valueWei`. `now` is the chain's time in unix seconds. */
export async function signPermit(valueWei: bigint, now: number): Promise<Permit> {
  const grid = await gridInfo();
  const owner = account.address!;
  const [nonce, fields] = await Promise.all([
    view<bigint>("Credit", "nonces", [owner]),
    view<[Hex, string, string, bigint, Hex]>("Credit", "eip712Domain", []),
  ]);
  const deadline = BigInt(Math.max(now, Math.floor(Date.now() / 1000)) + PERMIT_LASTS_S);
  const domain = { name: fields[1], version: fields[2], chainId: grid.chain_id, verifyingContract: grid.credit };
  const message = {
    owner, spender: grid.meta_scheduler, value: String(valueWei), nonce: String(nonce), deadline: String(deadline),
  };
  const typed = JSON.stringify({ domain, types: TYPES, primaryType: "Permit", message });
  const signature = parseSignature((await ask(provider(), "eth_signTypedData_v4", [owner, typed])) as Hex);
  const v = Number(signature.v ?? BigInt(signature.yParity + 27));
  return { value: valueWei, deadline, v, r: signature.r, s: signature.s };
}
