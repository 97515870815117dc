/** The text of the editor. It lives in the tab; on request it is kept on the device, without secrets. */
import { WalletFault } from "../wallet/eip1193";
import { keep } from "../wallet/local";
import { emptySecrets } from "./secrets";

const DRAFT = "draft";

/** What was typed beside the file. Amounts are decimal numbers of wei. */
export interface DraftTerms {
  uses: string;
  affinities: string;
  time: string;
  depositWei: string;
  minTime: string;
  maxPrice: string;
  giveUpAfter: string;
  prefer: number;
  after: string;
  afterAny: boolean;
  tags: string;
  note: string;
  delegate: boolean;
}

/** Labels of the address of the New job page, such as a link of the market gives; null if it names none. */
export interface LinkedLabels {
  uses: string | null;
  affinities: string | null;
}

export interface Draft {
  text: string;
  name: string;
  terms?: DraftTerms;
}

function read(store: Storage): Draft | null {
  try {
    return JSON.parse(store.getItem(DRAFT) ?? "null") as Draft | null;
  } catch {
    return null;
  }
}

/** The draft of this tab, else the one on this device. */
export function readDraft(): Draft | null {
  return read(sessionStorage) ?? read(localStorage);
}

export function keepInTab(draft: Draft): void {
  try {
    sessionStorage.setItem(DRAFT, JSON.stringify(draft));
  } catch {
    // the store is full: the text stays in the page
  }
}

/** Keep the draft on the device, with empty secret fields. Returns a sentence. */
export async function keepOnDevice(draft: Draft): Promise<string> {
  try {
    await keep(DRAFT, JSON.stringify({ ...draft, text: emptySecrets(draft.text) }));
    return "Kept on this device, with empty secret fields.";
  } catch (error) {
    return error instanceof WalletFault ? error.sentence : "This browser refuses to keep it.";
  }
}
