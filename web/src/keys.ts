/** Keys of all pages. Single letters do nothing while a text is written, and can be turned off. */
import { go } from "./router";
import { keep } from "./wallet/local";

export const PLACES: Record<string, [string, string]> = {
  m: ["/", "Market"],
  n: ["/new", "New job"],
  j: ["/jobs", "Jobs"],
  w: ["/wallet", "Wallet"],
  g: ["/grid", "Grid"],
};
const OFF = "letters-off";
const CHORD_MS = 1500;
let leader = 0;

export const lettersOff = (): boolean => localStorage.getItem(OFF) === "1";

export function setLettersOff(off: boolean): void {
  void keep(OFF, off ? "1" : "").catch(() => undefined); // else it holds until the page is closed
}

/** Handle a key press of the window. `help` shows the list of keys. */
export function onKey(event: KeyboardEvent, help: () => void): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || lettersOff() || isWriting(event)) return;
  const after = Date.now() - leader < CHORD_MS;
  leader = 0;
  const place = PLACES[event.key];
  if (after && place) go(place[0]);
  else if (event.key === "g") leader = Date.now();
  else if (event.key === "?") help();
  else if (!(event.key === "/" ? search() : event.key === "j" ? moveRow(1) : event.key === "k" && moveRow(-1))) return;
  event.preventDefault();
}

function isWriting(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0];
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.matches("input, select, textarea") || document.querySelector("dialog[open]") !== null;
}

/** Focus the search field. False if the page has none of its own marked so. */
function search(): boolean {
  const field = document.querySelector<HTMLElement>("main [data-search]");
  field?.focus();
  return field !== null;
}

/** Move the focus to the next row of a table. Rows are links with `data-row`, so Enter opens them. False if there is none. */
function moveRow(step: number): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step))]?.focus();
  return rows.length > 0;
}
