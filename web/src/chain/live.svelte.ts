/** Reads that follow the newest block. What was last known stays, with the time at which it was read. */
import { RelayFault } from "./relay";
import { type Head, onBlock } from "./head";

export class Live<T> {
  /** The last value; undefined before the first one. */
  value: T | undefined = $state.raw(undefined);
  /** The block of the value. */
  block = $state(0);
  /** When it was read, in milliseconds. */
  at = $state(0);
  fault = $state("");
  private running = false;
  private wanted: Head | null = null;

  constructor(private readonly read: (block: number) => Promise<T>) {}

  /** Read now and with each new block. Returns a function that ends it. */
  follow(): () => void {
    return onBlock((head) => void this.update(head));
  }

  async update(head: Head): Promise<void> {
    this.wanted = head;
    if (this.running) return; // the newest wish is done next
    this.running = true;
    while (this.wanted) {
      const { number } = this.wanted;
      this.wanted = null;
      try {
        this.value = await this.read(number);
        Object.assign(this, { block: number, at: Date.now(), fault: "" });
      } catch (error) {
        this.fault = error instanceof RelayFault ? error.sentence : "The grid's services do not answer.";
      }
    }
    this.running = false;
  }
}

/** Seconds since `at` (milliseconds), as of `now`. */
export function ageS(at: number, now: number): number {
  return Math.max(0, Math.floor((now - at) / 1000));
}

/** A clock for ages, once per second while it is used. */
export class Clock {
  now = $state(Date.now());

  run(): () => void {
    const timer = setInterval(() => (this.now = Date.now()), 1000);
    return () => clearInterval(timer);
  }
}
