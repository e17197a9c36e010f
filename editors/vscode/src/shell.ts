// Command lines for a terminal. Nothing of the editor is needed here, so that it can be tried without one.

/** The settings that the command line has an option for, too: which model fills, where, and how hard it tries. */
const OPTIONS = [
  ...["checkpoint", "device", "weightBits", "threads", "effort", "seed", "deadline"],
  ...["engineUrl", "engineTokenFile", "engineCa", "engineFallback"],
];

/** The options of the command line for what is set, such as `--engine-url`; a token is only ever named by its file. */
export function flagsFrom(settings: Record<string, unknown>): string[] {
  return OPTIONS.flatMap((name) => {
    const value = settings[name];
    if (!["string", "number", "boolean"].includes(typeof value)) return [];
    return [`--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`, String(value)];
  });
}

/** The reason why the server cannot run on this system, with the fix; "" where it can. In WSL the system is Linux. */
export function unsupported(platform: string = process.platform): string {
  if (platform !== "win32") return "";
  return (
    "dg-lsp does not run on Windows itself. Install WSL (wsl --install in PowerShell) and dg-lsp inside it, then open " +
    'this folder with the command "WSL: Open Folder in WSL..." and install this extension there'
  );
}

/** `word` for a POSIX shell. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** A program and its arguments as a line for the shell of a terminal. */
export function commandLine(words: string[]): string {
  return words.map(quoted).join(" ");
}
