/** The nine states of a job in words, with a tone and a shape. Numbered as on chain. */
import names from "../generated/states.json";

export type Tone = "" | "busy" | "good" | "warn" | "bad";

export interface State {
  word: string;
  tone: Tone;
  sign: string;
  hot: boolean;
}

const LOOKS: Record<string, [Tone, string]> = {
  pending: ["", "○"],
  "meta-scheduled": ["busy", "◔"],
  scheduled: ["busy", "◑"],
  running: ["busy", "▶"],
  cancelled: ["warn", "■"],
  finished: ["good", "✓"],
  failed: ["bad", "✕"],
  "out of credits": ["warn", "◇"],
  panicked: ["bad", "!"],
};

/** The state with a number of the chain; an unknown number is called unknown. */
export function stateOf(status: number): State {
  const found = names[status];
  if (!found) return { word: "unknown", tone: "warn", sign: "?", hot: false };
  const [tone, sign] = LOOKS[found.words] ?? ["", "○"];
  return { word: found.words, tone, sign, hot: found.hot };
}
