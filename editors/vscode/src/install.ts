// The message where the server is missing, and the command run in a terminal for the user to see.
import { homedir } from "node:os";
import { commands, Disposable, type TextDocument, type Position, Range, window, workspace } from "vscode";
import type { Server } from "./client";
import { absolute, findServer, NOT_INSTALLED, NOT_TRUSTED, onPath, runs } from "./server";
import { SECTION, setEverywhere } from "./settings";
import { commandLine, quoted, unsupported } from "./shell";

const LOOK = 3000; // ms between two looks for a server that is being installed
const LOOKS = 200;

/** The command that installs `what`, a wheel or a clone, by the best tool on this machine. */
export function installCommand(tool: string | undefined, what: string): string {
  if (tool === "uv") return `uv tool install ${quoted(what)}`;
  if (tool === "pipx") return `pipx install ${quoted(what)}`;
  return `python3 -m pip install --user ${quoted(what)}`;
}

/** Say that the server is missing, and how to get it. */
export async function sayMissing(why: string): Promise<void> {
  if (unsupported()) {
    await sayWith(why, {});
    return;
  }
  const command = installCommand(await tool(), "PATH/TO/dg_lsp.whl");
  const trust = workspace.isTrusted ? "" : `; ${NOT_TRUSTED}`;
  const sentence = `dg-lsp: ${why}${trust}. Install it from its wheel or a clone: ${command}`;
  await sayWith(sentence, {
    "Install in a terminal ...": () => commands.executeCommand("dg-lsp.install"),
    "Set its path ...": () => commands.executeCommand("dg-lsp.setPath"),
    // Once the workspace is trusted, the server is looked for again.
    ...(trust
      ? { "Trust ...": () => commands.executeCommand("workbench.trust.manage") }
      : { Restart: () => commands.executeCommand("dg-lsp.restart") }),
  });
}

/** Say that the server ended and is not started again by itself. */
export async function sayStopped(why: string): Promise<void> {
  await sayWith(`dg-lsp: ${why}. Nothing is offered until it runs again.`, {
    Restart: () => commands.executeCommand("dg-lsp.restart"),
    "Show log": () => commands.executeCommand("dg-lsp.showLog"),
  });
}

/** Show an error with a button for each of `ways`, and run the one that is chosen. */
async function sayWith(sentence: string, ways: Record<string, () => Thenable<unknown>>): Promise<void> {
  const chosen = await window.showErrorMessage(sentence, ...Object.keys(ways));
  if (chosen) await ways[chosen]?.();
}

/** Ask for the wheel or clone, install it in a terminal, and start the server once it is there. */
export async function install(server: Server): Promise<Disposable | undefined> {
  if (unsupported()) {
    await sayMissing(unsupported());
    return undefined;
  }
  const options = {
    title: "The wheel dg_lsp-....whl, or the folder of a clone",
    openLabel: "Install",
    canSelectFolders: true,
    canSelectFiles: true,
  };
  const [chosen] = (await window.showOpenDialog(options)) ?? [];
  if (!chosen) return undefined;
  inTerminal(installCommand(await tool(), chosen.fsPath));
  let looks = 0;
  const timer = setInterval(() => {
    void findServer().then(({ program }) => {
      if (!program && ++looks < LOOKS) return;
      clearInterval(timer);
      if (program && !server.running) void server.restart();
    });
  }, LOOK);
  return new Disposable(() => {
    clearInterval(timer);
  });
}

/** Ask for the path of the server's program, and keep it in the user's settings, of the remote host if there is one. */
export async function setPath(): Promise<void> {
  const path = await window.showInputBox({
    title: "The path of the program dg-lsp",
    prompt: "Where `command -v dg-lsp` finds it in a terminal, such as /home/me/.dg-lsp/bin/dg-lsp",
    value: workspace.getConfiguration(SECTION).get<string | null>("path") ?? "",
    ignoreFocusOut: true,
    validateInput: async (given) => ((await runs(absolute(given))) ? undefined : `${absolute(given)} is no program`),
  });
  if (path) await setEverywhere("path", path);
}

/** Run `dg-lsp doctor` with what the settings say of the model. */
export function doctor(server: Server, flags: string[]): void {
  if (server.program) inTerminal(commandLine([server.program, "doctor", ...flags]));
  else void sayMissing(unsupported() || NOT_INSTALLED);
}

/** Show in a terminal how the gap at `position` settles. */
export function trace(server: Server, document: TextDocument, position: Position, flags: string[]): void {
  if (!server.program) return;
  if (document.isDirty || document.uri.scheme !== "file") {
    void window.showInformationMessage("dg-lsp: save the file first; the trace reads it from the disk");
    return;
  }
  // The command counts characters, and the editor UTF-16 units.
  const before = document.getText(new Range(position.line, 0, position.line, position.character));
  const place = `${document.uri.fsPath}:${position.line + 1}:${Array.from(before).length + 1}`;
  inTerminal(commandLine([server.program, "trace", place, ...flags]));
}

function inTerminal(command: string): void {
  const cwd = workspace.workspaceFolders?.[0]?.uri ?? homedir();
  const terminal = window.terminals.find(({ name, exitStatus }) => name === "dg-lsp" && !exitStatus);
  const shown = terminal ?? window.createTerminal({ name: "dg-lsp", cwd });
  shown.show();
  shown.sendText(command);
}

async function tool(): Promise<string | undefined> {
  for (const name of ["uv", "pipx"]) if (await onPath(name)) return name;
  return undefined;
}
