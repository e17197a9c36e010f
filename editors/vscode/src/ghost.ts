// Ghost text: filters the server's answers, and notifies the server when one is dismissed.
import {
  commands,
  type CancellationToken,
  CancellationTokenSource,
  type Disposable,
  type InlineCompletionContext,
  type InlineCompletionItem,
  InlineCompletionTriggerKind,
  languages,
  type Position,
  Range,
  Selection,
  type TextDocument,
  type TextEditor,
  window,
} from "vscode";
import type { Server } from "./client";
import { SELECTOR } from "./languages";
import type { GhostItem } from "./protocol";

const CROSSING = 500; // ms in which an answer and a move of the cursor can cross on their ways between two processes
const PROVIDER = "dg-lsp.dg-lsp:*"; // the provider of this extension, as the editor names it
// A line that only closes what lines above it have opened.
const CLOSERS = /^\s*[)\]}][)\]};,]*\s*$/;

/** The parts that ghost text is made with. */
interface Needs {
  /** The server's items for a place. */
  ask: (
    document: TextDocument,
    position: Position,
    context: InlineCompletionContext,
    token: CancellationToken,
  ) => Promise<GhostItem[]>;
  /** Whether a fill is being made in a document, which ghost text would cover. */
  occupied: (document: TextDocument) => boolean;
  /** Hear of the items that the editor gets. */
  answered: (document: TextDocument, position: Position, items: GhostItem[]) => void;
}

/** The answer last given to the editor, for this version of the document. */
interface Shown {
  document: TextDocument;
  version: number;
  position: Position;
  items: InlineCompletionItem[];
  time: number;
}

export class Ghost implements Disposable {
  private shown: Shown | undefined;
  private crossing: Shown | undefined;
  private snoozedUntil = 0;
  private dismissed = false;
  private registration: Disposable | undefined;
  private refused: { document: TextDocument; version: number } | undefined;

  constructor(private readonly needs: Needs) {}

  /** The time until which nothing is offered automatically; undefined if it is over. */
  get snoozed(): Date | undefined {
    return this.snoozedUntil > Date.now() ? new Date(this.snoozedUntil) : undefined;
  }

  /** True if the last ghost text was dismissed. */
  get unwanted(): boolean {
    return this.dismissed;
  }

  /** Offer nothing automatically for `minutes`; 0 ends it. */
  snooze(minutes: number): void {
    this.snoozedUntil = minutes ? Date.now() + minutes * 60_000 : 0;
    if (minutes) void commands.executeCommand("editor.action.inlineSuggest.hide");
  }

  /** Offer ghost text while the server runs. */
  offer(running: boolean): void {
    if (running === (this.registration !== undefined)) return;
    if (running) this.register();
    else this.dispose();
  }

  /** The provider: the server's items, unless they came too late or nothing is wanted. */
  private readonly provide = async (
    document: TextDocument,
    position: Position,
    context: InlineCompletionContext,
    token: CancellationToken,
  ): Promise<InlineCompletionItem[]> => {
    const automatic = context.triggerKind === InlineCompletionTriggerKind.Automatic;
    if ((automatic && this.snoozed) || this.needs.occupied(document) || isAtSeveral(document)) return [];
    this.crossing = undefined;
    const { version } = document;
    // After a change the server ends by itself what is of no use, and continues a fill while a word is typed.
    const ending = new CancellationTokenSource();
    const listening = token.onCancellationRequested(() => {
      if (document.version === version) ending.cancel();
    });
    const items = await this.needs.ask(document, position, context, ending.token).finally(() => {
      listening.dispose();
      ending.dispose();
    });
    // An answer to an older text, or to a place that the cursor has left, would be shown there all the same.
    if (token.isCancellationRequested || document.version !== version || left(document, position)) return [];
    // An answer that was on its way when a text was dismissed would bring that text back, and so would that to a request
    // which the editor sends before the server knows.
    if (automatic && this.refused?.document === document && this.refused.version === version) return [];
    if (items.length) this.dismissed = false;
    this.shown = this.crossing = { document, version, position, items, time: Date.now() };
    this.needs.answered(document, position, items);
    return items;
  };

  /**
   * Have the editor ask again for ghost text of `document` that has got longer, if the cursor is still at its place. The
   * editor asks the same provider only once for a place of a text, and puts another answer of it to the key for the next
   * text: so a new one takes its place. It is asked for the text that the editor has then, which may be ahead of ours.
   */
  grown(document: TextDocument): void {
    const given = this.shown;
    if (given?.document !== document || document.version !== given.version) return;
    if (window.activeTextEditor?.document !== document || left(document, given.position)) return;
    this.register();
    this.ask();
  }

  dispose(): void {
    this.registration?.dispose();
    this.registration = undefined;
  }

  /** Have the editor ask for ghost text, as it does by itself after a key. */
  private ask(): void {
    void commands.executeCommand("editor.action.inlineSuggest.trigger", { providerId: PROVIDER, explicit: false });
  }

  private register(): void {
    this.registration?.dispose();
    this.registration = languages.registerInlineCompletionItemProvider(SELECTOR, {
      provideInlineCompletionItems: this.provide,
    });
  }

  /**
   * Hide ghost text for a place that the cursor of an editor has left in the meantime. The editor hides what it
   * shows when the cursor moves, but shows an answer that arrives just afterwards for another place of the line. A move that typing
   * or accepting makes changes the document, too: then the editor keeps or drops the ghost text by itself.
   */
  moved({ document, selection }: TextEditor): void {
    const given = this.crossing;
    if (given?.document !== document || selection.active.isEqual(given.position)) return;
    this.crossing = undefined;
    const crossed = document.version === given.version && Date.now() - given.time < CROSSING;
    if (crossed) void commands.executeCommand("editor.action.inlineSuggest.hide");
  }

  /**
   * Put the cursor into the empty block that the text before it ends with, and ask for ghost text there. Nothing happens if
   * something was typed since the text was accepted.
   */
  goInside(editor: TextEditor): void {
    const { document, selection } = editor;
    const { line, character } = selection.active;
    if (!CLOSERS.test(document.lineAt(line).text.slice(0, character))) return;
    let inside = line - 1;
    while (inside > 0 && CLOSERS.test(document.lineAt(inside).text)) inside--;
    const { text, range } = document.lineAt(Math.max(inside, 0));
    if (text === "" || text.trim() !== "") return;
    editor.selection = new Selection(range.end, range.end);
    this.ask();
  }

  /** Hide the ghost text, and tell the server that it is not wanted here. */
  async dismiss(server: Server): Promise<void> {
    const editor = window.activeTextEditor;
    this.refused = editor && { document: editor.document, version: editor.document.version };
    await commands.executeCommand("editor.action.inlineSuggest.hide");
    const { shown } = this;
    this.shown = undefined;
    this.dismissed = true;
    if (!editor || shown?.document !== editor.document) return;
    const cursor = editor.selection.active;
    if (cursor.line !== shown.position.line || cursor.isBefore(shown.position)) return;
    const typed = editor.document.getText(new Range(shown.position, cursor));
    const position = { line: cursor.line, character: cursor.character };
    const about = { uri: server.uriOf(editor.document), version: editor.document.version, position };
    for (const { insertText } of shown.items) {
      const whole = typeof insertText === "string" ? insertText : insertText.value;
      if (whole.startsWith(typed)) server.notify("dg-lsp/dismissed", { ...about, text: whole.slice(typed.length) });
    }
  }
}

/**
 * Return whether the editor of `document` has several cursors: it would put what is accepted at each of them, and the server
 * looks at one place.
 */
function isAtSeveral(document: TextDocument): boolean {
  const editor = window.activeTextEditor;
  return editor?.document === document && editor.selections.length > 1;
}

/** Return whether the cursor of `document` is elsewhere than at `position`. */
function left(document: TextDocument, position: Position): boolean {
  const editor = window.activeTextEditor;
  return editor?.document === document && !editor.selection.active.isEqual(position);
}
