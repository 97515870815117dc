/** A few steps that lead to a change on chain. Each names itself when it fails, and can be repeated from there. */
import { RelayFault } from "../chain/relay";
import { WalletFault } from "./eip1193";
import { ServiceFault } from "./services";

export type StepState = "waiting" | "busy" | "done" | "failed";

export interface Step {
  name: string;
  /** What the wallet will ask; empty if this step asks nothing. */
  prompt: string;
  state: StepState;
  note: string;
}

export interface PriceRise {
  cluster: string;
  oldWei: bigint;
  newWei: bigint;
}

/** A price rose since the user saw it. Nothing was signed after that. */
export class PricesRose extends Error {
  constructor(readonly rises: PriceRise[]) {
    super("A price rose since you saw it. Nothing was signed.");
  }
}

/** What a step found out that stops the flow, as a sentence. */
export class Stopped extends Error {}

interface Plan {
  name: string;
  prompt?: string;
  /** Does the step; may return a note. */
  act: () => Promise<string | void>;
}

/** Steps with their progress, as the panel shows them. */
export class Flow {
  steps: Step[] = $state([]);
  fault = $state("");
  rises: PriceRise[] = $state([]);
  busy = $state(false);
  done = $state(false);
  private at = 0;

  /**
   * @param title What is done, such as `Submit train`.
   * @param facts Contract, amount, deadline, chain: what the wallet will show.
   * @param consent Accepts risen prices.
   */
  constructor(
    readonly title: string,
    readonly facts: [string, string][],
    private readonly plans: Plan[],
    private readonly consent: (rises: PriceRise[]) => void = () => undefined,
  ) {
    this.steps = plans.map(({ name, prompt = "" }) => ({ name, prompt, state: "waiting", note: "" }));
  }

  /** Do the steps that are left. Returns whether all are done. */
  async run(): Promise<boolean> {
    if (this.busy || this.done) return this.done;
    this.busy = true;
    this.fault = "";
    if (this.rises.length) this.consent(this.rises);
    this.rises = [];
    try {
      for (; this.at < this.plans.length; this.at += 1) await this.step(this.at);
      this.done = true;
    } catch (error) {
      this.steps[this.at]!.state = "failed";
      if (error instanceof PricesRose) this.rises = error.rises;
      this.fault = sentenceOf(error);
    } finally {
      this.busy = false;
    }
    return this.done;
  }

  /** Do a step again that was done, for example after a choice has changed. */
  again(name: string): void {
    const at = this.plans.findIndex((one) => one.name === name);
    if (at < 0) return;
    this.at = Math.min(this.at, at);
    for (const step of this.steps.slice(at)) Object.assign(step, { state: "waiting", note: "" });
  }

  private async step(at: number): Promise<void> {
    const step = this.steps[at]!;
    step.state = "busy";
    step.note = (await this.plans[at]!.act()) ?? "";
    step.state = "done";
  }
}

/** An error as a sentence for the user. */
export function sentenceOf(error: unknown): string {
  if (error instanceof WalletFault || error instanceof ServiceFault || error instanceof RelayFault) return error.sentence;
  if (error instanceof PricesRose || error instanceof Stopped) return error.message;
  if (error instanceof DOMException) return "The grid's services do not answer.";
  return "Something unexpected failed. Try again.";
}
