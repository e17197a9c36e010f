// The life of the server: start, stop, restart, one after another and never two at once; and what happens when it dies.
import {
  commands,
  EventEmitter,
  type CancellationToken,
  type Disposable,
  type InlineCompletionContext,
  type LogOutputChannel,
  type Position,
  type TextDocument,
} from "vscode";
import {
  CloseAction,
  type DynamicFeature,
  ErrorAction,
  ExecuteCommandRequest,
  InlineCompletionRequest,
  LanguageClient,
  type Middleware,
  type StaticFeature,
  TransportKind,
  type WorkDoneProgressBegin,
  type WorkDoneProgressReport,
} from "vscode-languageclient/node";
import { SELECTOR } from "./languages";
import { type Draft, type GhostItem, type Pair, type Status } from "./protocol";
import { type Found, findServer } from "./server";
import { AWAY, environment } from "./shell";

const CRASHES = 5; // this many in ...
const CRASH_WINDOW = 180_000; // ... so many milliseconds, and the user decides whether to continue
const LAST_WORDS = 1000; // ms that a server's error output may still come after its end

/** The requests for which the language client registers nothing. */
const OWN: readonly string[] = [ExecuteCommandRequest.method, InlineCompletionRequest.method];

/** The state of the server itself, apart from its engine. */
export type Life =
  | { phase: "stopped" | "starting" | "restarting" | "running" }
  | { phase: "missing" | "failed"; why: string };

/**
 * A language client that leaves the server's commands unregistered, since their names are not ours alone, and its ghost
 * text, whose provider `Ghost` registers; and that logs errors instead of showing each: what the user has to know is in
 * the status item and in our own messages.
 */
class Client extends LanguageClient {
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    const type = "registrationType" in feature ? feature.registrationType : undefined;
    if (!OWN.includes(type?.method ?? "")) super.registerFeature(feature);
  }

  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

export class Server implements Disposable {
  private readonly changed = new EventEmitter<Life>();
  private readonly statusHeard = new EventEmitter<Status>();
  private readonly draftHeard = new EventEmitter<Draft>();
  private readonly growthHeard = new EventEmitter<{ uri: string }>();
  private readonly progressHeard = new EventEmitter<WorkDoneProgressBegin | WorkDoneProgressReport>();
  private client: Client | undefined;
  private queue: Promise<void> = Promise.resolve();
  private crashes: number[] = [];
  private state: Life = { phase: "stopped" };
  private kept = false;
  private where: Found | undefined;
  private lastWords: Promise<string> = Promise.resolve("");

  readonly onLife = this.changed.event;
  readonly onStatus = this.statusHeard.event;
  readonly onDraft = this.draftHeard.event;
  readonly onGrowth = this.growthHeard.event;
  readonly onProgress = this.progressHeard.event;

  constructor(
    private readonly log: LogOutputChannel,
    private readonly middleware: Middleware,
    private readonly options: () => Record<string, unknown>,
  ) {}

  get life(): Life {
    return this.state;
  }

  /** The server's program, if it was found. */
  get program(): string | undefined {
    return this.where?.program;
  }

  get running(): boolean {
    return this.client?.isRunning() ?? false;
  }

  /** Change settings that the server has applied already, for which it is not started again. */
  async keepRunning(change: () => Promise<void>): Promise<void> {
    this.kept = true;
    try {
      await change();
    } finally {
      this.kept = false;
    }
  }

  /** Start the server again for changed settings. */
  settingsChanged(): void {
    if (!this.kept) void this.restart();
  }

  /** Stop the server if it runs and start it again; several calls are done one after another. */
  restart(): Promise<void> {
    this.crashes = [];
    this.abandon();
    return this.next(async () => {
      await this.stopClient();
      await this.startClient("starting");
    });
  }

  /** Wait for a start that is under way; whether the server then runs. */
  async ready(): Promise<boolean> {
    await this.queue;
    return this.running;
  }

  stop(): Promise<void> {
    this.abandon();
    return this.next(() => this.stopClient());
  }

  dispose(): void {
    void this.stop();
    const emitters = [this.changed, this.statusHeard, this.draftHeard, this.growthHeard, this.progressHeard];
    for (const emitter of emitters) emitter.dispose();
  }

  /** Send a request that the server has beyond the protocol. */
  async request<Result>(method: string, params: unknown, token?: CancellationToken): Promise<Result> {
    if (!this.client?.isRunning()) throw new Error("the server does not run");
    return token ? this.client.sendRequest(method, params, token) : this.client.sendRequest(method, params);
  }

  /** Run one of the server's commands. */
  command<Result>(name: string, argument: unknown, token?: CancellationToken): Promise<Result> {
    return this.request(ExecuteCommandRequest.method, { command: name, arguments: [argument] }, token);
  }

  notify(method: string, params: unknown): void {
    if (this.client?.isRunning()) void this.client.sendNotification(method, params);
  }

  uriOf(document: TextDocument): string {
    return this.client?.code2ProtocolConverter.asUri(document.uri) ?? document.uri.toString();
  }

  /** The items of the server for ghost text; none if it does not run. */
  async ghostText(
    document: TextDocument,
    position: Position,
    context: InlineCompletionContext,
    token: CancellationToken,
  ): Promise<GhostItem[]> {
    const { client } = this;
    if (!client?.isRunning()) return [];
    const params = client.code2ProtocolConverter.asInlineCompletionParams(document, position, context);
    const type = InlineCompletionRequest.type;
    const answer = await client.sendRequest(type, params, token).catch((error: unknown) => {
      return client.handleFailedRequest(type, token, error, null);
    });
    const given: { pairs?: Pair[]; insertText: unknown }[] = Array.isArray(answer) ? answer : (answer?.items ?? []);
    const found = await client.protocol2CodeConverter.asInlineCompletionResult(answer, token);
    const items = Array.isArray(found) ? found : (found?.items ?? []);
    return items.map((item, index) => Object.assign(item, { pairs: given[index]?.pairs ?? [] }));
  }

  get converter(): LanguageClient["protocol2CodeConverter"] | undefined {
    return this.client?.protocol2CodeConverter;
  }

  private next(work: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(work).catch((error: unknown) => {
      this.log.error(String(error));
    });
    return this.queue;
  }

  /** End a start that is under way: a program that never answers would hold up all that comes after it. */
  private abandon(): void {
    const client = this.client;
    if (!client || client.isRunning()) return;
    this.client = undefined;
    client.serverProcess?.kill("SIGKILL");
  }

  private enter(life: Life): void {
    this.state = life;
    this.changed.fire(life);
    void commands.executeCommand("setContext", "dg-lsp.running", life.phase === "running");
  }

  private async startClient(phase: "starting" | "restarting"): Promise<void> {
    this.enter({ phase });
    this.where = await findServer();
    if (this.where.program === undefined) {
      this.log.error(this.where.why);
      this.enter({ phase: "missing", why: this.where.why });
      return;
    }
    this.log.info(`the server is ${this.where.program}, from ${this.where.origin}`);
    const client = this.makeClient(this.where.program);
    this.client = client;
    try {
      await client.start();
      if (this.client === client) this.enter({ phase: "running" });
    } catch (error) {
      const words = await this.lastWordsOf();
      this.log.error(String(error));
      this.failed(client, `the server does not start${words && `: ${words}`}`);
    }
  }

  private makeClient(program: string): Client {
    const client = new Client(
      "dg-lsp",
      "dg-lsp",
      { command: program, transport: TransportKind.stdio, options: { cwd: AWAY, env: environment() } },
      {
        documentSelector: [...SELECTOR],
        outputChannel: this.log,
        middleware: {
          ...this.middleware,
          handleWorkDoneProgress: (token, value, next) => {
            if (value.kind !== "end") this.progressHeard.fire(value);
            next(token, value);
          },
        },
        initializationOptions: this.options,
        initializationFailedHandler: () => false,
        errorHandler: {
          error: () => ({ action: ErrorAction.Continue, handled: true }),
          closed: () => {
            void this.died(client);
            return { action: CloseAction.DoNotRestart, handled: true };
          },
        },
        stdioOptions: { stdout: () => undefined, stderr: this.keepLog },
      },
    );
    client.registerFeature({
      fillClientCapabilities: (capabilities) => {
        capabilities.textDocument = { ...capabilities.textDocument, inlineCompletion: {} };
        capabilities.experimental = {
          dgLsp: {
            status: true,
            drafts: true,
            confirm: true,
            covers: true,
            apart: true,
            grows: true,
            inside: true,
            pairs: true,
          },
        };
      },
      initialize: () => undefined,
      getState: () => ({ kind: "static" }),
      clear: () => undefined,
    });
    client.onNotification("dg-lsp/status", (status: Status) => {
      this.statusHeard.fire(status);
    });
    client.onNotification("dg-lsp/grown", (about: { uri: string }) => {
      this.growthHeard.fire(about);
    });
    client.onNotification("dg-lsp/draft", (draft: Draft) => {
      this.draftHeard.fire(draft);
    });
    return client;
  }

  private async stopClient(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    await client?.dispose().catch((error: unknown) => {
      this.log.warn(`stopping: ${String(error)}`);
    });
    this.enter({ phase: "stopped" });
  }

  /** The server is gone although nobody has stopped it: start it again, unless it dies over and over. */
  private async died(client: Client): Promise<void> {
    if (this.client !== client) return;
    const now = Date.now();
    this.crashes = [...this.crashes.filter((then) => now - then < CRASH_WINDOW), now];
    if (this.crashes.length >= CRASHES) {
      this.failed(client, `the server ended ${CRASHES} times within three minutes`);
      return;
    }
    this.log.warn("the server ended; it is started again");
    await this.next(async () => {
      if (this.client !== client) return; // a restart was asked for meanwhile
      await this.stopClient();
      await this.startClient("restarting");
    });
  }

  private failed(client: Client, why: string): void {
    if (this.client !== client) return; // a restart was asked for meanwhile
    this.client = undefined;
    this.log.error(why);
    this.enter({ phase: "failed", why });
  }

  /** The last line that a server which has ended wrote beside its log; "" if there is none. */
  private lastWordsOf(): Promise<string> {
    return Promise.race([this.lastWords, new Promise<string>((done) => setTimeout(done, LAST_WORDS, ""))]);
  }

  /** The server's log into ours, line by line, each at its own level. */
  private readonly keepLog = (stream: NodeJS.ReadableStream): void => {
    let [rest, last] = ["", ""];
    stream.setEncoding("utf8");
    stream.on("data", (piece: string) => {
      const lines = (rest + piece).split(/\r?\n/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (/\b(ERROR|CRITICAL|Traceback)\b/.test(line)) this.log.error(line);
        else if (/\bWARNING\b/.test(line)) this.log.warn(line);
        else if (/\bDEBUG\b/.test(line)) this.log.debug(line);
        else if (line) this.log.info(line);
        if (line.trim() && !/\b(DEBUG|INFO|WARNING)\b/.test(line)) last = line.trim();
      }
    });
    this.lastWords = new Promise((done) => {
      stream.on("end", () => {
        done(rest.trim() || last);
      });
    });
  };
}
