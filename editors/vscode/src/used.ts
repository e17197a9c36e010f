// Reports to the server what becomes of ghost text, for its counts, and closes the brackets and strings of accepted parts. No
// stable interface of the editor tells an extension whether a text was taken or typed, so that is read from the changes of the
// document: one character counts as typed.
import {
  Disposable,
  EndOfLine,
  type Position,
  Range,
  Selection,
  SnippetString,
  type TextDocument,
  type TextDocumentChangeEvent,
  type TextDocumentContentChangeEvent,
  window,
  workspace,
} from "vscode";
import type { GhostItem, Pair } from "./protocol";

// What an editor inserts for one key.
const PAIRS = ["()", "[]", "{}", "<>", '""', "''", "``"];
const TRIES = 5; // to insert closers while the user types on
const PAUSE = 50; // ms between two of them

export type Kind = "shown" | "tab" | "word" | "line" | "typed" | "dismissed";

/**
 * Texts that are shown: all of the first one, and where it begins; the rests of all and where these begin, none once the
 * document disagrees. taken: whether a key took a part. opened: the pairs of the first one that such parts have opened.
 */
interface Offered {
  document: TextDocument;
  start: Position;
  whole: string;
  position: Position;
  rests: Rest[];
  taken: boolean;
  opened: Pair[];
}

/** The rest of a text, and its brackets and strings; of one that is open the first number is negative. */
interface Rest {
  text: string;
  pairs: Pair[];
}

/** Closers that are to be put at a place. */
interface Late {
  document: TextDocument;
  position: Position;
  closers: string;
}

type Report = (document: TextDocument, kind: Kind, characters: number) => void;

export class Used implements Disposable {
  private offered: Offered | undefined;
  private late: Late | undefined;
  private readonly listeners: Disposable;

  constructor(private readonly report: Report) {
    this.listeners = Disposable.from(
      workspace.onDidChangeTextDocument((event) => {
        this.changed(event);
      }),
      window.onDidChangeTextEditorSelection(({ textEditor: { document, selection } }) => {
        if (this.offered?.document === document && !selection.active.isEqual(this.offered.position)) this.close();
      }),
      window.onDidChangeActiveTextEditor(() => {
        this.close();
      }),
    );
  }

  dispose(): void {
    this.listeners.dispose();
  }

  /**
   * Note the items of an answer, which the editor shows; an answer with the rest of a text is no new text, nor is one in
   * which it has got longer.
   */
  answered(document: TextDocument, position: Position, items: GhostItem[]): void {
    const rests = items.flatMap((item) => restOf(item, document, position));
    const [first] = rests;
    const known = this.offered;
    if (first === undefined) {
      // The editor shows no ghost text there any longer.
      if (known?.document === document && position.isEqual(known.position)) this.close();
      return;
    }
    const whole = known?.document === document ? textBetween(document, known.start, position) + first.text : "";
    if (known && whole.startsWith(known.whole)) {
      this.offered = { ...known, whole, position, rests };
    } else {
      this.close();
      this.offered = { document, start: position, whole: first.text, position, rests, taken: false, opened: [] };
      this.report(document, "shown", first.text.length);
    }
  }

  /** Note that the shown text was dismissed. */
  dismissed(): void {
    const { offered } = this;
    const rest = offered?.rests[0]?.text;
    if (offered && rest !== undefined) this.report(offered.document, "dismissed", rest.length);
    this.close();
    this.offered = undefined;
  }

  private changed({ document, contentChanges, reason }: TextDocumentChangeEvent): void {
    const { offered, late } = this;
    const [made, more] = contentChanges;
    const change = made && offered?.document === document ? added(offered, made) : made;
    if (change && late?.document === document && change.range.start.isEqual(late.position)) {
      late.position = after(document, late.position, change.text.length);
    }
    if (offered?.document !== document || !change) return;
    const undone = reason !== undefined;
    if (undone || more || !change.range.start.isEqual(offered.position)) {
      const kept = undone || more ? [] : before(offered, change);
      const position = change.range.end.isEqual(offered.position) ? change.range.start : offered.position;
      this.close(position, { ...offered, opened: kept });
      this.offered = { ...offered, rests: [], opened: [] };
      return;
    }
    const key = change.text.length === 1 || PAIRS.includes(change.text);
    const text = key ? change.text.slice(0, 1) : change.text.replaceAll("\r\n", "\n");
    const agreeing = offered.rests.filter((rest) => rest.text.startsWith(text));
    const [first] = agreeing;
    if (!text || !first) {
      // A closer that was typed is not put there once more.
      const own = closersOf(offered);
      const closers = own.startsWith(change.text) ? own.slice(change.text.length) : own;
      this.put({ document, position: after(document, offered.position, change.text.length), closers });
      this.offered = { ...offered, rests: [], opened: [] };
      return;
    }
    const rests = agreeing.map((rest) => shortened(rest, text.length));
    const rest = rests[0]?.text ?? "";
    const kind = rest === "" ? "tab" : rest.startsWith("\n") ? "line" : "word";
    if (!key) this.report(document, kind, text.length);
    else if (rest === "" && !offered.taken) this.report(document, "typed", offered.whole.length);
    // An opening bracket that was typed has its closer from the editor.
    const opened = PAIRS.includes(change.text) ? [] : first.pairs.filter(([open]) => open >= 0 && open < text.length);
    this.offered = {
      ...offered,
      position: after(document, offered.position, key ? 1 : change.text.length),
      rests: rest === "" ? [] : rests,
      taken: offered.taken || !key,
      opened: [...offered.opened, ...opened].map((pair) => shifted(pair, text.length)).filter(([, close]) => close >= 0),
    };
  }

  /** Close at `position` the pairs that are open because a part of the ghost text was taken, of which no more is shown. */
  private close(position?: Position, offered = this.offered): void {
    if (!offered) return;
    this.put({ document: offered.document, position: position ?? offered.position, closers: closersOf(offered) });
    if (this.offered) this.offered = { ...this.offered, opened: [] };
  }

  /** Put closers into the document, as a part of the last change if no other one comes between. */
  private put(late: Late): void {
    const { document } = late;
    const editor = window.visibleTextEditors.find((one) => one.document === document);
    if (!late.closers || !editor || !closes(document)) return;
    this.late = late;
    const insert = async () => {
      for (let tries = 0; tries < TRIES; tries++) {
        const { position, closers } = late;
        const at = editor.selection.active.isEqual(position);
        const stops = { undoStopBefore: false, undoStopAfter: false };
        // A plain edit moves a cursor at its place after the closers, and a key may come before it is moved back. A snippet
        // does not, but indents further lines.
        const inLine = at && editor === window.activeTextEditor && !closers.includes("\n");
        const done = inLine
          ? await editor.insertSnippet(new SnippetString("$0").appendText(closers), position, stops)
          : await editor.edit((edit) => {
              edit.insert(position, closers);
            }, stops);
        if (done && at && !inLine) editor.selection = new Selection(position, position);
        if (done) return;
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
      }
    };
    void insert().finally(() => {
      if (this.late === late) this.late = undefined;
    });
  }
}

/** Whether the editor closes brackets as they are typed. */
function closes(document: TextDocument): boolean {
  return workspace.getConfiguration("editor", document).get("autoClosingBrackets") !== "never";
}

/** The part of `rest` after its first `count` characters. */
function shortened({ text, pairs }: Rest, count: number): Rest {
  return { text: text.slice(count), pairs: pairs.map((pair) => shifted(pair, count)) };
}

function shifted([open, close, end]: Pair, count: number): Pair {
  return [open - count, close - count, end - count];
}

/** The place `count` characters after `position`. */
function after(document: TextDocument, position: Position, count: number): Position {
  return document.positionAt(document.offsetAt(position) + count);
}

/**
 * Return what `change` adds at the place of the rest. The editor takes the last part of a text that was taken by parts
 * by putting all of it in the place of those that it has; `change` itself if it does anything else.
 */
function added(offered: Offered, change: TextDocumentContentChangeEvent): TextDocumentContentChangeEvent {
  const { document, start, whole, position, rests } = offered;
  const { range, rangeOffset, rangeLength, text } = change;
  const [rest] = rests;
  if (rest === undefined || range.isEmpty || !range.end.isEqual(position) || range.start.isBefore(start)) return change;
  const taken = whole.slice(textBetween(document, start, range.start).length, whole.length - rest.text.length);
  const known = document.eol === EndOfLine.CRLF ? taken.replaceAll("\n", "\r\n") : taken;
  if (!known || !text.startsWith(known)) return change;
  const more = { rangeOffset: rangeOffset + rangeLength, rangeLength: 0, text: text.slice(known.length) };
  return { range: new Range(position, position), ...more };
}

/** The opened pairs that are still there after a change that ends where the rest begins, or that is below it. */
function before({ document, opened, position }: Offered, { range, rangeLength }: TextDocumentContentChangeEvent): Pair[] {
  if (!range.end.isEqual(position)) return range.start.isAfter(position) ? opened : [];
  const gone = rangeLength - (document.eol === EndOfLine.CRLF ? range.end.line - range.start.line : 0);
  return opened.filter(([open]) => open < -gone);
}

/** The closers of the opened pairs, innermost first; one on a line below with its line. */
function closersOf({ opened, rests }: Offered): string {
  const text = rests[0]?.text ?? "";
  return opened
    .toReversed()
    .map(([, close, end]) => {
      const line = text.lastIndexOf("\n", close - 1);
      return text.slice(line >= 0 && text.slice(line, close).trim() === "" ? line : close, end);
    })
    .join("");
}

/** The part of an item's text after `position`, if it agrees with the text before that. */
function restOf({ insertText, range, pairs }: GhostItem, document: TextDocument, position: Position): Rest[] {
  const text = (typeof insertText === "string" ? insertText : insertText.value).replaceAll("\r\n", "\n");
  const typed = textBetween(document, range?.start ?? position, position);
  return text.startsWith(typed) && text.length > typed.length ? [shortened({ text, pairs }, typed.length)] : [];
}

function textBetween(document: TextDocument, start: Position, end: Position): string {
  return start.isAfter(end) ? "" : document.getText(new Range(start, end)).replaceAll("\r\n", "\n");
}
