/** Wallets of the browser that announce themselves (EIP-6963). Nothing is asked of a wallet before a click. */
import type { Eip1193 } from "./eip1193";

export interface Announced {
  id: string;
  name: string;
  /** A data URI of an image; empty if the wallet announced anything else. */
  icon: string;
  provider: Eip1193;
}

const MOST = 20;
export const wallets: Announced[] = $state([]);

interface Announcement {
  info?: { uuid?: unknown; name?: unknown; icon?: unknown };
  provider?: Eip1193;
}

function announced(event: Event): void {
  const { info, provider } = ((event as CustomEvent).detail ?? {}) as Announcement;
  if (typeof info?.uuid !== "string" || typeof info.name !== "string" || !provider) return;
  if (wallets.length >= MOST || wallets.some((one) => one.id === info.uuid)) return;
  const icon = typeof info.icon === "string" && /^data:image\/(png|jpeg|webp|svg\+xml)[;,]/.test(info.icon) ? info.icon : "";
  wallets.push({ id: info.uuid, name: info.name.slice(0, 60), icon, provider });
}

/** Listen for wallets, and ask those that are there to announce themselves. */
export function findWallets(): void {
  addEventListener("eip6963:announceProvider", announced);
  dispatchEvent(new Event("eip6963:requestProvider"));
}
