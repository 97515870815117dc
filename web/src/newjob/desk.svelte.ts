/** What the New job page knows: the file, its faults, the quote, the deposit; and whether it may be submitted. */
import { readClusters, type Cluster } from "../chain/clusters";
import { gridInfo, type GridInfo } from "../chain/grid";
import { readTerms, type Terms } from "../chain/ledger";
import { RelayFault } from "../chain/relay";
import { type Condition, parseAffinity, parseUse } from "../pure/labels";
import { CREDIT } from "../pure/money";
import { needsOf } from "../pure/needs";
import { quote, type QuoteRow } from "../pure/quote";
import type { JobOrder, Quoted } from "../wallet/order";
import { check, type Checked, type Fault, shapeOf, syntaxFaults } from "./check";
import { example, FIRST } from "./gallery";
import { keepInTab, readDraft } from "./draft";
import { usesModules } from "./secrets";

const PAUSE_MS = 600;
export const QUOTE_AGE_S = 60;
const LARGEST_FILE = 256 * 1024;

export interface Market {
  clusters: Cluster[];
  terms: Terms;
  info: GridInfo;
}

/** What quotes rest on, as of one block. */
export async function readMarket(block: number): Promise<Market> {
  const [clusters, terms, info] = await Promise.all([readClusters(block), readTerms(block), gridInfo()]);
  return { clusters, terms, info };
}

export class Desk {
  text = $state("");
  name = $state("");
  uses = $state("");
  affinities = $state("");
  depositWei = $state(100n * CREDIT);
  delegate = $state(false);
  permit = $state(true);
  checked = $state.raw<Checked | null>(null);
  checking = $state(false);
  trouble = $state("");
  info = $state.raw<GridInfo | null>(null);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running: AbortController | undefined;

  readonly syntax = $derived.by(() => syntaxFaults(this.text));
  readonly isCurrent = $derived(this.checked?.file === this.text);
  readonly shape = $derived.by(() => (this.isCurrent && this.checked?.shape) || shapeOf(this.text));
  readonly labels = $derived.by(() => {
    const [uses, affinities] = [parts(this.uses), parts(this.affinities)];
    const faults = [...uses.filter((one) => !parseUse(one)), ...affinities.filter((one) => !parseAffinity(one))];
    return { uses: uses.flatMap((one) => parseUse(one) ?? []), affinities: affinities.flatMap((one) => parseAffinity(one) ?? []), faults };
  });
  /** What follows from the checked file. Labels that the user names are the user's choice. */
  readonly needs = $derived.by(() => {
    const named = [...this.labels.uses, ...this.labels.affinities].map((one) => one.key);
    const definition = (this.isCurrent && this.checked?.definition) || "";
    return definition ? needsOf(definition).filter((one) => !named.includes(one.key)) : [];
  });

  constructor() {
    const draft = readDraft();
    const first = example(FIRST);
    this.text = draft?.text ?? first?.text ?? "";
    this.name = draft?.name ?? FIRST;
    void gridInfo().then((info) => {
      this.info = info;
      if (info.local) this.#soon();
    }, () => undefined);
  }

  /** Faults to show: faults of YAML syntax at once, else faults of the newest check. */
  get faults(): Fault[] {
    if (this.syntax.length) return this.syntax;
    if (this.info && !this.info.modules && usesModules(this.text)) {
      return [{ line: 1, column: 1, text: "Modules (use) are resolved on your machine only: run `dps web` there, or `dps submit`." }];
    }
    return this.isCurrent ? (this.checked?.faults ?? []) : [];
  }

  edit(text: string, name = this.name): void {
    if (text === this.text && name === this.name) return;
    this.text = text;
    this.name = name;
    keepInTab({ text, name });
    if (this.info?.local) this.#soon();
  }

  /** Check the file now. Returns whether it has no fault. */
  async check(): Promise<boolean> {
    clearTimeout(this.#timer);
    this.#running?.abort();
    const run = (this.#running = new AbortController());
    this.trouble = "";
    if (this.text.length > LARGEST_FILE) {
      this.trouble = "The file is larger than 256 KiB.";
      return false;
    }
    this.checking = true;
    try {
      this.checked = await check(this.text, !this.info?.local, run.signal);
    } catch (error) {
      if (!run.signal.aborted) this.trouble = (error as Error).message;
      return false;
    } finally {
      if (this.#running === run) this.checking = false;
    }
    return this.isCurrent && this.checked.faults.length === 0 && this.checked.definition !== "";
  }

  /** The clusters for this job, by price. */
  offers(market: Market | undefined): QuoteRow[] {
    if (!market || !this.shape || this.labels.faults.length) return [];
    const uses = this.labels.uses.map((use): Condition => ({ ...use, op: "==" }));
    return quote(this.shape, [...uses, ...this.labels.affinities, ...this.needs], this.depositWei, market.clusters);
  }

  /** The order, as the user sees it now. Call it after a check without faults. */
  order(market: Market): JobOrder {
    const fitting = (one: Market): Quoted[] =>
      this.offers(one)
        .filter((offer) => !offer.obstacle)
        .map(({ cluster, rateWei }) => ({ address: cluster.address, name: cluster.name || cluster.address, rateWei }));
    return {
      definition: this.checked!.definition,
      resources: this.checked!.shape!,
      name: this.name.trim() || "job",
      lockedWei: this.depositWei,
      uses: [...this.labels.uses, ...this.needs.filter((one) => one.op === "==").map(({ key, value }) => ({ key, value }))],
      affinities: [...this.labels.affinities, ...this.needs.filter((one) => one.op !== "==")],
      delegate: this.delegate,
      quoted: fitting(market),
      quoteNow: async () => fitting(await readMarketNow()),
      permit: this.permit,
    };
  }

  #soon(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.check(), PAUSE_MS);
  }
}

const parts = (text: string) => text.split(/[\s,]+/).filter(Boolean);

async function readMarketNow(): Promise<Market> {
  const { refresh } = await import("../chain/head");
  const head = await refresh();
  if (head.trouble) throw new RelayFault(head.trouble, true);
  return readMarket(head.number);
}
