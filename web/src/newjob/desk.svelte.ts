/** What the New job page knows: the file, its faults, the quote, the deposit; and whether it may be submitted. */
import { readClusters, type Cluster } from "../chain/clusters";
import { gridInfo, type GridInfo } from "../chain/grid";
import { readTerms, type Terms } from "../chain/ledger";
import { RelayFault } from "../chain/relay";
import { type Condition, parseAffinity, parseUse } from "../pure/labels";
import { CREDIT, exact, parse } from "../pure/money";
import { isAdded, needsOf } from "../pure/needs";
import { dearestOf, quote, type QuoteRow } from "../pure/quote";
import { tagLines, tagsOf } from "../pure/tags";
import { minutesOf, secondsOf } from "../pure/times";
import type { JobFile } from "../job/files";
import type { Job } from "../job/value";
import { waitsAgain } from "../job/words";
import type { JobOrder, Quoted, Wishes } from "../wallet/order";
import { check, type Checked, type Fault, shapeOf, syntaxFaults } from "./check";
import { example, FIRST } from "./gallery";
import { type Draft, type DraftTerms, type LinkedLabels, readDraft } from "./draft";
import { usesModules } from "./secrets";

const PAUSE_MS = 600;
const LEAST_WAIT_S = 600; // the contract's 5 minutes, and time for the request to be mined
const MOST_WAIT_S = 10 * 365 * 86_400;
const JOB_NUMBER = /^[1-9][0-9]{0,8}$/;
const ANY = "any"; // as highest price: no ceiling
const MOST_WEI = 2n ** 96n - 2n;
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
  /** The time that the deposit is for, as typed; empty for an exact deposit. */
  time = $state("1h");
  minTime = $state("");
  maxPrice = $state("");
  giveUpAfter = $state("");
  prefer = $state(0);
  /** Number of the job that must be over first, as typed. */
  after = $state("");
  afterAny = $state(false);
  /** One per line. */
  tags = $state("");
  note = $state("");
  delegate = $state(false);
  permit = $state(true);
  checked = $state.raw<Checked | null>(null);
  checking = $state(false);
  trouble = $state("");
  info = $state.raw<GridInfo | null>(null);
  /** The minimum time of the job that is repeated, as filled in. */
  #earlierMinTime = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #latest: Promise<boolean> = Promise.resolve(false);
  #running: AbortController | undefined;

  readonly syntax = $derived.by(() => syntaxFaults(this.text));
  readonly isCurrent = $derived(this.checked?.file === this.text);
  readonly shape = $derived.by(() => (this.isCurrent && this.checked?.shape) || shapeOf(this.text));
  readonly labels = $derived.by(() => {
    const [uses, affinities] = [parts(this.uses), parts(this.affinities)];
    const faults = [...uses.filter((one) => !parseUse(one)), ...affinities.filter((one) => !parseAffinity(one))];
    return { uses: uses.flatMap((one) => parseUse(one) ?? []), affinities: affinities.flatMap((one) => parseAffinity(one) ?? []), faults };
  });
  /** The wishes as typed, and a sentence for each that is not written as it should be. */
  readonly wishes = $derived.by(() => {
    const [minutes, price, wait] = [minutesOf(this.minTime), parse(this.maxPrice), secondsOf(this.giveUpAfter)];
    const isAny = this.maxPrice.trim() === ANY;
    const faults = [
      this.minTime && minutes === null ? "The least time is written like 2h or 90m." : "",
      this.maxPrice && !isAny && (!price || price > MOST_WEI) ? "The highest price is credits per minute, or any." : "",
      this.giveUpAfter && (wait === null || wait < LEAST_WAIT_S || wait > MOST_WAIT_S) ? "A job is given up after 10 minutes to 10 years, such as 1d." : "",
      this.after && !JOB_NUMBER.test(this.after.trim()) ? "The earlier job is its number, such as 12." : "",
      tagsOf(this.tags) === null ? "Tags are written one per line, like project=wing." : "",
    ].filter(Boolean);
    const atLeast = minutes ?? (this.time ? minutesOf(this.time) : null) ?? 1;
    const afterJob = JOB_NUMBER.test(this.after.trim()) ? Number(this.after) : 0;
    const value: Wishes = {
      minMinutes: atLeast, maxRateWei: isAny ? 0n : price, giveUpAfterS: wait ?? 0, prefer: this.prefer,
      afterJob, afterAny: this.afterAny,
    };
    return { value, faults };
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
    if (draft?.terms) this.#recall(draft.terms);
    void gridInfo().then((info) => {
      this.info = info;
      if (info.local) this.#soon();
    }, () => undefined);
  }

  /** Faults to show: faults of YAML syntax at once, else faults of the newest check. */
  get faults(): Fault[] {
    const checked = this.isCurrent ? (this.checked?.faults ?? []) : [];
    if (this.syntax.length) return checked.length ? checked : this.syntax; // the validator's sentences are better
    if (this.info && !this.info.modules && usesModules(this.text)) {
      return [{ line: 1, column: 1, text: "Modules (use) are resolved on your machine only: run `dps web` there, or `dps submit`." }];
    }
    return checked;
  }

  edit(text: string, name = this.name): void {
    if (text === this.text && name === this.name) return;
    if (name === FIRST && this.name === FIRST && isAnother(text)) name = nameIn(text); // a file that was pasted
    this.text = text;
    this.name = name;
    if (this.info?.local) this.#soon();
  }

  /** Take over the labels of a link. */
  label({ uses, affinities }: LinkedLabels): void {
    this.uses = uses ?? this.uses;
    this.affinities = affinities ?? this.affinities;
  }

  /** What is typed now, so that it outlives Back, Forward and a reload. Labels of the link stay with the link. */
  draft(linked: LinkedLabels): Draft {
    const { text, name, time, minTime, maxPrice, giveUpAfter, prefer, after, afterAny, tags, note, delegate } = this;
    const uses = this.uses === linked.uses ? "" : this.uses;
    const affinities = this.affinities === linked.affinities ? "" : this.affinities;
    const terms = { uses, affinities, time, depositWei: String(this.depositWei), minTime, maxPrice, giveUpAfter, prefer, after, afterAny, tags, note, delegate };
    return { text, name, terms };
  }

  #recall({ depositWei, ...terms }: DraftTerms): void {
    Object.assign(this, terms);
    if (/^[0-9]{1,30}$/.test(depositWei)) this.depositWei = BigInt(depositWei);
  }

  /** Take over the file and the terms of an earlier job. */
  repeat(job: Job, file: JobFile): void {
    this.edit(file.text);
    this.name = job.name || "job"; // also that of the first example
    this.uses = job.uses.filter((one) => !isAdded(one)).map(({ key, value }) => `${key}=${value}`).join(" ");
    this.affinities = job.affinity.filter((one) => !isAdded(one)).map(({ key, op, value }) => `${key}${op === "in" ? ":in:" : op}${value}`).join(" ");
    this.time = "";
    this.depositWei = job.lockedWei;
    this.minTime = this.#earlierMinTime = job.minMinutes > 1 ? `${job.minMinutes}m` : "";
    this.maxPrice = job.maxRateWei === 0n ? ANY : job.maxRateWei ? exact(job.maxRateWei) : "";
    this.giveUpAfter = job.giveUpAt > job.submittedAt ? `${job.giveUpAt - job.submittedAt}s` : "";
    this.prefer = job.prefer ?? 0; // the device may keep jobs of an earlier version
    this.delegate = job.delegateSpending;
    this.after = waitsAgain(job) ? String(job.afterJob) : "";
    this.afterAny = waitsAgain(job) && job.afterAny;
    this.tags = tagLines(file.tags).join("\n");
    this.note = file.note;
  }

  /** Take the time that the deposit is for, as typed; empty for an exact deposit. It replaces the time of an earlier job. */
  setTime(time: string): void {
    this.time = time;
    if (time && this.minTime === this.#earlierMinTime) this.minTime = "";
  }

  /** Check the file now. Returns whether it has no fault. Of checks that overlap, the last one's answer counts for all. */
  check(): Promise<boolean> {
    return (this.#latest = this.#check());
  }

  async #check(): Promise<boolean> {
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
      if (this.#running !== run) return this.#latest;
      if (!run.signal.aborted) this.trouble = (error as Error).message;
      return false;
    } finally {
      if (this.#running === run) this.checking = false;
    }
    return this.isCurrent && this.checked.faults.length === 0 && this.checked.definition !== "";
  }

  /** The clusters for this job, by price. */
  offers(market: Market | undefined, lockedWei = this.depositWei): QuoteRow[] {
    if (!market || !this.shape || this.labels.faults.length) return [];
    const uses = this.labels.uses.map((use): Condition => ({ ...use, op: "==" }));
    const rows = quote(this.shape, [...uses, ...this.labels.affinities, ...this.needs], lockedWei, market.clusters);
    const { maxRateWei, minMinutes } = this.wishes.value;
    return rows.map((row) => {
      if (row.obstacle) return row;
      if (maxRateWei && row.rateWei > maxRateWei) return { ...row, obstacle: `${exact(row.rateWei)} credits per minute are above the highest price` };
      if (row.minutes < BigInt(minMinutes)) {
        return { ...row, obstacle: `the deposit lasts for ${row.minutes} minutes there, and the minimum time is ${minMinutes}` };
      }
      return row;
    });
  }

  /** Let the deposit follow from the time: what the dearest cluster that can run the job charges for it. */
  follow(market: Market | undefined, leastWei: bigint): void {
    const minutes = this.time ? minutesOf(this.time) : null;
    if (!market || minutes === null) return;
    const dearest = dearestOf(this.offers(market, MOST_WEI)); // no cluster is too dear for the quote
    if (dearest === null) return;
    const wei = dearest * BigInt(minutes);
    this.depositWei = wei > leastWei ? wei : leastWei;
  }

  /** The order, as the user sees it now. Call it after a check without faults. */
  order(market: Market): JobOrder {
    const fitting = (one: Market, lockedWei?: bigint): Quoted[] =>
      this.offers(one, lockedWei)
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
      quoteNow: async () => fitting(await readMarketNow(), MOST_WEI), // a risen price is told, whatever the deposit buys
      permit: this.permit,
      wishes: this.wishes.value,
      mark: this.tags.trim() || this.note.trim() ? { tags: tagsOf(this.tags) ?? {}, note: this.note.trim(), sweep: null } : null,
    };
  }

  #soon(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.check(), PAUSE_MS);
  }
}

/** Whether a text is no edit of the first example. */
const isAnother = (text: string) => text.trim() !== "" && !text.startsWith((example(FIRST)?.text ?? "").slice(0, 40));

/** The name of the first step of a file, else `job`. */
const nameIn = (text: string) => (/^\s*-?\s*name:\s*["']?([\w .-]{1,32})/m.exec(text)?.[1] ?? "job").trim();

const parts = (text: string) => text.split(/[\s,]+/).filter(Boolean);

async function readMarketNow(): Promise<Market> {
  const { refresh } = await import("../chain/head");
  const head = await refresh();
  if (head.trouble) throw new RelayFault(head.trouble, true);
  return readMarket(head.number);
}
