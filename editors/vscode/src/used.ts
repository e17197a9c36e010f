// Reports to the server what becomes of ghost text, for its counts. No stable interface of the editor tells an extension
// whether a text was taken or typed, so that is read from the changes of the document: one character counts as typed.
import {
  type Disposable,
  type InlineCompletionItem,
  type Position,
  Range,
  type TextDocument,
  type TextDocumentChangeEvent,
  workspace,
} from "vscode";

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
  rests: string[];
  taken: boolean;
}

export class Used implements Disposable {
  private offered: Offered | undefined;
  private readonly listener: Disposable;

  constructor(private readonly report: (document: TextDocument, kind: Kind, characters: number) => void) {
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
  answered(document: TextDocument, position: Position, items: InlineCompletionItem[]): void {
    const rests = items.flatMap((item) => restOf(item, document, position));
    const [first] = rests;
    if (first === undefined) return;
    const known = this.offered;
    const whole = known?.document === document ? textBetween(document, known.start, position) + first : "";
    if (known && whole.startsWith(known.whole)) {
      this.offered = { ...known, whole, position, rests };
    } else {
      this.offered = { document, start: position, whole: first, position, rests, taken: false };
      this.report(document, "shown", first.length);
    }
  }

  /** Note that the shown text was dismissed. */
  dismissed(): void {
    const { offered } = this;
    this.offered = undefined;
    if (offered?.rests[0] !== undefined) this.report(offered.document, "dismissed", offered.rests[0].length);
  }

  private changed({ document, contentChanges, reason }: TextDocumentChangeEvent): void {
    const { offered } = this;
    const [change, more] = contentChanges;
    if (offered?.document !== document || !change) return;
    this.offered = { ...offered, rests: [] };
    if (reason !== undefined || more || !change.range.start.isEqual(offered.position)) return;
    const key = change.text.length === 1 || PAIRS.includes(change.text);
    const text = key ? change.text.slice(0, 1) : change.text.replaceAll("\r\n", "\n");
    const rests = offered.rests.filter((rest) => rest.startsWith(text)).map((rest) => rest.slice(text.length));
    const [rest] = rests;
    if (!text || rest === undefined) return;
    if (!key) this.report(document, rest === "" ? "tab" : rest.startsWith("\n") ? "line" : "word", text.length);
    else if (rest === "" && !offered.taken) this.report(document, "typed", offered.whole.length);
    if (rest === "") return;
    const position = document.positionAt(document.offsetAt(offered.position) + (key ? 1 : change.text.length));
    this.offered = { ...offered, position, rests, taken: offered.taken || !key };
  }
}

/** The part of an item's text after `position`, if it agrees with the text before that. */
function restOf({ insertText, range }: InlineCompletionItem, document: TextDocument, position: Position): string[] {
  const text = (typeof insertText === "string" ? insertText : insertText.value).replaceAll("\r\n", "\n");
  const typed = textBetween(document, range?.start ?? position, position);
  return text.startsWith(typed) && text.length > typed.length ? [text.slice(typed.length)] : [];
}

function textBetween(document: TextDocument, start: Position, end: Position): string {
  return start.isAfter(end) ? "" : document.getText(new Range(start, end)).replaceAll("\r\n", "\n");
}
