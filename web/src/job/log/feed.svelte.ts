/** Reads a job's log with the session key: its end first, then what follows, and earlier parts when they are wanted. */
import { signedFetch, ServiceFault } from "../../wallet/services";
import type { Session } from "../../wallet/session";
import { LogStore } from "./store";

const TAIL = 64 * 1024;
const BLOCK = 1024 * 1024;
const BLOCKS_AT_ONCE = 4;
const WAIT_S = 25;
const LONGEST_PAUSE_MS = 15_000;

/** The output of one claim. */
export interface Section {
  claimedAt: number;
  store: LogStore;
  leftOut: number;
  pending: number;
  final: boolean;
  closed: boolean;
  /** Number of lines and the time at which they were there, in milliseconds; 0 for an unknown time. */
  arrivals: [number, number][];
}

/** When the services stored the bytes of an answer: milliseconds, and their number. */
type Times = [number, number][];

interface Piece {
  data: Uint8Array;
  offset: number;
  final: boolean;
  closed: boolean;
  claimedAt: number;
  leftOut: number;
  pending: number;
  times: Times;
}

export class LogFeed {
  sections: Section[] = $state.raw([]);
  /** Grows with every change of the bytes, as stores are not reactive. */
  version = $state(0);
  trouble = $state("");
  ready = $state(false);
  /** Lines that were added before the present ones by the last change. */
  grownAbove = 0;
  private ended = new AbortController();
  private earlier: Promise<void> | null = null;

  constructor(
    private readonly session: Session,
    readonly jobId: number,
  ) {}

  get current(): Section | undefined {
    return this.sections.at(-1);
  }

  close(): void {
    this.ended.abort();
  }

  /** Follow the log until it is final or `close` is called. */
  async run(): Promise<void> {
    let pause = 1000;
    while (!this.ended.signal.aborted) {
      try {
        const present = this.current;
        const piece = await this.read(present ? present.store.end : -TAIL, present ? WAIT_S : 0);
        this.trouble = "";
        pause = 1000;
        this.take(piece);
        if (piece.final) return;
      } catch (error) {
        if (this.ended.signal.aborted) return;
        this.trouble = error instanceof ServiceFault ? error.sentence : "The grid's services do not answer.";
        this.ready = true;
        if (error instanceof ServiceFault && !error.transient) return;
        await new Promise((resolve) => setTimeout(resolve, pause));
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
      }
    }
  }

  /** Read one block before the first bytes that are here. */
  loadEarlier(): Promise<void> {
    return (this.earlier ??= this.loadBlocks(1).finally(() => (this.earlier = null)));
  }

  /** Read all that is stored. Raises ServiceFault. */
  async loadAll(): Promise<void> {
    await this.earlier?.catch(() => undefined);
    while (this.current && !this.current.store.whole) {
      const { store } = this.current;
      const before = store.from;
      await (this.earlier ??= this.loadBlocks(BLOCKS_AT_ONCE).finally(() => (this.earlier = null)));
      if (this.current.store === store && store.from === before) {
        throw new ServiceFault("The grid's services no longer have the start of the log.", 404, false);
      }
    }
  }

  private async loadBlocks(count: number): Promise<void> {
    const section = this.current;
    if (!section) return;
    const { from } = section.store;
    const last = Math.ceil(from / BLOCK) - 1; // blocks begin at multiples of their size, as most stored chunks do
    const starts = Array.from({ length: Math.min(count, last + 1) }, (_, at) => (last - at) * BLOCK);
    for (const parts of await Promise.all(starts.map((at) => this.range(section, at, Math.min(from, at + BLOCK))))) {
      if (!parts) break;
      for (const [part, time] of parts.reverse()) {
        const grown = section.store.prepend(section.store.from - part.length, part);
        this.grownAbove += grown;
        for (const arrival of section.arrivals) arrival[0] += grown;
        section.arrivals.unshift([grown, time]);
      }
    }
    this.version += 1;
  }

  /** The bytes between two offsets, or null if the services no longer have them. */
  private async range(section: Section, first: number, end: number): Promise<[Uint8Array, number][] | null> {
    const parts: [Uint8Array, number][] = [];
    for (let at = first; at < end; ) {
      const piece = await this.read(at, 0);
      if (piece.claimedAt !== section.claimedAt || piece.data.length === 0) return null;
      parts.push(...timed(piece.data.subarray(0, end - at), piece.times));
      at += piece.data.length;
    }
    return parts;
  }

  private take(piece: Piece): void {
    let section = this.current;
    if (!section || (section.claimedAt !== piece.claimedAt && (piece.claimedAt > 0 || piece.data.length > 0))) {
      const isFirst = !section;
      section = { claimedAt: piece.claimedAt, store: new LogStore(), leftOut: 0, pending: 0, final: false, closed: false, arrivals: [] };
      this.sections = [...this.sections, section];
      if (!isFirst && piece.offset > 0) return; // read the new claim from its start
    }
    const { leftOut, pending, final, closed } = piece;
    Object.assign(section, { leftOut, pending, final, closed });
    let at = piece.offset;
    for (const [part, time] of timed(piece.data, piece.times, this.ready ? Date.now() : 0)) {
      section.store.append(at, part);
      section.arrivals.push([section.store.lines, time]);
      at += part.length;
    }
    this.ready = true;
    this.version += 1;
  }

  private async read(offset: number, waitS: number): Promise<Piece> {
    const path = `/v1/jobs/${this.jobId}/log?offset=${offset}&wait=${waitS}`;
    const answer = await signedFetch(this.session, "GET", path, "", this.ended.signal);
    const number = (name: string) => Number(answer.headers.get(`X-${name}`) ?? 0);
    const is = (name: string) => answer.headers.get(`X-${name}`) === "true";
    return {
      data: new Uint8Array(await answer.arrayBuffer()), offset: number("Offset"), final: is("Final"), closed: is("Closed"),
      claimedAt: number("Claimed-At"), leftOut: number("Left-Out"), pending: number("Pending"),
      times: timesOf(answer.headers.get("X-Times") ?? ""),
    };
  }
}

function timesOf(header: string): Times {
  const pairs = header.split(",").filter(Boolean).map((part) => part.split(":").map(Number));
  return pairs.map(([seconds = 0, bytes = 0]) => [seconds * 1000, bytes]);
}

/** The bytes in parts, each with the time at which it was stored, or the time `now` if the services do not say so. */
function timed(data: Uint8Array, times: Times, now = 0): [Uint8Array, number][] {
  const parts: [Uint8Array, number][] = [];
  let at = 0;
  for (const [time, bytes] of times) {
    if (at < data.length) parts.push([data.subarray(at, at + bytes), time]);
    at += bytes;
  }
  if (at < data.length) parts.push([data.subarray(at), now]);
  return parts;
}

/** What a log lacks, as a sentence; empty if it is whole or may still grow. */
export function lackWords(section: Section): string {
  const lacks = section.leftOut ? [`${section.leftOut.toLocaleString("en")} bytes are left out by the limit of the service`] : [];
  if (section.final && !section.closed) {
    lacks.push(`its cluster did not deliver ${section.pending ? `the last ${section.pending.toLocaleString("en")} bytes` : "its end"}`);
  }
  return lacks.length ? `The log is not whole: ${lacks.join(", and ")}.` : "";
}
