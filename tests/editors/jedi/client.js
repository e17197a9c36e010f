// A client of jedi-language-server, by the library of our own extension. JEDI, the server's command line, is filled in
// when this is bundled.
const { window } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

exports.activate = async ({ subscriptions }) => {
  const [command, ...args] = JEDI;
  const options = {
    documentSelector: [{ language: "python" }],
    initializationOptions: { completion: { disableSnippets: true } },
  };
  const client = new LanguageClient("jedi", { command, args }, options);
  subscriptions.push(client);
  await client.start();
  window.setStatusBarMessage("jedi is ready");
};
