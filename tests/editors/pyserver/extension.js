// The completions of jedi-language-server, by as little of the protocol as they need. The environment's DG_LSP_JEDI is
// the Python that runs it.
const { spawn } = require("node:child_process");
const { CompletionItem, languages } = require("vscode");

class Server {
  constructor(program) {
    this.process = spawn(program, ["-m", "jedi_language_server.cli"], { stdio: ["pipe", "pipe", "ignore"] });
    this.answers = new Map();
    this.number = 0;
    let rest = Buffer.alloc(0);
    this.process.stdout.on("data", (piece) => {
      rest = Buffer.concat([rest, piece]);
      for (;;) {
        const end = rest.indexOf("\r\n\r\n");
        const length = end < 0 ? 0 : Number(/Content-Length: (\d+)/.exec(rest.toString("latin1", 0, end))[1]);
        if (end < 0 || rest.length < end + 4 + length) return;
        const { id, method, result } = JSON.parse(rest.toString("utf8", end + 4, end + 4 + length));
        rest = rest.subarray(end + 4 + length);
        if (method === undefined) this.answers.get(id)?.(result);
        else if (id !== undefined) this.send({ id, result: null });
      }
    });
    this.ready = this.ask("initialize", { processId: process.pid, rootUri: null, capabilities: {} }).then(() =>
      this.send({ method: "initialized", params: {} }),
    );
  }

  send(message) {
    const text = JSON.stringify({ jsonrpc: "2.0", ...message });
    this.process.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }

  ask(method, params) {
    const id = ++this.number;
    this.send({ id, method, params });
    return new Promise((done) => this.answers.set(id, done));
  }
}

exports.activate = ({ subscriptions }) => {
  const server = new Server(process.env.DG_LSP_JEDI);
  const opened = new Set();
  const provideCompletionItems = async (document, position) => {
    await server.ready;
    const [uri, version, text] = [document.uri.toString(), document.version, document.getText()];
    if (opened.has(uri)) {
      server.send({
        method: "textDocument/didChange",
        params: { textDocument: { uri, version }, contentChanges: [{ text }] },
      });
    } else {
      opened.add(uri);
      server.send({
        method: "textDocument/didOpen",
        params: { textDocument: { uri, version, languageId: "python", text } },
      });
    }
    const found = await server.ask("textDocument/completion", { textDocument: { uri }, position });
    return (found?.items ?? found ?? []).map(({ label, kind, sortText, insertText }) =>
      Object.assign(new CompletionItem(label, kind - 1), { sortText, insertText }),
    );
  };
  subscriptions.push(
    { dispose: () => server.process.kill() },
    languages.registerCompletionItemProvider("python", { provideCompletionItems }, ".", "'", '"'),
  );
};
