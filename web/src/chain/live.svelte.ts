/** What a page reads of the chain at each block. A failed read keeps what was known, and is tried again. */
import { head, onBlock, refresh } from "./head";
import { RelayFault } from "./relay";

const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 15_000;

export class Live<T> {
  /** What was read last; undefined before the first read. */
  value = $state.raw<T | undefined>();
  /** Why the newest read failed; null if it did not. */
  fault = $state<string | null>(null);
  /** When the value was read, in milliseconds. */
  readAt = $state(0);
  /** The block of the value. */
  block = $state(0);
  #read: (block: number) => Promise<T>;
  #newest = 0;
  #faults = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Call it while a component is made: the reads end with the component. */
  constructor(read: (block: number) => Promise<T>) {
    this.#read = read;
    $effect(() => {
      const stops = [
        onBlock(({ number }) => void this.#update(number)),
        head.subscribe(({ trouble }) => {
          if (trouble) this.fault = trouble;
        }),
      ];
      return () => {
        for (const stop of stops) stop();
        clearTimeout(this.#timer);
      };
    });
  }

  /** Read again now. */
  again = async (): Promise<void> => {
    const { number, trouble } = await refresh();
    if (!trouble) await this.#update(number);
  };

  async #update(block: number): Promise<void> {
    clearTimeout(this.#timer);
    this.#newest = block;
    try {
      const value = await this.#read(block);
      if (block < this.block) return;
      Object.assign(this, { value, fault: null, readAt: Date.now(), block });
      this.#faults = 0;
    } catch (error) {
      if (block !== this.#newest) return;
      this.fault = error instanceof RelayFault ? error.sentence : error instanceof Error ? error.message : "The read failed.";
      const pause = Math.min(FIRST_PAUSE_MS * 2 ** this.#faults, LONGEST_PAUSE_MS);
      this.#faults += 1;
      this.#timer = setTimeout(() => void this.#update(this.#newest), pause);
    }
  }
}
