import { activationEvents } from "../package.json";

/** The language ids that the server has grammars for. */
export const LANGUAGES: readonly string[] = activationEvents.map((event) => event.slice("onLanguage:".length));
