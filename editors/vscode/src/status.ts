// The item in the status bar: what the server and its engine do, and why nothing was offered.
import { type Disposable, MarkdownString, StatusBarAlignment, ThemeColor, window } from "vscode";
import type { Life, Server } from "./client";
import type { Fills } from "./fill";
import type { Ghost } from "./ghost";
import { LANGUAGES } from "./languages";
import type { Status } from "./protocol";
import { SCHEME } from "./review";

const IDLE = "no engine is running; the first request starts it"; // as the server says it
/** The line on the embedded model, of which the menu has an entry that does it. */
export const DEMONSTRATION = "that is a demonstration; a click shows the models that write better";

/** The beginning of the line that says why nothing was offered. */
export const NOTHING = "nothing offered: ";

const GROWING = "more is coming below the ghost text";

const CROSSING = 1000; // ms in which the status of a fill may come after its end

/** The words in the status bar. */
export interface Words {
  icon: string;
  /** One or two words; "" where the icon is enough. */
  word: string;
  /** The sentence after it. */
  why: string;
  alarm?: boolean;
}

/** The words for the state of the server, the engine's status and how long nothing is wanted. */
export function wordsFor(life: Life, status: Status | undefined, snoozed: Date | undefined): Words {
  if (life.phase === "missing") return { icon: "error", word: "not installed", why: life.why, alarm: true };
  if (life.phase === "failed") return { icon: "error", word: "stopped", why: life.why, alarm: true };
  if (life.phase === "stopped") return { icon: "debug-disconnect", word: "stopped", why: "the server was stopped" };
  if (life.phase !== "running") return { icon: "loading~spin", word: life.phase, why: `the server is ${life.phase}` };
  if (status?.state === "failed") return { icon: "error", word: "failed", why: status.why ?? "", alarm: true };
  if (status?.state === "off") return { icon: "circle-slash", word: "off", why: status.why ?? "" };
  if (snoozed) {
    const until = snoozed.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    return { icon: "bell-slash", word: "snoozed", why: `nothing is offered by itself until ${until}` };
  }
  if (status?.growing && (status.state === "ready" || status.state === "busy")) {
    return { icon: "sync~spin", word: "", why: GROWING };
  }
  switch (status?.state) {
    case "starting":
      return { icon: "loading~spin", word: "starting", why: status.why ?? "the engine is starting" };
    case "loading":
      return { icon: "loading~spin", word: `loading ${Math.round(status.done * 100)} %`, why: status.why ?? "" };
    case "ready":
      return { icon: "check", word: "", why: "ready" };
    case "slow":
      return { icon: "watch", word: "slow", why: status.why ?? "" };
    case "busy":
      return { icon: "sync~spin", word: "", why: "busy" };
    default:
      return { icon: "circle-outline", word: "", why: status?.why ?? IDLE };
  }
}

/** Sentences on the engine and on its last answer, one a line. dismissed: the user did not want that answer. */
export function details(status: Status | undefined, dismissed: boolean): string[] {
  if (!status) return [];
  const lines = [];
  if (status.checkpoint) lines.push(`model ${status.checkpoint}${status.device && ` on ${status.device}`}`);
  if (status.choice) lines.push(status.choice);
  if (status.checkpoint === "embedded") lines.push(DEMONSTRATION);
  const steps = status.steps ? `, ${status.steps} steps` : "";
  if (status.milliseconds) lines.push(`last fill: ${Math.round(status.milliseconds)} ms${steps}`);
  const last = status.last;
  if (last && !last.offered && last.why) lines.push(`${NOTHING}${last.why}`);
  if (last?.offered && dismissed) lines.push(`${NOTHING}you dismissed what was offered here`);
  else if (last?.offered && last.note) lines.push(`last offer: ${last.note}`);
  if (status.use) lines.push(`your use: ${status.use}`);
  return lines;
}

export class StatusItem implements Disposable {
  private readonly item = window.createStatusBarItem("dg-lsp.status", StatusBarAlignment.Right, 100);
  private readonly listeners: Disposable[];
  private status: Status | undefined;
  private here: Status | undefined;
  private asking = 0;
  private filled = "";
  private filledAt = 0;

  constructor(
    private readonly server: Server,
    private readonly ghost: Ghost,
    fills: Fills,
  ) {
    this.item.name = "dg-lsp";
    this.item.command = "dg-lsp.menu";
    this.listeners = [
      server.onLife(({ phase }) => {
        if (phase !== "running") this.status = this.here = undefined;
        this.draw();
        void this.ask();
      }),
      server.onStatus((status) => {
        // A newer answer is more use to know than the end of an older fill.
        const newer = status.last?.offered && JSON.stringify(status.last) !== JSON.stringify(this.status?.last);
        if (newer && Date.now() - this.filledAt > CROSSING) this.filled = "";
        this.status = status;
        this.draw();
      }),
      fills.onTold((sentence) => {
        this.filled = sentence;
        this.filledAt = Date.now();
        this.draw();
      }),
      window.onDidChangeActiveTextEditor(() => void this.ask()),
    ];
    this.draw();
  }

  /** The current words, and the lines after them. */
  get words(): Words & { lines: string[] } {
    const status = this.here?.state === "off" ? this.here : this.status;
    const words = wordsFor(this.server.life, status, this.ghost.snoozed);
    const same = `${NOTHING}${words.why}`;
    const lines = details(this.status ?? this.here, this.ghost.unwanted).filter((line) => line !== same);
    if (this.filled) lines.push(`last fill asked for: ${this.filled}`);
    return { ...words, lines };
  }

  draw(): void {
    const { icon, word, why, alarm, lines } = this.words;
    this.item.text = `$(${icon}) dg-lsp${word && `: ${word}`}`;
    this.item.tooltip = tooltip([why, ...lines, `server: ${this.server.program ?? "none"}`]);
    this.item.accessibilityInformation = { label: `dg-lsp: ${word || why}` };
    this.item.backgroundColor = alarm ? new ThemeColor("statusBarItem.errorBackground") : undefined;
    const language = window.activeTextEditor?.document.languageId;
    if (alarm || (language && LANGUAGES.includes(language))) this.item.show();
    else this.item.hide();
  }

  dispose(): void {
    for (const listener of [...this.listeners, this.item]) listener.dispose();
  }

  /** Ask the server whether something is off for the active document, and say so. */
  async ask(): Promise<void> {
    const turn = ++this.asking;
    const document = window.activeTextEditor?.document;
    this.here = undefined;
    this.draw();
    // The server does not see the two texts of a question, of which it would say that they are off.
    const served = document && LANGUAGES.includes(document.languageId) && document.uri.scheme !== SCHEME;
    if (served && this.server.running) {
      const uri = this.server.uriOf(document);
      const told = await this.server.request<Status>("dg-lsp/status", { uri }).catch(() => undefined);
      if (turn !== this.asking) return;
      this.here = told;
      if (told && told.state !== "off") this.status = told;
    }
    this.draw();
  }
}

function tooltip(lines: string[]): MarkdownString {
  const text = new MarkdownString();
  for (const line of lines.filter(Boolean)) text.appendText(line).appendMarkdown("\n\n");
  return text;
}
