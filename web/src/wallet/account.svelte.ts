/** The account that the page acts for. A choice of wallet is kept per tab and is not connected without the user. */
import { getAddress, numberToHex, type Hex } from "viem";
import { gridInfo, gridInfoInTime } from "../chain/grid";
import { ask, type Eip1193, WalletFault } from "./eip1193";
import { hasLocalSigner, localSigner } from "./local";
import { dropSession } from "./session";
import { type Announced, findWallets, wallets } from "./wallets.svelte";

interface Account {
  address: Hex | null;
  kind: "local" | "injected" | null;
  wallet: string;
  chainOk: boolean;
  /** Whether it is known by now if there is an account. */
  ready: boolean;
  trouble: string;
}

export const account: Account = $state({ address: null, kind: null, wallet: "", chainOk: true, ready: false, trouble: "" });
const CHOSEN = "wallet";
let current: Eip1193 | null = null;

/** The connected wallet. Raises WalletFault if there is none. */
export function provider(): Eip1193 {
  if (!current || !account.address) throw new WalletFault("No wallet is connected.");
  return current;
}

/** Find out who the page acts for, when it is opened. `refused` says why the address gave no session. */
export async function startAccount(refused: string): Promise<void> {
  findWallets();
  try {
    if (await hasLocalSigner()) {
      const [address] = (await ask(localSigner, "eth_accounts")) as Hex[];
      await use(localSigner, "local", "dps web", address);
    }
    account.trouble = refused;
  } catch (error) {
    account.trouble = error instanceof WalletFault ? error.sentence : "The account cannot be read.";
  }
  const chosen = sessionStorage.getItem(CHOSEN);
  const wallet = wallets.find((one) => one.id === chosen);
  if (!account.address && wallet) await reconnect(wallet);
  account.ready = true;
}

async function reconnect(wallet: Announced): Promise<void> {
  const addresses = (await wallet.provider.request({ method: "eth_accounts" }).catch(() => [])) as Hex[];
  await use(wallet.provider, "injected", wallet.name, addresses[0]);
}

/** Connect a wallet, after a click. It asks its user. */
export async function connect(wallet: Announced): Promise<void> {
  const addresses = (await ask(wallet.provider, "eth_requestAccounts")) as Hex[];
  sessionStorage.setItem(CHOSEN, wallet.id);
  await use(wallet.provider, "injected", wallet.name, addresses[0]);
}

export async function disconnect(): Promise<void> {
  await dropSession();
  sessionStorage.removeItem(CHOSEN);
  current?.removeListener?.("accountsChanged", accountsChanged);
  current?.removeListener?.("chainChanged", chainChanged);
  current = null;
  account.address = account.kind = null;
}

/** Ask the wallet to switch to the grid's chain, or to add it where a public node is known. */
export async function switchChain(): Promise<void> {
  const grid = await gridInfo();
  const chainId = numberToHex(grid.chain_id);
  try {
    await ask(provider(), "wallet_switchEthereumChain", [{ chainId }]);
  } catch (error) {
    if (!grid.node_url || (error as WalletFault).refused) throw error;
    const nativeCurrency = { name: "Gas", symbol: "GAS", decimals: 18 };
    const chain = { chainId, chainName: `deepgrid ${grid.chain_id}`, rpcUrls: [grid.node_url], nativeCurrency };
    await ask(provider(), "wallet_addEthereumChain", [chain]);
  }
  await chainChanged();
}

async function use(wallet: Eip1193, kind: "local" | "injected", name: string, address: Hex | undefined): Promise<void> {
  if (!address) return;
  current = wallet;
  Object.assign(account, { address: getAddress(address), kind, wallet: name, trouble: "" });
  wallet.on?.("accountsChanged", accountsChanged);
  wallet.on?.("chainChanged", chainChanged);
  await chainChanged();
}

async function accountsChanged(addresses: Hex[]): Promise<void> {
  const next = addresses[0] ? getAddress(addresses[0]) : null;
  if (next === account.address) return;
  await dropSession();
  account.address = next;
}

async function chainChanged(): Promise<void> {
  if (!current) return;
  const [grid, chainId] = await Promise.all([gridInfoInTime(), current.request({ method: "eth_chainId" }).catch(() => null)]);
  const isOk = typeof chainId === "string" && Number.parseInt(chainId, 16) === grid.chain_id;
  if (!isOk && account.chainOk) await dropSession();
  account.chainOk = isOk;
}
