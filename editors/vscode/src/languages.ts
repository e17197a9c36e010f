import { activationEvents } from "../package.json";

/** The language ids that the server has grammars for. */
export const LANGUAGES: readonly string[] = activationEvents.map((event) => event.slice("onLanguage:".length));

/** The schemes of what a person edits; on a remote host files are `file`, too. */
const SCHEMES = ["file", "untitled", "vscode-notebook-cell"];
/** The documents that the server is for. Other schemes are views, such as `git` for the left side of a diff. */
export const SELECTOR: readonly { scheme: string; language: string }[] = SCHEMES.flatMap((scheme) =>
  LANGUAGES.map((language) => ({ scheme, language })),
);
