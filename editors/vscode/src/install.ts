// The message where the server is missing, and the command run in a terminal for the user to see.
import * as path from "node:path";
import { commands, Disposable, type Terminal, type TextDocument, type Position, Range, window, workspace } from "vscode";
import type { Server } from "./client";
import { absolute, findServer, isFile, NOT_INSTALLED, onPath, runs } from "./server";
import { SECTION, setEverywhere } from "./settings";
import { AWAY, commandLine, environment, flagsFrom, OPTIONS, unsupported, visible } from "./shell";

const LOOK = 3000; // ms between two looks for a server that is being installed
const LOOKS = 200;
const SECOND = "Try without torch's own index";

/** The command that installs `what`, a wheel or a clone, by the best tool on this machine; uv finds torch's build. */
export function installCommand(tool: string | undefined, what: string): string[] {
  if (tool === "uv") return ["uv", "tool", "install", "--torch-backend", "auto", "--", what];
  if (tool === "pipx") return ["pipx", "install", what];
  return ["python3", "-m", "pip", "install", "--user", "--", what];
}

/** The commands that install `what`: the script beside it, which has a second way of its own, or that of `tool`; uv has
 * a second way where torch's own index cannot be reached. */
async function waysToInstall(tool: string | undefined, what: string): Promise<string[][]> {
  const wheel = what.endsWith(".whl");
  const folder = wheel ? path.dirname(what) : what;
  const script = path.join(folder, "install.sh");
  if (await isFile(script)) return [["sh", script, ...(wheel ? [what] : [])]];
  const ways = [installCommand(tool, what)];
  return tool === "uv" ? [...ways, ["uv", "tool", "install", "--find-links", folder, "--", what]] : ways;
}

/** Say that the server is missing, and how to get it. */
export async function sayMissing(why: string): Promise<void> {
  if (unsupported()) {
    await sayWith(why, {});
    return;
  }
  const command = commandLine(installCommand(await tool(), "PATH/TO/dg_lsp.whl"));
  const sentence = `dg-lsp: ${why}. Install it from its wheel or a clone: ${command}`;
  await sayWith(sentence, {
    "Install in a terminal ...": () => commands.executeCommand("dg-lsp.install"),
    "Set its path ...": () => commands.executeCommand("dg-lsp.setPath"),
    Restart: () => commands.executeCommand("dg-lsp.restart"),
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
  const attempts: Disposable[] = [];
  const attempt = async (ways: string[][]) => {
    attempts.push(...(await start(server, ways, attempt)));
  };
  await attempt(await waysToInstall(await tool(), chosen.fsPath));
  return new Disposable(() => {
    Disposable.from(...attempts).dispose();
  });
}

/** Run the first of `ways` in a terminal, and start the server once it is there; where it fails, offer it again and the
 * next one. Return the listeners. */
async function start(server: Server, ways: string[][], again: (ways: string[][]) => Promise<void>): Promise<Disposable[]> {
  const [[name = "", ...words] = [], ...others] = ways;
  const program = await onPath(name);
  if (!program) {
    await window.showErrorMessage(`dg-lsp: ${name} is not on the PATH; install it, or pipx or uv`);
    return [];
  }
  const terminal = inTerminal("install", [program, ...words]);
  const closing = window.onDidCloseTerminal((closed) => {
    if (closed !== terminal || !closed.exitStatus?.code) return;
    const command = commandLine([name, ...words]);
    void sayWith(`dg-lsp: it was not installed; a terminal of yours shows why: ${command}`, {
      "Try again": () => again(ways),
      ...(others.length && { [SECOND]: () => again(others) }),
    });
  });
  let looks = 0;
  const timer = setInterval(() => {
    void findServer().then(({ program }) => {
      if (!program && ++looks < LOOKS) return;
      clearInterval(timer);
      if (program && !server.running) void server.restart();
    });
  }, LOOK);
  const looking = new Disposable(() => {
    clearInterval(timer);
  });
  return [closing, looking];
}

/** Ask for the path of the server's program, and keep it in the user's settings, of the remote host if there is one. */
export async function setPath(): Promise<void> {
  const path = await window.showInputBox({
    title: "The path of the program dg-lsp",
    prompt: "Where `command -v dg-lsp` finds it in a terminal, such as /home/me/.dg-lsp/bin/dg-lsp",
    value: workspace.getConfiguration(SECTION).get<string | null>("path") ?? "",
    ignoreFocusOut: true,
    validateInput: async (given) => ((await runs(absolute(given))) ? undefined : visible(`${absolute(given)} is no program`)),
  });
  if (path) await setEverywhere("path", path);
}

/** Run `dg-lsp doctor` with what the user's settings say of the model. */
export function doctor(server: Server): void {
  if (server.program) inTerminal("doctor", [server.program, "doctor", ...flags()]);
  else void sayMissing(unsupported() || NOT_INSTALLED);
}

/** Show in a terminal how the gap at `position` settles. */
export function trace(server: Server, document: TextDocument, position: Position): void {
  if (!server.program) return;
  if (document.isDirty || document.uri.scheme !== "file") {
    void window.showInformationMessage("dg-lsp: save the file first; the trace reads it from the disk");
    return;
  }
  // The command counts characters, and the editor UTF-16 units.
  const before = document.getText(new Range(position.line, 0, position.line, position.character));
  const place = `${document.uri.fsPath}:${position.line + 1}:${Array.from(before).length + 1}`;
  inTerminal("trace", [server.program, "trace", ...flags(), "--", place]);
}

/** The options for what the user has set; what a workspace says goes to no program. */
function flags(): string[] {
  const settings = workspace.getConfiguration(SECTION);
  return flagsFrom(Object.fromEntries(OPTIONS.map((name) => [name, settings.inspect(name)?.globalValue])));
}

/** Show a terminal in which a program runs, without a shell: nothing that a workspace names is typed or interpreted. */
function inTerminal(what: string, [program, ...words]: [string, ...string[]]): Terminal {
  const name = `dg-lsp ${what}`;
  window.terminals.find((terminal) => terminal.name === name)?.dispose();
  const terminal = window.createTerminal({
    name,
    shellPath: program,
    shellArgs: words,
    cwd: AWAY,
    // Exactly these: a workspace may have variables for terminals in its settings. A terminal closes with its program, so
    // that waits for a key.
    env: { ...environment(), DG_LSP_WAIT: "1" },
    strictEnv: true,
    isTransient: true,
  });
  terminal.show();
  return terminal;
}

async function tool(): Promise<string | undefined> {
  for (const name of ["uv", "pipx"]) if (await onPath(name)) return name;
  return undefined;
}
