// Fills that the user has asked for: the commands, the drafts while one runs, its cancelling, and the question where
// written code would be replaced or the fill is unsure.
import { CancellationTokenSource, commands, EventEmitter, type TextDocument, window, workspace } from "vscode";
import { LSPErrorCodes, ResponseError } from "vscode-languageclient/node";
import type { Server } from "./client";
import { Canvas } from "./draft";
import type { FillAllResult, FillResult, Target } from "./protocol";
import { type Answer, Review } from "./review";

const FAILURES: Record<number, string> = {
  [LSPErrorCodes.ContentModified]: "the document changed meanwhile, so nothing was filled",
  [LSPErrorCodes.RequestCancelled]: "",
};

/** The end of a fill that the user was asked about. */
const ANSWERS: Record<Answer, string> = {
  taken: "",
  left: "left as it was",
  "changed meanwhile": "the document changed meanwhile, so nothing was filled",
};

export class Fills {
  private readonly running = new Map<TextDocument, CancellationTokenSource>();
  private readonly canvas = new Canvas();
  private readonly review = new Review();
  private readonly told = new EventEmitter<string>();

  /** The end of a fill, as a sentence; "" when another begins. */
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

  /** Return whether a fill is being made in `document`. */
  busy(document: TextDocument): boolean {
    return this.running.has(document);
  }

  /** Fill what `kind` names at the cursor. */
  async fill(kind: "function_body" | "holes"): Promise<void> {
    const editor = window.activeTextEditor;
    if (!editor) return;
    const { line, character } = editor.selection.active;
    await this.fillTarget(editor.document, { position: { line, character }, kind });
  }

  /** Fill what a code action names. */
  async act(target: Target): Promise<void> {
    const document = workspace.textDocuments.find((one) => this.server.uriOf(one) === target.uri);
    if (document) await this.fillTarget(document, target);
  }

  /** Take or leave the change that the user is asked about. */
  answer(take: boolean): void {
    this.review.answer(take);
  }

  private async fillTarget(document: TextDocument, target: object): Promise<void> {
    await this.run(document, "dg-lsp.fill", target, ({ edit, why }: FillResult) =>
      edit ? why : `nothing filled: ${why}`,
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

  /** Draw the drafts of a fill until `work` is done. */
  private async during<Result>(
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
    this.review.dispose();
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
    const { version } = document;
    const argument = { version, ...target, uri: this.server.uriOf(document), apply: !preview() };
    try {
      const result = await this.during(document, source, () =>
        this.server.command<Result>(command, argument, source.token),
      );
      const sentence = (await this.asked(document, version, result)) ?? sentenceOn(result);
      this.told.fire(sentence);
      if (sentence && sentence !== ANSWERS.left) void window.showInformationMessage(`dg-lsp: ${sentence}`);
    } catch (error) {
      const sentence = this.failure(error);
      if (sentence && !source.token.isCancellationRequested) void window.showWarningMessage(`dg-lsp: ${sentence}`);
    }
  }

  /** The reason why a fill failed; "" if there is nothing to say. */
  private failure(error: unknown): string {
    if (!this.server.running) return "the server ended, so nothing was filled";
    const known = error instanceof ResponseError ? FAILURES[error.code] : undefined;
    return known ?? (error instanceof Error ? error.message : String(error));
  }

  /** Have the user take or leave a result that is not applied; how that ended, undefined if nobody need be asked. */
  private async asked(
    document: TextDocument,
    version: number,
    { applied, edit, confirm }: FillResult | FillAllResult,
  ): Promise<string | undefined> {
    if (applied || !edit || !(confirm || preview())) return undefined;
    if (document.version !== version) return ANSWERS["changed meanwhile"];
    const change = await this.server.converter?.asWorkspaceEdit(edit);
    if (!change) return undefined;
    const why = confirm === undefined || confirm === "" ? "the fill, to be taken or left" : confirm;
    return ANSWERS[await this.review.ask(document, change, why)] || undefined;
  }
}

function preview(): boolean {
  return workspace.getConfiguration("dg-lsp").get("preview") === true;
}
