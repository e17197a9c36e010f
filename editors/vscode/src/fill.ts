// Fills that the user has asked for: the commands, the drafts while one runs, its cancelling, the preview.
import {
  CancellationTokenSource,
  commands,
  EventEmitter,
  type TextDocument,
  window,
  workspace,
  WorkspaceEdit,
} from "vscode";
import { LSPErrorCodes, ResponseError, type WorkspaceEdit as SentEdit } from "vscode-languageclient/node";
import type { Server } from "./client";
import { Canvas } from "./draft";
import type { FillAllResult, FillResult } from "./protocol";

const FAILURES: Record<number, string> = {
  [LSPErrorCodes.ContentModified]: "the document changed meanwhile, so nothing was filled",
  [LSPErrorCodes.RequestCancelled]: "",
};

export class Fills {
  private readonly running = new Map<TextDocument, CancellationTokenSource>();
  private readonly canvas = new Canvas();
  private readonly told = new EventEmitter<string>();

  /** How a fill ended, as a sentence; "" when another begins. */
  readonly onTold = this.told.event;

  constructor(private readonly server: Server) {
    server.onDraft((draft) => {
      for (const document of this.running.keys()) {
        if (server.uriOf(document) === draft.uri) this.canvas.show(document, draft);
      }
    });
    workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      if (contentChanges.length && this.running.has(document)) this.canvas.clear();
    });
  }

  /** Whether a fill is being made in `document`. */
  busy(document: TextDocument): boolean {
    return this.running.has(document);
  }

  /** Fill what `kind` names at the cursor. */
  async fill(kind: "function_body" | "holes"): Promise<void> {
    const editor = window.activeTextEditor;
    if (!editor) return;
    const { line, character } = editor.selection.active;
    await this.run(editor.document, "dg-lsp.fill", { position: { line, character }, kind }, (result: FillResult) =>
      result.edit ? (result.applied || preview() ? "" : result.why) : `nothing filled: ${result.why}`,
    );
  }

  /** Fill each function of the file that has no body yet. */
  async fillStubs(): Promise<void> {
    const document = window.activeTextEditor?.document;
    if (!document) return;
    await this.run(document, "dg-lsp.fillAll", {}, ({ filled, left }: FillAllResult) => {
      if (!filled.length && !left.length) return "there is no function without a body in this file";
      const rest = left.map(([name, why]) => `${name}: ${why}`).join("; ");
      return `${filled.length} of ${filled.length + left.length} bodies filled${rest && `; left: ${rest}`}`;
    });
  }

  /** Stop the fill of the active document, or of all. */
  cancel(): void {
    const here = window.activeTextEditor?.document;
    const mine = here && this.running.get(here);
    for (const source of mine ? [mine] : this.running.values()) source.cancel();
  }

  /** Draw the drafts of a fill that somebody else asks for, such as a code action, until `work` is done. */
  async during<Result>(
    document: TextDocument,
    source: CancellationTokenSource,
    work: () => Promise<Result>,
  ): Promise<Result> {
    this.running.get(document)?.cancel();
    this.running.set(document, source);
    this.told.fire("");
    this.mark();
    await commands.executeCommand("editor.action.inlineSuggest.hide");
    try {
      return await work();
    } catch (error) {
      this.told.fire(this.failure(error));
      throw error;
    } finally {
      if (this.running.get(document) === source) {
        this.running.delete(document);
        if (source.token.isCancellationRequested) this.told.fire("cancelled, nothing was changed");
      }
      this.canvas.clear();
      this.mark();
      source.dispose();
    }
  }

  dispose(): void {
    for (const source of this.running.values()) source.cancel();
    this.canvas.dispose();
    this.told.dispose();
  }

  private mark(): void {
    void commands.executeCommand("setContext", "dg-lsp.filling", this.running.size > 0);
  }

  /** Run one of the server's fill commands on `document`, and say what `sentenceOn` makes of its result. */
  private async run<Result extends FillResult | FillAllResult>(
    document: TextDocument,
    command: string,
    target: object,
    sentenceOn: (result: Result) => string,
  ): Promise<void> {
    if (!(await this.server.ready())) {
      await commands.executeCommand("dg-lsp.menu");
      return;
    }
    const source = new CancellationTokenSource();
    const argument = { ...target, uri: this.server.uriOf(document), version: document.version, apply: !preview() };
    try {
      const result = await this.during(document, source, () =>
        this.server.command<Result>(command, argument, source.token),
      );
      if (preview() && result.edit) await this.offer(result.edit);
      const sentence = sentenceOn(result);
      this.told.fire(sentence);
      if (sentence) void window.showInformationMessage(`dg-lsp: ${sentence}`);
    } catch (error) {
      const sentence = this.failure(error);
      if (sentence && !source.token.isCancellationRequested) void window.showWarningMessage(`dg-lsp: ${sentence}`);
    }
  }

  /** Why a fill failed; "" if there is nothing to say. */
  private failure(error: unknown): string {
    if (!this.server.running) return "the server ended, so nothing was filled";
    const known = error instanceof ResponseError ? FAILURES[error.code] : undefined;
    return known ?? (error instanceof Error ? error.message : String(error));
  }

  /** Show the edit in the editor's own preview of changes, where the user takes it or leaves it. */
  private async offer(sent: SentEdit): Promise<void> {
    const edit = await this.server.converter?.asWorkspaceEdit(sent);
    if (!edit) return;
    const asked = new WorkspaceEdit();
    const metadata = { needsConfirmation: true, label: "dg-lsp: fill" };
    for (const [uri, changes] of edit.entries()) {
      for (const { range, newText } of changes) asked.replace(uri, range, newText, metadata);
    }
    await workspace.applyEdit(asked, { isRefactoring: true });
  }
}

function preview(): boolean {
  return workspace.getConfiguration("dg-lsp").get("preview") === true;
}
