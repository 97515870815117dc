/** The editor: highlighting, folding, completion, hover, faults. It stands in a shadow root, because of its styles. */
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { defaultHighlightStyle, foldGutter, foldKeymap, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { parseDocument } from "yaml";
import schema from "../generated/schema.json";
import { canonicalOf, type Schema } from "../pure/canonical";
import type { Fault } from "./check";
import { complete, meaning } from "./completion";

const THEME = EditorView.theme({
  "&": { height: "100%", fontSize: "0.875rem", backgroundColor: "var(--card)", color: "var(--ink)" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-gutters": { backgroundColor: "var(--sunk)", color: "var(--ink-2)", border: "none" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--accent-soft) 40%, transparent)" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-tooltip": { backgroundColor: "var(--card)", color: "var(--ink)", border: "1px solid var(--line)", maxWidth: "28rem", padding: "0.25rem" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--accent-soft) !important" },
});

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: tags.comment, color: "var(--ink-2)", fontStyle: "italic" },
  { tag: [tags.string, tags.content], color: "var(--ink)" },
  { tag: [tags.number, tags.bool, tags.atom], color: "var(--good)" },
]);

const hover = hoverTooltip((view, pos) => {
  const line = view.state.doc.lineAt(pos);
  const text = meaning(view.state.doc, line.number);
  if (!text) return null;
  return {
    pos: line.from,
    above: true,
    create: () => {
      const dom = document.createElement("div");
      dom.textContent = text;
      return { dom };
    },
  };
});

/** Make an editor in `parent`, which stands in the shadow root `root`. */
export function makeEditor(parent: HTMLElement, root: ShadowRoot, text: string, changed: (text: string) => void): EditorView {
  const extensions = [
    lineNumbers(), foldGutter(), history(), drawSelection(), indentOnInput(), closeBrackets(), highlightActiveLine(),
    yaml(), syntaxHighlighting(COLOURS), syntaxHighlighting(defaultHighlightStyle, { fallback: true }), lintGutter(), hover, THEME,
    autocompletion({ override: [complete] }), EditorView.lineWrapping,
    keymap.of([...closeBracketsKeymap, ...completionKeymap, ...foldKeymap, ...historyKeymap, ...searchKeymap, ...defaultKeymap, indentWithTab]),
    EditorView.contentAttributes.of({ "aria-label": "Workflow file", spellcheck: "false" }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) changed(update.state.doc.toString());
    }),
  ];
  return new EditorView({ parent, root, state: EditorState.create({ doc: text, extensions }) });
}

/** Replace the whole text, as one step that can be undone. */
export function setText(view: EditorView, text: string): void {
  if (view.state.doc.toString() !== text) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
}

/** Underline faults. */
export function showFaults(view: EditorView, faults: Fault[]): void {
  const { doc } = view.state;
  const marks = faults.map(({ line, column, text }): Diagnostic => {
    const at = doc.line(Math.min(Math.max(line, 1), doc.lines));
    const from = Math.min(at.from + Math.max(column - 1, 0), at.to);
    return { from, to: Math.max(at.to, from), severity: "error", message: text, renderMessage: () => document.createTextNode(text) };
  });
  view.dispatch(setDiagnostics(view.state, marks));
}

/** Put the cursor on a fault. */
export function jumpTo(view: EditorView, { line, column }: Fault): void {
  const at = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
  const anchor = Math.min(at.from + Math.max(column - 1, 0), at.to);
  view.dispatch({ selection: { anchor }, scrollIntoView: true });
  view.focus();
}

/** The text with even indentation. Comments stay. Returns null if it is not YAML, or if its meaning would change. */
export function formatted(text: string): string | null {
  const document = parseDocument(text, { schema: "failsafe", merge: false });
  if (document.errors.length) return null;
  const better = document.toString({ lineWidth: 0 });
  try {
    return canonicalOf(better, schema as Schema) === canonicalOf(text, schema as Schema) ? better : null;
  } catch {
    return null;
  }
}
