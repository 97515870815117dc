import { lettersOff } from "../keys";

/** Single keys of a page, as in the terminal app. Fields, dialogs and turned-off keys are left alone. */
export function onKeys(keys: Record<string, (event: KeyboardEvent) => void>): (event: KeyboardEvent) => void {
  return (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = event.target as HTMLElement;
    if (target.closest("input:not([type=checkbox]), textarea, select, dialog, [contenteditable]")) return;
    if (event.key === "Enter" && target.closest("a, button, summary")) return;
    if (event.key.length === 1 && lettersOff()) return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act(event);
  };
}

/** Set a size of an element by script: the pages' policy allows no style attributes. */
export function pixels(node: HTMLElement, height: number) {
  const set = (next: number) => (node.style.height = `${next}px`);
  set(height);
  return { update: set };
}
