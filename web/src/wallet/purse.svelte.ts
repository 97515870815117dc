/** Credits, allowance and gas of the account, as of the newest block. What is unknown is null. */
import { view } from "../chain/contracts";
import { gridInfo } from "../chain/grid";
import { onBlock } from "../chain/head";
import { call, RelayFault } from "../chain/relay";
import { account } from "./account.svelte";

interface Purse {
  of: string | null;
  balanceWei: bigint | null;
  allowanceWei: bigint | null;
  gasWei: bigint | null;
  block: number;
  trouble: string;
}

export const purse: Purse = $state({ of: null, balanceWei: null, allowanceWei: null, gasWei: null, block: 0, trouble: "" });

const RETRY_MS = 3_000;
let timer: ReturnType<typeof setTimeout> | undefined;

async function read(block: number): Promise<void> {
  const address = account.address;
  if (purse.of !== address) Object.assign(purse, { of: address, balanceWei: null, allowanceWei: null, gasWei: null });
  if (!address) return;
  try {
    const grid = await gridInfo();
    const [balanceWei, allowanceWei, gas] = await Promise.all([
      view<bigint>("Credit", "balanceOf", [address], block),
      view<bigint>("Credit", "allowance", [address, grid.meta_scheduler], block),
      call("eth_getBalance", [address, `0x${block.toString(16)}`]),
    ]);
    if (account.address === address) {
      Object.assign(purse, { balanceWei, allowanceWei, gasWei: BigInt(gas as string), block, trouble: "" });
    }
  } catch (error) {
    purse.trouble = error instanceof RelayFault ? error.sentence : "The balance cannot be read.";
    clearTimeout(timer);
    timer = setTimeout(() => void read(Math.max(block, newest)), RETRY_MS);
  }
}

let newest = 0;

/** Keep the purse current while the page is open. */
export function watchPurse(): () => void {
  const stop = onBlock((head) => {
    newest = head.number;
    void read(newest);
  });
  const cleanup = $effect.root(() => {
    $effect(() => {
      if (account.address !== purse.of && newest) void read(newest);
    });
  });
  return () => {
    stop();
    cleanup();
  };
}
