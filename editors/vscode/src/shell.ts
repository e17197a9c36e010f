// Command lines for a terminal. Nothing of the editor is needed here, so that it can be tried without one.

/** The settings that the command line has an option for, too: which model fills, where, and how hard it tries. */
const OPTIONS = [
  ...["checkpoint", "device", "threads", "effort", "seed", "deadline"],
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

/** `word` for the shell of a terminal, which is PowerShell on Windows and a POSIX shell elsewhere. */
export function quoted(word: string, platform: string = process.platform): string {
  const plain = platform === "win32" ? /^[\w+=:./\\-]+$/ : /^[\w@%+=:,./-]+$/;
  if (plain.test(word)) return word;
  return `'${word.replaceAll("'", platform === "win32" ? "''" : `'\\''`)}'`;
}

/** A program and its arguments as a line for the shell of a terminal. */
export function commandLine([program = "", ...rest]: string[], platform: string = process.platform): string {
  const called = quoted(program, platform);
  // PowerShell takes a quoted word for a text, unless `&` calls it.
  const run = platform === "win32" && called !== program ? `& ${called}` : called;
  return [run, ...rest.map((word) => quoted(word, platform))].join(" ");
}
