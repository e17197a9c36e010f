// The menu of models: each with its size, memory and time on this machine; one is fetched, or used from now on.
import { ProgressLocation, type QuickPickItem, window, workspace } from "vscode";
import type { Server } from "./client";
import type { Model, Models } from "./protocol";
import { SECTION, setEverywhere } from "./settings";

const PATIENCE = 500; // ms that a menu of other things waits for the better model

type Row = QuickPickItem & { model: Model };

/** The name of a model that is better on this machine, if the server says so in time. */
export async function betterModel(server: Server): Promise<string | null> {
  if (!server.running) return null;
  const late = new Promise<null>((done) => setTimeout(done, PATIENCE, null));
  const asked = models(server).then(
    ({ better }) => better,
    () => null,
  );
  return Promise.race([asked, late]);
}

function models(server: Server): Promise<Models> {
  return server.request("dg-lsp/models", {});
}

/** Have the user choose a model, fetch it if it is not here, and use it from now on. */
export async function chooseModel(server: Server): Promise<void> {
  try {
    const found = await models(server);
    const title = found.better ? `dg-lsp: better on this machine: ${found.better}` : "dg-lsp: models";
    const chosen = await window.showQuickPick(found.models.map(row), { title, matchOnDetail: true });
    if (!chosen || chosen.model.state === "in use") return;
    const { name, state, note } = chosen.model;
    if (state === "too large") throw new Error(`${name} does not fit this machine${note ? `: ${note}` : ""}`);
    if (state === "not fetched" && !(await fetched(server, name))) return;
    await server.command("dg-lsp.useModel", name);
    // What the user has set would hold again at the next start; an unset one leaves the choice to the server.
    const set = workspace.getConfiguration(SECTION).inspect<string | null>("checkpoint")?.globalValue;
    if (set) await server.keepRunning(() => setEverywhere("checkpoint", name));
  } catch (error) {
    void window.showErrorMessage(`dg-lsp: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** A model as a row of the menu. */
export function row(model: Model): Row {
  const { name, bytes, memoryBytes, secondsPerLine, can, state, note } = model;
  const icon = { "in use": "check", fetched: "database", "not fetched": "cloud-download", "too large": "error" }[state];
  const size = state === "not fetched" ? `${megabytes(bytes)} to download` : megabytes(bytes);
  // Nothing is known of a model that another machine runs.
  const sizes = bytes ? [size, `${(memoryBytes / 1e9).toFixed(1)} GB of memory`] : [];
  const time = secondsPerLine === null ? [] : [`${secondsPerLine.toFixed(1)} s for a line here`];
  return {
    model,
    label: `$(${icon}) ${name}`,
    description: [state, ...sizes, ...time].join(" · "),
    detail: [...(note ? [note] : []), `can: ${can.join(", ")}`].join(" · "),
  };
}

/** Fetch a model with its progress in sight; whether it was fetched, which the user may have cancelled. */
async function fetched(server: Server, name: string): Promise<boolean> {
  const options = { location: ProgressLocation.Notification, title: `dg-lsp: fetching ${name}`, cancellable: true };
  return window.withProgress(options, async (progress, token) => {
    let done = 0;
    const listening = server.onProgress(({ message, percentage }) => {
      const increment = percentage === undefined ? 0 : Math.max(percentage - done, 0);
      done += increment;
      progress.report({ increment, ...(message && { message }) });
    });
    try {
      await server.command("dg-lsp.fetchModel", name, token);
      return true;
    } catch (error) {
      if (token.isCancellationRequested) return false;
      throw error;
    } finally {
      listening.dispose();
    }
  });
}

function megabytes(bytes: number): string {
  return bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}
