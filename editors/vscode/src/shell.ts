// Programs that are started in a terminal, without a shell: their arguments, folder and variables. Nothing of the editor is
// needed here, so that it can be tried without one.

/** The settings that the command line has an option for, too: which model fills, where, and how hard it tries. */
export const OPTIONS = [
  ...["checkpoint", "device", "weightBits", "threads", "effort", "seed", "deadline"],
  ...["engineUrl", "engineTokenFile", "engineCa", "engineFallback"],
];

/** The values of the setting that is an enumeration. */
const EFFORTS = ["low", "normal", "high"];

// eslint-disable-next-line no-control-regex -- they are what is looked for
const CONTROL = /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The folder in which programs are started: none of its modules, settings or environments is a workspace's. */
export const AWAY = "/";

/** `text` with an escape for each character that controls a terminal or the direction of text. */
export function visible(text: string): string {
  return text.replace(CONTROL, (found) => {
    const code = found.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16)}`;
  });
}

/** The options of the command line for what is set, such as `--engine-url`; a token is only ever named by its file. */
export function flagsFrom(settings: Record<string, unknown>): string[] {
  return OPTIONS.flatMap((name) => {
    const value = settings[name];
    const isText = typeof value === "string" && visible(value) === value;
    const isRight = name === "effort" ? isText && EFFORTS.includes(value) : isText;
    if (!isRight && !["number", "boolean"].includes(typeof value)) return [];
    return [`--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`, String(value)];
  });
}

/** The variables of a program that is started: without relative folders in lists, and without the editor's own. */
export function environment(variables: Record<string, string | undefined> = process.env): Record<string, string> {
  const own: Record<string, string> = {};
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined || /^(ELECTRON|VSCODE)_/.test(name)) continue;
    const isList = name === "PATH" || name === "PYTHONPATH";
    const kept = isList ? value.split(":").filter((folder) => folder.startsWith("/")).join(":") : value;
    if (kept || !isList) own[name] = kept;
  }
  return own;
}

/** The reason why the server cannot run on this system, with the fix; "" where it can. In WSL the system is Linux. */
export function unsupported(platform: string = process.platform): string {
  if (platform !== "win32") return "";
  return (
    "dg-lsp does not run on Windows itself. Install WSL (wsl --install in PowerShell) and dg-lsp inside it, then open " +
    'this folder with the command "WSL: Open Folder in WSL..." and install this extension there'
  );
}

/** A program and its arguments as a line to be read by a person, who may copy it to a shell; nothing is ever typed there. */
export function commandLine(words: string[]): string {
  return visible(words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(" "));
}
