/** Strangers' text without power over the page: control and direction marks are shown as marks. */

const STEERING = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** `text` with a mark such as `[U+202E]` for each character that controls a terminal or the direction of writing. */
export function marked(text: string): string {
  return text.replace(STEERING, (c) => `[U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}]`);
}
