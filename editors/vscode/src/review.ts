// A change that a person takes or leaves: the text as it is and as it would be, side by side, with a button for each.
import * as path from "node:path";
import {
  commands,
  type Disposable,
  languages,
  TabInputTextDiff,
  type TextDocument,
  type TextEdit,
  Uri,
  window,
  workspace,
  type WorkspaceEdit,
} from "vscode";
import { visible } from "./shell";

/** The scheme of the two texts. They are of no file, and the server is not notified of them. */
export const SCHEME = "dg-lsp-review";

const [TAKE, LEAVE] = ["Take the change", "Leave the code as it is"];

/** The end of a question. */
export type Answer = "taken" | "left" | "changed meanwhile";

export class Review implements Disposable {
  private readonly texts = new Map<string, string>();
  private readonly provider = workspace.registerTextDocumentContentProvider(SCHEME, {
    provideTextDocumentContent: (uri) => this.texts.get(uri.toString()),
  });
  private number = 0;
  private settle: (take: boolean) => void = () => undefined;

  dispose(): void {
    this.settle(false);
    this.provider.dispose();
  }

  /** Take or leave the change that is shown. */
  answer(take: boolean): void {
    this.settle(take);
  }

  /** Show what `edit` makes of `document`, and make it if the user says so. why: the reason to ask. */
  async ask(document: TextDocument, edit: WorkspaceEdit, why: string): Promise<Answer> {
    this.settle(false); // one question at a time
    const { version } = document;
    const edits = edit.get(document.uri);
    const sides = await this.sides(document, changed(document, edits));
    const line = edits[0]?.range.start.line ?? 0;
    const title = visible(`${path.basename(document.uri.path)}: now ↔ changed`);
    try {
      await commands.executeCommand("vscode.diff", ...sides, title, { preview: false });
      await commands.executeCommand("revealLine", { lineNumber: line, at: "center" });
      if (!(await this.taken(why, sides[1]))) return "left";
      if (document.isClosed || document.version !== version) return "changed meanwhile";
      return (await workspace.applyEdit(edit)) ? "taken" : "changed meanwhile";
    } finally {
      await close(sides[1]);
      for (const side of sides) this.texts.delete(side.toString());
    }
  }

  /** The addresses of the text of `document` and of `after`, in its language. */
  private async sides(document: TextDocument, after: string): Promise<[Uri, Uri]> {
    this.number++;
    const [one, other] = ["now", "changed"].map((query) =>
      Uri.from({ scheme: SCHEME, path: document.uri.path, query: `${query}-${this.number}` }),
    ) as [Uri, Uri];
    this.texts.set(one.toString(), document.getText());
    this.texts.set(other.toString(), after);
    for (const side of [one, other]) {
      const shown = await workspace.openTextDocument(side);
      if (shown.languageId !== document.languageId) await languages.setTextDocumentLanguage(shown, document.languageId);
    }
    return [one, other];
  }

  /** Ask whether the change is taken, which closing the diff whose right side is `uri` denies. No key answers by chance. */
  private async taken(why: string, uri: Uri): Promise<boolean> {
    let settle: (take: boolean) => void = () => undefined;
    const answered = new Promise<boolean>((done) => {
      this.settle = settle = done;
    });
    let open = tabsOf(uri).length > 0; // the editor may report it later
    const closed = window.tabGroups.onDidChangeTabs(() => {
      if (tabsOf(uri).length) open = true;
      else if (open) settle(false);
    });
    void window.showWarningMessage(`dg-lsp: ${why}`, TAKE, LEAVE).then((chosen) => {
      if (chosen) settle(chosen === TAKE);
    });
    try {
      return await answered;
    } finally {
      closed.dispose();
      // The message, where another way was taken; before there is another one to be seen.
      await commands.executeCommand("notifications.hideToasts");
    }
  }
}

async function close(uri: Uri): Promise<void> {
  await window.tabGroups.close(tabsOf(uri));
}

function tabsOf(uri: Uri) {
  const tabs = window.tabGroups.all.flatMap((group) => group.tabs);
  return tabs.filter(({ input }) => input instanceof TabInputTextDiff && input.modified.toString() === uri.toString());
}

/** The text of `document` once `edits` are made. */
export function changed(document: TextDocument, edits: readonly TextEdit[]): string {
  let text = document.getText();
  const last = [...edits].sort((a, b) => b.range.start.compareTo(a.range.start));
  for (const { range, newText } of last) {
    text = text.slice(0, document.offsetAt(range.start)) + newText + text.slice(document.offsetAt(range.end));
  }
  return text;
}
