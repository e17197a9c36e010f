// The menu after the status item.
import { QuickPickItemKind, type QuickPickItem, window, workspace } from "vscode";
import type { Server } from "./client";
import type { Ghost } from "./ghost";
import { LANGUAGES } from "./languages";
import { betterModel } from "./models";
import { isOn, SECTION, setEverywhere, setHere } from "./settings";
import { DEMONSTRATION, NOTHING, type StatusItem, type Words } from "./status";

const EFFORTS = ["low", "normal", "high"];
const SNOOZE = [5, 15, 60]; // minutes

type Entry = QuickPickItem & { run?: () => unknown };

/** Commands that an entry runs, by their own titles. */
export type Run = (command: string) => Thenable<unknown>;

export async function showMenu(status: StatusItem, ghost: Ghost, server: Server, run: Run): Promise<void> {
  const { word, why, lines, alarm } = status.words;
  const better = await betterModel(server);
  const entries: Entry[] = [
    { label: `dg-lsp: ${word || why}`, ...(word && { detail: why }) },
    ...lines.filter((line) => line.startsWith(NOTHING)).map(row),
    ...fixes(status.words, run),
    ...(better ? [{ label: `$(sparkle) Better on this machine: ${better}`, run: () => run("dg-lsp.chooseModel") }] : []),
    { label: "", kind: QuickPickItemKind.Separator },
    automatic(),
    ...language(),
    ...snooze(ghost, status),
    ...(server.running ? [{ label: "$(database) Model ...", run: () => run("dg-lsp.chooseModel") }] : []),
    { label: "$(dashboard) Effort ...", description: effortNow(), run: chooseEffort },
    { label: "", kind: QuickPickItemKind.Separator },
    { label: "$(list-tree) Fill all stubs in this file", run: () => run("dg-lsp.fillStubs") },
    { label: "$(graph-line) Show how the gap at the cursor settles", run: () => run("dg-lsp.showTrace") },
    { label: "$(output) Show the log", run: () => run("dg-lsp.showLog") },
    ...(alarm ? [] : [restart(run)]),
    { label: "$(pulse) Check the installation (doctor)", run: () => run("dg-lsp.doctor") },
    { label: "status", kind: QuickPickItemKind.Separator },
    ...lines.filter((line) => line !== DEMONSTRATION && !line.startsWith(NOTHING)).map(row),
  ];
  const chosen = await window.showQuickPick(entries, { title: "dg-lsp" });
  await chosen?.run?.();
  status.draw();
}

/** A line of the status; the text after its first colon is shown below, since the menu cuts long rows off. */
function row(line: string): Entry {
  const [label = "", ...rest] = line.split(": ");
  return rest.length ? { label, detail: rest.join(": ") } : { label };
}

function automatic(): Entry {
  const on = isOn("automatic");
  const place = workspace.workspaceFolders ? "in this workspace" : "everywhere";
  return {
    label: on ? `$(circle-slash) Turn ghost text off ${place}` : `$(check) Turn ghost text on ${place}`,
    description: on ? "it still comes when it is asked for" : "",
    run: () => switchAutomatic(!on),
  };
}

/** Switch ghost text on or off here. What the user has switched off everywhere no workspace switches on. */
async function switchAutomatic(on: boolean): Promise<void> {
  await setHere("automatic", on ? undefined : false);
  if (on && !isOn("automatic")) await setEverywhere("automatic", undefined);
}

function language(): Entry[] {
  const here = window.activeTextEditor?.document.languageId;
  if (!here || !LANGUAGES.includes(here)) return [];
  const off = workspace.getConfiguration(SECTION).get<string[] | null>("disabledLanguages") ?? [];
  const rest = off.filter((name) => name !== here);
  if (off.includes(here)) {
    return [
      {
        label: `$(check) Turn dg-lsp on for ${here}`,
        run: () => setEverywhere("disabledLanguages", rest.length ? rest : undefined),
      },
    ];
  }
  return [
    { label: `$(circle-slash) Turn dg-lsp off for ${here}`, run: () => setEverywhere("disabledLanguages", [...off, here]) },
  ];
}

function snooze(ghost: Ghost, status: StatusItem): Entry[] {
  if (ghost.snoozed) {
    return [
      {
        label: "$(bell) End the snooze",
        run: () => {
          ghost.snooze(0);
        },
      },
    ];
  }
  return SNOOZE.map((minutes) => ({
    label: `$(bell-slash) Snooze for ${minutes} minutes`,
    run: () => {
      ghost.snooze(minutes);
      setTimeout(() => {
        status.draw();
      }, minutes * 60_000 + 50);
    },
  }));
}

function effortNow(): string {
  return workspace.getConfiguration(SECTION).get<string | null>("effort") ?? "normal";
}

async function chooseEffort(): Promise<void> {
  const chosen = await window.showQuickPick(EFFORTS, { title: "How hard to try", placeHolder: effortNow() });
  if (chosen) await setEverywhere("effort", chosen);
}

/** The entries that fix a server that does not run. */
function fixes({ word, alarm }: Words, run: Run): Entry[] {
  const missing = [
    { label: "$(terminal) Install the server in a terminal", run: () => run("dg-lsp.install") },
    { label: "$(folder-opened) Set the path of the server", run: () => run("dg-lsp.setPath") },
  ];
  return [...(alarm ? [restart(run)] : []), ...(word === "not installed" ? missing : [])];
}

function restart(run: Run): Entry {
  return { label: "$(debug-restart) Restart the server", run: () => run("dg-lsp.restart") };
}
