// The path of the server's program: the user's setting, the program that installed this extension, the PATH,
// ~/.local/bin. None is taken from a workspace, trusted or not, and nothing is downloaded.
import { constants } from "node:fs";
import { access, readFile, stat } from "node:fs/promises";
import * as path from "node:path";
import { workspace } from "vscode";
import { unsupported } from "./shell";

/** The program and where it was found; or why there is none. */
export type Found = { program: string; origin: string } | { program: undefined; why: string };

const NAME = "dg-lsp";
const INSTALLER = path.join(__dirname, "..", "server.txt"); // the path of the program, by `dg-lsp editor install`
/** The message where no server is found. */
export const NOT_INSTALLED = "the server dg-lsp is not installed";

export async function findServer(): Promise<Found> {
  const why = unsupported();
  if (why) return { program: undefined, why };
  const given = workspace.getConfiguration("dg-lsp").inspect<string | null>("path")?.globalValue;
  if (given) {
    const program = absolute(given);
    if (await runs(program)) return { program, origin: "the setting dg-lsp.path" };
    return { program: undefined, why: `the setting dg-lsp.path names ${program}, which is no program` };
  }
  const installer = (await readFile(INSTALLER, "utf8").catch(() => "")).trim();
  if (path.isAbsolute(installer) && (await runs(installer)))
    return { program: installer, origin: "the program that installed this extension" };
  const program = await onPath(NAME);
  if (program) return { program, origin: "the PATH" };
  // Where README, pipx and uv put it; an editor that a desktop has started may not have it on its PATH.
  const local = process.env.HOME && path.join(process.env.HOME, ".local", "bin", NAME);
  if (local && (await runs(local))) return { program: local, origin: "~/.local/bin" };
  return { program: undefined, why: NOT_INSTALLED };
}

/** The absolute path that a user means by `given`, where ~ is the home. */
export function absolute(given: string): string {
  return path.resolve(given.trim().replace(/^~(?=$|[/\\])/, process.env.HOME ?? "~"));
}

/** The first program `name` in an absolute folder of the PATH. */
export async function onPath(name: string): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? "").split(path.delimiter)) {
    const program = path.join(folder, name);
    // A relative folder would be one of the workspace's.
    if (path.isAbsolute(folder) && (await runs(program))) return program;
  }
  return undefined;
}

/** Return whether `program` is a file that can be run. */
export async function runs(program: string): Promise<boolean> {
  try {
    await access(program, constants.X_OK);
    return await isFile(program);
  } catch {
    return false;
  }
}

/** Return whether `file` is a file. */
export async function isFile(file: string): Promise<boolean> {
  return (await stat(file).catch(() => undefined))?.isFile() ?? false;
}
