// The settings that are sent to the server: only those that somebody has set, the user's and the workspace's apart,
// because a workspace may add to what protects the user and take nothing of it away. VS Code's own merged value would
// be the workspace's. Those that choose the model and device are the user's alone.
import { ConfigurationTarget, workspace } from "vscode";

export const SECTION = "dg-lsp";
/** The section that the server asks a client for which tells the user's settings apart. */
export const USER = "dg-lsp-user";

/** The settings that are for this extension and that the server does not know. */
const OURS = new Set(["path", "preview", "showDrafts"]);
/** The switches of which the protective side is on. All others that folders disagree about protect when they are off. */
const ON = new Set(["excludeIgnored"]);

/** The part of package.json that is read here. */
export interface Manifest {
  contributes: { configuration: { properties: Record<string, { scope?: string }> } };
}

/** All settings of the user, for the server's initialization, and those of a window for its question about them. */
export function ofUser(manifest: Manifest): Record<string, unknown> {
  return settingsOf(manifest, usersValue);
}

/** The settings of the workspace and its folders, for the server's `workspace/configuration`. */
export function ofWorkspace(manifest: Manifest): Record<string, unknown> {
  return settingsOf(manifest, (name, scope) => (scope === "machine" ? undefined : workspacesValue(name)));
}

/** Whether a switch is on for the server: neither the user nor the workspace has switched it off. */
export function isOn(name: string): boolean {
  return usersValue(name) !== false && workspacesValue(name) !== false;
}

/** The keys of the settings that need another start of the server. */
export function keysOfMachine(manifest: Manifest): string[] {
  const all = Object.entries(manifest.contributes.configuration.properties);
  return all.filter(([, { scope }]) => scope === "machine").map(([key]) => key);
}

function settingsOf(
  manifest: Manifest,
  valueOf: (name: string, scope?: string) => unknown,
): Record<string, unknown> {
  const told: Record<string, unknown> = {};
  for (const [key, { scope }] of Object.entries(manifest.contributes.configuration.properties)) {
    const name = key.slice(SECTION.length + 1);
    const value = OURS.has(name) ? undefined : valueOf(name, scope);
    if (value !== null && value !== undefined) told[name] = value;
  }
  return told;
}

function usersValue(name: string): unknown {
  const found = workspace.getConfiguration(SECTION).inspect(name);
  return joined(name, [found?.globalValue, found?.globalLanguageValue]);
}

function workspacesValue(name: string): unknown {
  const places = [undefined, ...(workspace.workspaceFolders ?? []).map(({ uri }) => uri)];
  const values = places.flatMap((place) => {
    const found = workspace.getConfiguration(SECTION, place).inspect(name);
    return [
      found?.workspaceValue,
      found?.workspaceLanguageValue,
      found?.workspaceFolderValue,
      found?.workspaceFolderLanguageValue,
    ];
  });
  return joined(name, values);
}

/** One value for those of several places: all entries of lists, the protective side of switches, else the first. */
function joined(name: string, values: unknown[]): unknown {
  const set = values.filter((value) => value !== null && value !== undefined);
  const lists = set.filter((value): value is unknown[] => Array.isArray(value));
  if (lists.length) return [...new Set(lists.flat())];
  const protective = ON.has(name);
  return set.includes(protective) ? protective : set[0];
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
