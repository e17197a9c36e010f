// Reports to the server what becomes of ghost text, for its counts, and closes the brackets and strings of accepted parts. No
// stable interface of the editor tells an extension whether a text was taken or typed, so that is read from the changes of the
// document: one character counts as typed.
import { type Disposable, type Position, Range, type TextDocument, type TextDocumentChangeEvent, workspace } from "vscode";
import type { GhostItem, Pair } from "./protocol";

// What an editor inserts for one key.
const PAIRS = ["()", "[]", "{}", "<>", '""', "''", "``"];

export type Kind = "shown" | "tab" | "word" | "line" | "typed" | "dismissed";

/**
 * Texts that are shown: all of the first one, and where it begins; the rests of all and where these begin, none once the
 * document disagrees. taken: whether a key took a part.
 */
interface Offered {
  document: TextDocument;
  start: Position;
  whole: string;
  position: Position;
  rests: Rest[];
  taken: boolean;
}

/** The rest of a text, and its brackets and strings. */
interface Rest {
  text: string;
  pairs: Pair[];
}

/** The parts that the uses of ghost text are read with. */
interface Needs {
  report: (document: TextDocument, kind: Kind, characters: number) => void;
  /** Put closers after the place of an accepted part of ghost text. */
  close: (document: TextDocument, position: Position, closers: string) => void;
}

export class Used implements Disposable {
  private offered: Offered | undefined;
  private readonly listener: Disposable;

  constructor(private readonly needs: Needs) {
    this.listener = workspace.onDidChangeTextDocument((event) => {
      this.changed(event);
    });
  }

  dispose(): void {
    this.listener.dispose();
  }

  /**
   * Note the items of an answer, which the editor shows; an answer with the rest of a text is no new text, nor is one in
   * which it has got longer.
   */
  answered(document: TextDocument, position: Position, items: GhostItem[]): void {
    const rests = items.flatMap((item) => restOf(item, document, position));
    const [first] = rests;
    if (first === undefined) return;
    const known = this.offered;
    const whole = known?.document === document ? textBetween(document, known.start, position) + first.text : "";
    if (known && whole.startsWith(known.whole)) {
      this.offered = { ...known, whole, position, rests };
    } else if (known?.taken && whole && known.whole.startsWith(whole)) {
      // Its closers are in the document already.
      this.offered = { ...known, position, rests };
    } else {
      this.offered = { document, start: position, whole: first.text, position, rests, taken: false };
      this.needs.report(document, "shown", first.text.length);
    }
  }

  /** Note that the shown text was dismissed. */
  dismissed(): void {
    const { offered } = this;
    this.offered = undefined;
    const rest = offered?.rests[0]?.text;
    if (offered && rest !== undefined) this.needs.report(offered.document, "dismissed", rest.length);
  }

  private changed({ document, contentChanges, reason }: TextDocumentChangeEvent): void {
    const { offered } = this;
    const [change, more] = contentChanges;
    if (offered?.document !== document || !change) return;
    this.offered = { ...offered, rests: [] };
    if (reason !== undefined || more || !change.range.start.isEqual(offered.position)) return;
    const key = change.text.length === 1 || PAIRS.includes(change.text);
    const text = key ? change.text.slice(0, 1) : change.text.replaceAll("\r\n", "\n");
    const agreeing = offered.rests.filter((rest) => rest.text.startsWith(text));
    const rests = agreeing.map((rest) => after(rest, text.length));
    const rest = rests[0]?.text;
    if (!text || !agreeing[0] || rest === undefined) return;
    const kind = rest === "" ? "tab" : rest.startsWith("\n") ? "line" : "word";
    if (!key) this.needs.report(document, kind, text.length);
    else if (rest === "" && !offered.taken) this.needs.report(document, "typed", offered.whole.length);
    if (rest === "") return;
    const position = document.positionAt(document.offsetAt(offered.position) + (key ? 1 : change.text.length));
    // An opening bracket that was typed has its closer from the editor.
    const closers = closes(document) && !PAIRS.includes(change.text) ? closersAfter(agreeing[0], text.length) : "";
    this.offered = { ...offered, position, rests, taken: offered.taken || !key || closers !== "" };
    if (closers) this.needs.close(document, position, closers);
  }
}

/** Whether the editor closes brackets as they are typed. */
function closes(document: TextDocument): boolean {
  return workspace.getConfiguration("editor", document).get("autoClosingBrackets") !== "never";
}

/** The part of `rest` after its first `count` characters. */
function after({ text, pairs }: Rest, count: number): Rest {
  return { text: text.slice(count), pairs: pairs.map((pair) => shifted(pair, count)) };
}

function shifted([open, close, end]: Pair, count: number): Pair {
  return [open - count, close - count, end - count];
}

/** The closers of what the first `count` characters of a text open, innermost first; one on a line below with its line. */
function closersAfter({ text, pairs }: Rest, count: number): string {
  const open = pairs.filter(([start, close]) => start >= 0 && start < count && close >= count).reverse();
  return open
    .map(([, close, end]) => {
      const line = /\n[^\S\n]*$/.exec(text.slice(count, close))?.[0] ?? "";
      return text.slice(close - line.length, end);
    })
    .join("");
}

/** The part of an item's text after `position`, if it agrees with the text before that. */
function restOf({ insertText, range, pairs }: GhostItem, document: TextDocument, position: Position): Rest[] {
  const text = (typeof insertText === "string" ? insertText : insertText.value).replaceAll("\r\n", "\n");
  const typed = textBetween(document, range?.start ?? position, position);
  return text.startsWith(typed) && text.length > typed.length ? [after({ text, pairs }, typed.length)] : [];
}

function textBetween(document: TextDocument, start: Position, end: Position): string {
  return start.isAfter(end) ? "" : document.getText(new Range(start, end)).replaceAll("\r\n", "\n");
}
