// What the server is told of the user's settings: only what somebody has set; and what says which model runs where,
// only from the user's own settings, never from a workspace's.
import { ConfigurationTarget, workspace } from "vscode";

export const SECTION = "dg-lsp";

/** The settings that are for this extension and that the server does not know. */
const OURS = new Set(["path", "preview", "showDrafts"]);

/** The part of package.json that is read here. */
export interface Manifest {
  contributes: { configuration: { properties: Record<string, { scope?: string }> } };
}

/** The answer to the server's `workspace/configuration`. */
export function settingsForServer(manifest: Manifest): Record<string, unknown> {
  const settings = workspace.getConfiguration(SECTION);
  const told: Record<string, unknown> = {};
  for (const [key, { scope }] of Object.entries(manifest.contributes.configuration.properties)) {
    const name = key.slice(SECTION.length + 1);
    const value: unknown = scope === "machine" ? settings.inspect(name)?.globalValue : settings.get(name);
    if (!OURS.has(name) && value !== null && value !== undefined) told[name] = value;
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
