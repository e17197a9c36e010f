// A fill on its way: the canvas drawn over the position of the fill. Anchors are solid, free text is dim, and the
// fainter the less sure the model is. The buffer is not touched.
//
// The editor has no lines that are not in the buffer, so each piece of the draft hangs at the place of its line and
// column, in front of the text there.
import {
  type DecorationOptions,
  Position,
  Range,
  type TextDocument,
  type TextEditor,
  type ThemableDecorationAttachmentRenderOptions,
  ThemeColor,
  window,
  workspace,
} from "vscode";
import type { Draft, Run } from "./protocol";

const UNSURE = 3; // nats at which text is faintest
const LINES = 40; // no more of a draft is drawn

/** A piece of one line of the draft, at its column on the screen. */
export interface Piece {
  line: number;
  column: number;
  text: string;
  /** 1 is solid. */
  opacity: number;
  anchored: boolean;
}

/** The runs without the anchors that only repeat the text before the gap; `before` is that text. */
export function withoutHead(runs: readonly Run[], before: string): Run[] {
  const first = runs.findIndex(([, anchored]) => !anchored);
  if (first < 0) return [];
  const head = runs
    .slice(0, first)
    .map(([text]) => text)
    .join("");
  let known = head.length;
  while (known && !before.endsWith(head.slice(0, known))) known--;
  const rest = head.slice(known);
  return [...(rest ? [[rest, true, true, 0] as Run] : []), ...runs.slice(first)];
}

/** The runs as pieces of lines that begin at `column`; the anchors at the end only to the end of their first line. */
export function layOut(runs: readonly Run[], column: number, tab: number): Piece[] {
  const pieces: Piece[] = [];
  const last = runs.findLastIndex(([, anchored]) => !anchored);
  let line = 0;
  let end = LINES;
  for (const [index, [text, anchored, accepted, entropy]] of runs.entries()) {
    if (index === last + 1) end = Math.min(LINES, line + 1);
    const sure = accepted ? 1 : 1 - Math.min(Math.max(entropy / UNSURE, 0), 1);
    const opacity = anchored ? 1 : 0.3 + 0.5 * sure;
    for (const [number, part] of text.split(/\r\n|\r|\n/).entries()) {
      if (number) {
        line++;
        column = 0;
      }
      if (line >= end) return pieces;
      const wide = widened(part, column, tab);
      if (wide.trim()) pieces.push({ line, column, text: wide, opacity, anchored });
      column += wide.length;
    }
  }
  return pieces;
}

/** `text` with its tabs as spaces, when it begins at `column`. */
export function widened(text: string, column: number, tab: number): string {
  let wide = "";
  for (const character of text) {
    wide += character === "\t" ? " ".repeat(tab - ((column + wide.length) % tab)) : character;
  }
  return wide;
}

export class Canvas {
  private readonly style = window.createTextEditorDecorationType({});
  private readonly hidden = window.createTextEditorDecorationType({ opacity: "0" });
  private shown: { document: TextDocument; draft: Draft } | undefined;

  /** Draw a draft of a fill in `document`, unless it is for an older text of it. */
  show(document: TextDocument, draft: Draft): void {
    if (draft.version !== null && draft.version !== document.version) return;
    if (!workspace.getConfiguration("dg-lsp").get<boolean>("showDrafts", true)) return;
    this.shown = { document, draft };
    for (const editor of window.visibleTextEditors) if (editor.document === document) this.draw(editor, draft);
  }

  /** Take the draft away. */
  clear(): void {
    const old = this.shown?.document;
    this.shown = undefined;
    for (const editor of window.visibleTextEditors) {
      if (editor.document !== old) continue;
      editor.setDecorations(this.style, []);
      editor.setDecorations(this.hidden, []);
    }
  }

  dispose(): void {
    this.style.dispose();
    this.hidden.dispose();
  }

  private draw(editor: TextEditor, draft: Draft): void {
    const { document } = editor;
    const start = new Position(draft.range.start.line, draft.range.start.character);
    const end = document.validatePosition(new Position(draft.range.end.line, draft.range.end.character));
    const tab = typeof editor.options.tabSize === "number" ? editor.options.tabSize : 4;
    const before = document.getText(new Range(0, 0, start.line, start.character)).replace(/\r\n/g, "\n");
    const line = document.getText(new Range(start.line, 0, start.line, start.character));
    const pieces = layOut(withoutHead(draft.runs, before), widened(line, 0, tab).length, tab);
    const first = pieces[0]?.column ?? 0;
    const height = (pieces.at(-1)?.line ?? -1) + 1;
    const covers = Array.from({ length: height }, (_, number) => cover(start, number, number ? 0 : first));
    editor.setDecorations(this.style, [...covers, ...pieces.map((piece) => hung(start, piece))]);
    // The text in the gap, and after it on its last line, is drawn as part of the draft or will be gone.
    editor.setDecorations(this.hidden, [new Range(start, document.lineAt(end.line).range.end)]);
  }
}

/** The decoration that hides a line of the buffer under a line of the draft, from `column` on. */
function cover(start: Position, line: number, column: number): DecorationOptions {
  const look = { contentText: " ", backgroundColor: new ThemeColor("editor.background") };
  return attached(start, line, column, "width: 100vw; z-index: 10", look);
}

/** A piece as text that hangs at its line and column. */
function hung(start: Position, { line, column, text, opacity, anchored }: Piece): DecorationOptions {
  const color = new ThemeColor(anchored ? "editor.foreground" : "editorGhostText.foreground");
  const style = `white-space: pre; z-index: 11; opacity: ${opacity.toFixed(2)}`;
  return attached(start, line, column, style, { contentText: text, color });
}

/** An attachment to the position `start`, shown `line` lines below it, at `column`. */
function attached(
  start: Position,
  line: number,
  column: number,
  style: string,
  look: ThemableDecorationAttachmentRenderOptions,
): DecorationOptions {
  // The properties after `none` are CSS; there is no other way to position an attachment.
  const place = `none; position: absolute; left: ${column}ch; top: ${line * 100}%; height: 100%; ${style}`;
  return { range: new Range(start, start), renderOptions: { before: { ...look, textDecoration: place } } };
}
