// The settings that are sent to the server: only those that somebody has set. Those that choose the model and device come
// only from the user's own settings, never from a workspace's, and are sent once, when the server starts.
import { ConfigurationTarget, workspace } from "vscode";

export const SECTION = "dg-lsp";

/** The settings that are for this extension and that the server does not know. */
const OURS = new Set(["path", "preview", "showDrafts"]);

/** The part of package.json that is read here. */
export interface Manifest {
  contributes: { configuration: { properties: Record<string, { scope?: string }> } };
}

/** The settings that belong to the machine, for the server's initialization. */
export function ofMachine(manifest: Manifest): Record<string, unknown> {
  return settingsOf(manifest, (scope) => scope === "machine");
}

/** The settings that belong to a window, for the server's `workspace/configuration`. */
export function ofWindow(manifest: Manifest): Record<string, unknown> {
  return settingsOf(manifest, (scope) => scope !== "machine");
}

/** The keys of the settings that need another start of the server. */
export function keysOfMachine(manifest: Manifest): string[] {
  const all = Object.entries(manifest.contributes.configuration.properties);
  return all.filter(([, { scope }]) => scope === "machine").map(([key]) => key);
}

function settingsOf(manifest: Manifest, wanted: (scope?: string) => boolean): Record<string, unknown> {
  const settings = workspace.getConfiguration(SECTION);
  const told: Record<string, unknown> = {};
  for (const [key, { scope }] of Object.entries(manifest.contributes.configuration.properties)) {
    const name = key.slice(SECTION.length + 1);
    const value: unknown = scope === "machine" ? settings.inspect(name)?.globalValue : settings.get(name);
    if (wanted(scope) && !OURS.has(name) && value !== null && value !== undefined) told[name] = value;
  }
  return told;
}

/** Set `name` for this workspace, or for the user where no folder is open. */
export async function setHere(name: string, value: unknown): Promise<void> {
  const target = workspace.workspaceFolders ? ConfigurationTarget.Workspace : ConfigurationTarget.Global;
  await workspace.getConfiguration(SECTION).update(name, value, target);
}

/** Set `name` in the user's settings. */
export async function setEverywhere(name: string, value: unknown): Promise<void> {
  await workspace.getConfiguration(SECTION).update(name, value, ConfigurationTarget.Global);
}
