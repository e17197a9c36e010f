// The least that a VS Code extension does for dg-lsp: start the server and let the language client do the rest.
// For measurements it can also offer ghost text itself, at no cost, so that what remains is the editor's share.
const { StatusBarAlignment, languages, window, workspace, Range } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

const trivial = {
  provideInlineCompletionItems(document, position) {
    const line = document.lineAt(position.line).text;
    if (line.trim()) return [];
    return [{ insertText: line + "None", range: new Range(position.line, 0, position.line, position.character) }];
  },
};

exports.activate = async (context) => {
  const settings = workspace.getConfiguration("dgLspTest");
  const [command, ...args] = settings.get("command");
  const server = { command, args, options: { env: { ...process.env, ...settings.get("environment") } } };
  client = new LanguageClient("dgLspTest", "dg-lsp", server, {
    documentSelector: [{ language: "python", pattern: settings.get("files") }],
  });
  if (settings.get("trivialFiles")) {
    const selector = { language: "python", pattern: settings.get("trivialFiles") };
    context.subscriptions.push(languages.registerInlineCompletionItemProvider(selector, trivial));
  }
  // The tests read this, since nothing else on the screen says that the server is there.
  const status = window.createStatusBarItem(StatusBarAlignment.Left);
  context.subscriptions.push(status);
  status.text = "dg-lsp: starting";
  status.show();
  try {
    await client.start();
    status.text = "dg-lsp: ready";
  } catch (error) {
    status.text = `dg-lsp: ${error.message}`;
  }
};

exports.deactivate = () => client?.stop();
