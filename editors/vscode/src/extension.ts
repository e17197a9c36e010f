// dg-lsp in VS Code: puts the parts together. What is offered comes from the server; here is how it is shown.
import { commands, type ExtensionContext, type TextEditor, window, workspace } from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import { Server } from "./client";
import { Fills } from "./fill";
import { Ghost } from "./ghost";
import { doctor, install, sayMissing, sayStopped, setPath, trace } from "./install";
import { LANGUAGES } from "./languages";
import { showMenu } from "./menu";
import { chooseModel } from "./models";
import { NextEdits } from "./next_edit";
import type { Target } from "./protocol";
import { SCHEME } from "./review";
import { keysOfMachine, type Manifest, ofUser, ofWorkspace, SECTION, USER } from "./settings";
import { StatusItem } from "./status";
import { Used } from "./used";

const APPLIED = 50; // ms in which the server applies new settings

let server: Server | undefined;

export function activate(context: ExtensionContext): void {
  const log = window.createOutputChannel("dg-lsp", { log: true });
  const manifest = context.extension.packageJSON as Manifest;
  const ghost: Ghost = new Ghost({
    ask: (...place) => started.ghostText(...place),
    occupied: (document) => fills.busy(document),
    answered: (...items) => {
      used.answered(...items);
    },
  });
  const used: Used = new Used((document, kind, characters) => {
    started.notify("dg-lsp/used", { textDocument: { uri: started.uriOf(document) }, kind, characters });
  });
  const started = new Server(log, middleware(manifest, () => void status.ask()), () => ofUser(manifest));
  const fills: Fills = new Fills(started);
  const status: StatusItem = new StatusItem(started, ghost, fills);
  const nextEdits = new NextEdits(started, (document) => fills.busy(document));
  server = started;
  context.subscriptions.push(log, ghost, used, started, fills, status, nextEdits);
  register(context, { server: started, ghost, used, fills, status, nextEdits }, () => {
    log.show();
  });
  void commands.executeCommand("setContext", "dg-lsp.languages", LANGUAGES);
  context.subscriptions.push(
    started.onLife((life) => {
      ghost.offer(life.phase === "running");
      if (life.phase === "missing") void sayMissing(life.why);
      if (life.phase === "failed") void sayStopped(life.why);
    }),
    workspace.onDidChangeConfiguration((event) => {
      if (keysOfMachine(manifest).some((key) => event.affectsConfiguration(key))) started.settingsChanged();
    }),
    started.onGrowth(({ uri }) => {
      const document = window.activeTextEditor?.document;
      if (document && started.uriOf(document) === uri) ghost.grown(document);
    }),
    window.onDidChangeTextEditorSelection(({ textEditor }) => {
      ghost.moved(textEditor);
    }),
  );
  // Not awaited: other extensions need not wait for the server.
  void started.restart();
}

export function deactivate(): Promise<void> | undefined {
  return server?.stop();
}

/** The hooks between the editor and the server. */
function middleware(manifest: Manifest, configured: () => void): Middleware {
  return {
    workspace: {
      configuration: async (params, token, next) => {
        const answers = await next(params, token);
        if (!Array.isArray(answers)) return answers;
        // Only then does the server answer for a document by the new settings.
        setTimeout(configured, APPLIED);
        return answers.map((answer: unknown, index) => {
          const section = params.items[index]?.section;
          if (section === USER) return ofUser(manifest);
          return section === SECTION ? ofWorkspace(manifest) : answer;
        });
      },
    },
    // The two sides of a question are no code of the project's.
    didOpen: async (document, next) => {
      if (document.uri.scheme !== SCHEME) await next(document);
    },
    didClose: async (document, next) => {
      if (document.uri.scheme !== SCHEME) await next(document);
    },
  };
}

/** What the commands work on. */
interface Parts {
  server: Server;
  ghost: Ghost;
  used: Used;
  fills: Fills;
  status: StatusItem;
  nextEdits: NextEdits;
}

function register(context: ExtensionContext, parts: Parts, showLog: () => void): void {
  const { server: started, ghost, used, fills, status, nextEdits } = parts;
  const table: Record<string, () => unknown> = {
    fillBody: () => fills.fill("function_body"),
    fillHoles: () => fills.fill("holes"),
    fillStubs: () => fills.fillStubs(),
    cancel: () => {
      fills.cancel();
    },
    take: () => {
      fills.answer(true);
    },
    leave: () => {
      fills.answer(false);
    },
    dismiss: async () => {
      used.dismissed();
      await ghost.dismiss(started);
      status.draw();
    },
    trigger: () => commands.executeCommand("editor.action.inlineSuggest.trigger"),
    next: () => commands.executeCommand("editor.action.inlineSuggest.showNext"),
    previous: () => commands.executeCommand("editor.action.inlineSuggest.showPrevious"),
    takeNextEdit: () => nextEdits.take(),
    leaveNextEdit: () => nextEdits.leave(),
    restart: () => started.restart(),
    showLog,
    showTrace: () => {
      withEditor(({ document, selection }) => {
        trace(started, document, selection.active);
      });
    },
    doctor: () => {
      doctor(started);
    },
    install: async () => {
      const watching = await install(started);
      if (watching) context.subscriptions.push(watching);
    },
    setPath,
    chooseModel: () => chooseModel(started),
    menu: () => showMenu(status, ghost, started, (command) => commands.executeCommand(command)),
  };
  // The command of the server's code actions.
  context.subscriptions.push(commands.registerCommand("dg-lsp.fill", (target: Target) => fills.act(target)));
  // The command of ghost text that ends with an empty block.
  context.subscriptions.push(
    commands.registerCommand("dg-lsp.inside", () => {
      withEditor((editor) => {
        ghost.goInside(editor);
      });
    }),
  );
  for (const [name, run] of Object.entries(table)) {
    context.subscriptions.push(commands.registerCommand(`dg-lsp.${name}`, run));
  }
}

function withEditor(work: (editor: TextEditor) => void): void {
  if (window.activeTextEditor) work(window.activeTextEditor);
}
