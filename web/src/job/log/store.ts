/** The bytes of one claim's log in blocks, with an index of lines. Blocks are added at the end and before the start. */

const LF = 10;
const CR = 13;
/** A line without an end is cut here, so that one line cannot fill the page. */
export const LONGEST_LINE = 64 * 1024;

interface Block {
  offset: number;
  bytes: Uint8Array;
  /** Where lines begin, counted from the block's first byte. */
  starts: Uint32Array;
  /** Number of lines that begin before this block. */
  before: number;
}

export class LogStore {
  private blocks: Block[] = [];
  private total = 0;

  /** Offset of the first byte that is here. */
  get from(): number {
    return this.blocks[0]?.offset ?? 0;
  }
  /** Offset behind the last byte that is here. */
  get end(): number {
    const last = this.blocks.at(-1);
    return last ? last.offset + last.bytes.length : 0;
  }
  /** Number of lines that begin in the bytes that are here. */
  get lines(): number {
    return this.total;
  }
  get whole(): boolean {
    return this.from === 0;
  }

  append(offset: number, bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    if (this.blocks.length > 0 && offset !== this.end) throw new RangeError(`log continues at ${this.end}, not ${offset}`);
    const last = this.blocks.at(-1);
    const previous = last ? last.bytes[last.bytes.length - 1]! : offset === 0 ? LF : -1;
    const starts = startsOf(bytes, begins(previous, bytes[0]!) || !last);
    this.blocks.push({ offset, bytes, starts, before: this.total });
    this.total += starts.length;
  }

  /** Add bytes that end where the present ones begin. Returns by how much line numbers grow. */
  prepend(offset: number, bytes: Uint8Array): number {
    const first = this.blocks[0];
    if (!first) {
      this.append(offset, bytes);
      return this.total;
    }
    if (bytes.length === 0) return 0;
    if (offset + bytes.length !== first.offset) throw new RangeError("not the bytes before the log's start");
    if (!begins(bytes[bytes.length - 1]!, first.bytes[0]!)) first.starts = first.starts.slice(1);
    const old = this.total;
    this.blocks.unshift({ offset, bytes, starts: startsOf(bytes, true), before: 0 });
    this.count();
    return this.total - old;
  }

  /** The bytes of a line, without its end. */
  line(index: number): Uint8Array {
    const [start, end] = [this.startOf(index), index + 1 < this.total ? this.startOf(index + 1) : this.end];
    const bytes = this.slice(start, end);
    let length = bytes.length;
    if (length > 0 && bytes[length - 1] === LF) length -= 1;
    if (length > 0 && bytes[length - 1] === CR) length -= 1;
    return bytes.subarray(0, length);
  }

  /** Offset of a line's first byte. */
  startOf(index: number): number {
    let [low, high] = [0, this.blocks.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.blocks[middle]!.before <= index) low = middle;
      else high = middle - 1;
    }
    const block = this.blocks[low];
    const start = block?.starts[index - block.before];
    if (block === undefined || start === undefined) throw new RangeError(`there is no line ${index}`);
    return block.offset + start;
  }

  /** All blocks in order, for a download or a search. */
  pieces(): Uint8Array[] {
    return this.blocks.map((block) => block.bytes);
  }

  private slice(start: number, end: number): Uint8Array {
    const parts = this.blocks.filter((block) => block.offset < end && block.offset + block.bytes.length > start);
    const cut = parts.map((block) => block.bytes.subarray(Math.max(0, start - block.offset), end - block.offset));
    if (cut.length === 1) return cut[0]!;
    const joined = new Uint8Array(end - start);
    let at = 0;
    for (const part of cut) {
      joined.set(part, at);
      at += part.length;
    }
    return joined;
  }

  private count(): void {
    this.total = 0;
    for (const block of this.blocks) {
      block.before = this.total;
      this.total += block.starts.length;
    }
  }
}

/** Whether a line begins between two bytes. CR LF is one end, a single CR is one too. */
function begins(previous: number, next: number): boolean {
  return previous === LF || (previous === CR && next !== LF);
}

function startsOf(bytes: Uint8Array, first: boolean): Uint32Array {
  const starts: number[] = first ? [0] : [];
  let last = 0;
  for (let at = 1; at < bytes.length; at += 1) {
    const byte = bytes[at - 1]!;
    const ends = byte === LF || (byte === CR && bytes[at] !== LF);
    if (ends || (at - last >= LONGEST_LINE && (bytes[at]! & 0xc0) !== 0x80)) {
      starts.push(at);
      last = at;
    }
  }
  return Uint32Array.from(starts);
}
