// The next edit: the place where the last edit should be repeated, marked with its new text, or with a line at the edge
// of the window. Tab goes there, Tab again makes the edit, Escape leaves it for good.
import {
  commands,
  type DecorationOptions,
  Disposable,
  EndOfLine,
  OverviewRulerLane,
  Position,
  Range,
  Selection,
  type TextDocument,
  type TextDocumentChangeEvent,
  type TextEditor,
  TextEditorRevealType,
  ThemeColor,
  window,
  workspace,
} from "vscode";
import * as path from "node:path";
import type { Server } from "./client";
import { LANGUAGES } from "./languages";
import type { NextEdit } from "./protocol";
import { visible } from "./shell";

const PAUSE = 20; // ms without a change before the server is asked
const LONGEST = 80; // characters of a text that is shown

/** An edit of `document` that is offered after an edit of `origin`. */
interface Offered {
  id: string;
  origin: TextDocument;
  document: TextDocument;
  version: number;
  range: Range;
  newText: string;
  label: string;
}

export class NextEdits implements Disposable {
  private readonly old = window.createTextEditorDecorationType({
    backgroundColor: new ThemeColor("diffEditor.removedTextBackground"),
    textDecoration: "line-through",
    overviewRulerColor: new ThemeColor("editorOverviewRuler.addedForeground"),
    overviewRulerLane: OverviewRulerLane.Full,
  });
  private readonly note = window.createTextEditorDecorationType({});
  private readonly listeners: Disposable;
  private offered: Offered | undefined;
  private drawn = false;
  private timer: NodeJS.Timeout | undefined;
  private turn = 0;

  /** occupied: returns whether a fill is being made in a document. */
  constructor(
    private readonly server: Server,
    private readonly occupied: (document: TextDocument) => boolean,
  ) {
    const draw = () => {
      this.draw();
    };
    this.listeners = Disposable.from(
      workspace.onDidChangeTextDocument(this.changed),
      window.onDidChangeTextEditorVisibleRanges(draw),
      window.onDidChangeTextEditorSelection(draw),
      window.onDidChangeVisibleTextEditors(draw),
      window.onDidChangeActiveTextEditor(draw),
    );
  }

  dispose(): void {
    this.forget();
    for (const one of [this.listeners, this.old, this.note]) one.dispose();
  }

  /** Go to the offered edit; make it where the cursor is there already. */
  async take(): Promise<void> {
    const { offered } = this;
    const editor = window.activeTextEditor;
    if (!offered || !editor) {
      // It has just gone, so the key means what it says.
      await commands.executeCommand("tab");
    } else if (isAt(editor, offered)) {
      const { range, newText } = offered;
      this.forget();
      if (!isCurrent(offered)) return;
      const made = await editor.edit((change) => {
        change.replace(range, newText);
      });
      if (!made) return;
      const end = editor.document.positionAt(editor.document.offsetAt(range.start) + lengthIn(editor.document, newText));
      editor.selection = new Selection(end, end);
    } else {
      const { start } = offered.range;
      const shown = await window.showTextDocument(offered.document, { selection: new Range(start, start) });
      shown.revealRange(offered.range, TextEditorRevealType.InCenterIfOutsideViewport);
    }
  }

  /** Leave the place of the offered edit for good; the next one is offered if the cursor has been there. */
  async leave(): Promise<void> {
    const { offered } = this;
    const editor = window.activeTextEditor;
    this.forget();
    if (!offered) return;
    this.server.notify("dg-lsp/nextEdit/dismiss", { id: offered.id });
    if (editor && isAt(editor, offered)) await this.ask();
  }

  /** Forget what is offered, which a change of the text makes wrong, and ask again once no more changes come. */
  private readonly changed = ({ document, contentChanges, reason }: TextDocumentChangeEvent): void => {
    if (!contentChanges.length || !LANGUAGES.includes(document.languageId)) return;
    this.forget();
    const undone = reason !== undefined;
    if (undone || document !== window.activeTextEditor?.document || this.occupied(document)) return;
    this.timer = setTimeout(() => void this.ask(), PAUSE);
  };

  private async ask(): Promise<void> {
    const turn = ++this.turn;
    const origin = window.activeTextEditor?.document;
    const wanted = workspace.getConfiguration("dg-lsp").get<boolean | null>("nextEdit") ?? true;
    if (!origin || !wanted || !this.server.running) return;
    const cursor = window.activeTextEditor?.selection.active ?? new Position(0, 0);
    const position = { line: cursor.line, character: cursor.character };
    const versions = new Map(workspace.textDocuments.map((one) => [one, one.version]));
    const about = { textDocument: { uri: this.server.uriOf(origin) }, position };
    try {
      const { edit } = await this.server.request<{ edit: NextEdit | null }>("dg-lsp/nextEdit", about);
      const { converter } = this.server;
      if (!edit || !converter) return;
      const document = await workspace.openTextDocument(converter.asUri(edit.uri));
      const offered = { ...edit, origin, document, range: converter.asRange(edit.range) };
      // Each change takes a turn, too; but a document that was closed meanwhile is opened again, as it is on disk.
      if (turn !== this.turn || (versions.get(document) ?? -1) !== document.version || !isCurrent(offered)) return;
      this.offered = offered;
      this.draw();
    } catch {
      // The server has logged it, or has ended.
    }
  }

  private forget(): void {
    clearTimeout(this.timer);
    this.turn++;
    if (!this.offered) return;
    this.offered = undefined;
    this.draw();
  }

  /** Draw the mark of what is offered, and let the keys know whether they are for it. */
  private draw(): void {
    const { offered } = this;
    if (!offered && !this.drawn) return;
    this.drawn = offered !== undefined;
    const active = window.activeTextEditor;
    for (const editor of window.visibleTextEditors) {
      const here = offered?.document === editor.document && isVisible(editor, offered.range);
      const away = offered && editor === active && concerns(editor, offered);
      const notes = here ? [attached(offered.range.end, offered.newText)] : away ? [edge(editor, offered)] : [];
      editor.setDecorations(this.old, here ? [offered.range] : []);
      editor.setDecorations(this.note, notes);
    }
    const keys = offered && active && concerns(active, offered) && (isAt(active, offered) || !indents(active));
    void commands.executeCommand("setContext", "dg-lsp.nextEdit", keys === true);
  }
}

/** Return whether an editor shows the text that was just edited, or the one that is to be edited. */
function concerns({ document }: TextEditor, offered: Offered): boolean {
  return document === offered.origin || document === offered.document;
}

/** Return whether the document that is to be edited still has the text that the edit is for. */
function isCurrent({ document, version }: Offered): boolean {
  return !document.isClosed && document.version === version;
}

/** Return whether the cursor of an editor is at the offered edit. */
function isAt({ document, selection }: TextEditor, offered: Offered): boolean {
  return document === offered.document && offered.range.contains(selection.active);
}

/** Return whether the cursor is in the blanks before a line's text, where Tab indents. */
function indents({ document, selection }: TextEditor): boolean {
  const { line, character } = selection.active;
  return !document.lineAt(line).text.slice(0, character).trim();
}

function isVisible({ visibleRanges }: TextEditor, { start }: Range): boolean {
  return visibleRanges.some((visible) => visible.start.line <= start.line && start.line <= visible.end.line);
}

/** The number of characters that `text` has in a document, whose line ends may be longer. */
function lengthIn(document: TextDocument, text: string): number {
  return text.replace(/\r\n|\r|\n/g, document.eol === EndOfLine.CRLF ? "\r\n" : "\n").length;
}

/** The line at the edge of the window that says where the offered edit is. */
function edge(editor: TextEditor, { document, range, label }: Offered): DecorationOptions {
  const [first, last] = [editor.visibleRanges[0], editor.visibleRanges.at(-1)];
  const above = editor.document === document && first !== undefined && range.start.line < first.start.line;
  const sticky = workspace.getConfiguration("editor.stickyScroll");
  const covered = sticky.get("enabled") ? sticky.get("maxLineCount", 5) : 0;
  const [top, bottom] = [(first?.start.line ?? 0) + covered, last?.end.line ?? 0];
  const line = editor.document.lineAt(above ? Math.min(top, bottom) : bottom).range.end;
  const [arrow, name] =
    editor.document === document ? [above ? "↑" : "↓", ""] : ["→", visible(`${path.basename(document.uri.path)}, `)];
  return attached(line, `  ${arrow} ${name}line ${range.start.line + 1}: ${label} (Tab)`);
}

/** A decoration that shows `text` at a place. */
function attached(at: Position, text: string): DecorationOptions {
  const [first = "", ...more] = text.split(/\r\n|\r|\n/);
  const shown = more.length || first.length > LONGEST ? `${first.slice(0, LONGEST)}…` : first;
  const look = {
    contentText: shown.replaceAll(/[ \t]/g, "\u00a0"),
    color: new ThemeColor("editorGhostText.foreground"),
    backgroundColor: new ThemeColor("diffEditor.insertedTextBackground"),
  };
  return { range: new Range(at, at), renderOptions: { before: look } };
}
