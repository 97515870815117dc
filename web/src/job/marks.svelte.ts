/** Tags, notes and places in sweeps of the own jobs, by the hashes of their definitions. They need a session key. */
import { account, provider } from "../wallet/account.svelte";
import { sentenceOf } from "../wallet/flow.svelte";
import { type Mark, readMarks } from "../wallet/kept";
import { keptSession, openSession } from "../wallet/session";

const NONE: ReadonlyMap<string, Mark> = new Map();

export class MarkBook {
  marks: ReadonlyMap<string, Mark> = $state.raw(NONE);
  /** Whether a session key is missing. */
  locked = $state(false);
  fault = $state("");

  /** Read all marks. Only with `prompts`, a wallet is asked for a session key. */
  async read(prompts = false): Promise<void> {
    const address = account.address;
    if (!address) return;
    try {
      const asks = prompts || account.kind === "local";
      const session = await (asks ? openSession(provider(), address) : keptSession(address));
      this.locked = session === null;
      if (session) this.marks = await readMarks(session);
      this.fault = "";
    } catch (error) {
      this.fault = sentenceOf(error);
    }
  }
}
