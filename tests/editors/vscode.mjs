// Drives a real VS Code in a real browser. Reads one job as JSON on standard input, prints one JSON result.
//
// job: editors (folder of install.sh), chromium, extension (folder), home, project, shots (folder for screenshots),
//      environment (the editor's), settings (added to the editor's), task ("smoke" or "measure") and what it needs.
// result: { ok, steps: {name: seconds}, error?, screen? } and what the task found.
import { spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import net from "node:net";
import path from "node:path";

const job = JSON.parse(fs.readFileSync(0, "utf8"));
const { chromium } = createRequire(`${job.editors}/npm/`)("playwright-core");
const PATIENCE = 20_000; // ms: the first answer starts an engine, on a machine with other work
const GHOST = ".ghost-text-decoration";
const result = { ok: false, steps: {} };

// What would open by itself, talk to the network or offer text of its own is off.
const SETTINGS = {
  "chat.disableAIFeatures": true,
  "editor.acceptSuggestionOnEnter": "off",
  "editor.autoClosingBrackets": "never",
  "editor.autoClosingQuotes": "never",
  "editor.hover.enabled": "off",
  "editor.inlineSuggest.enabled": true,
  "editor.inlineSuggest.showToolbar": "never",
  "editor.lightbulb.enabled": "off",
  "editor.minimap.enabled": false,
  "editor.parameterHints.enabled": false,
  "editor.quickSuggestions": { other: "off", comments: "off", strings: "off" },
  "editor.suggestOnTriggerCharacters": false,
  "editor.wordBasedSuggestions": "off",
  "extensions.autoCheckUpdates": false,
  "extensions.autoUpdate": false,
  "files.autoSave": "off",
  "security.workspace.trust.enabled": false,
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "workbench.enableExperiments": false,
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
};

async function freePort() {
  const server = net.createServer().listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

function layOut() {
  const extension = path.join(job.home, "extensions", "dg-lsp.dg-lsp-test-0.0.1");
  fs.mkdirSync(path.join(job.home, "user", "User"), { recursive: true });
  fs.cpSync(job.extension, extension, { recursive: true });
  fs.symlinkSync(`${job.editors}/npm/node_modules`, path.join(extension, "node_modules"));
  const settings = JSON.stringify({ ...SETTINGS, ...job.settings }, null, 2);
  fs.writeFileSync(path.join(job.home, "user", "User", "settings.json"), settings);
  fs.writeFileSync(path.join(job.home, "code-server.yaml"), "");
}

async function startHost(port) {
  const modules = `${job.editors}/vscode/node_modules`;
  const args = [
    `${modules}/code-server/out/node/entry.js`,
    ...["--config", path.join(job.home, "code-server.yaml"), "--auth", "none", "--bind-addr", `127.0.0.1:${port}`],
    ...["--user-data-dir", path.join(job.home, "user"), "--extensions-dir", path.join(job.home, "extensions")],
    ...["--disable-telemetry", "--disable-update-check", "--disable-workspace-trust", "--ignore-last-opened"],
  ];
  const log = fs.openSync(path.join(job.shots, "host.log"), "w");
  const env = { ...job.environment, EXTENSIONS_GALLERY: "{}" }; // no gallery: no request leaves the machine
  // Its own process group, since it starts several processes and does not always take them along.
  const host = spawn(process.execPath, args, { env, detached: true, stdio: ["ignore", log, log] });
  const until = Date.now() + PATIENCE;
  for (;;) {
    try {
      if ((await fetch(`http://127.0.0.1:${port}/healthz`)).ok) return host;
    } catch {
      if (host.exitCode !== null || Date.now() > until) throw new Error("code-server does not start: see host.log");
    }
    await new Promise((done) => setTimeout(done, 50));
  }
}

async function stopHost(host) {
  const gone = new Promise((done) => host.once("exit", done));
  const patience = setTimeout(() => process.kill(-host.pid, "SIGKILL"), 1500);
  process.kill(-host.pid, "SIGTERM");
  await gone;
  clearTimeout(patience);
}

class Workbench {
  constructor(page, port) {
    [this.page, this.port] = [page, port];
    this.began = Date.now();
  }

  // Note that a step is reached, and what the screen then shows.
  async step(name) {
    result.steps[name] = (Date.now() - this.began) / 1000;
    await this.page.screenshot({ path: path.join(job.shots, `${name}.png`) });
  }

  // Load the workbench with one file open and wait for the language server.
  async load(file) {
    const open = `vscode-remote://127.0.0.1:${this.port}${job.project}/${file}`;
    const query = new URLSearchParams({ folder: job.project, payload: JSON.stringify([["openFile", open]]) });
    await this.page.goto(`http://127.0.0.1:${this.port}/?${query}`);
    await this.page.locator(".statusbar-item", { hasText: "dg-lsp: ready" }).waitFor();
    await this.focus();
  }

  async focus() {
    await this.page.locator(".editor-group-container.active .monaco-editor .view-lines").first().click();
  }

  // Open a file by name, at line:column.
  async goto(place) {
    await this.page.keyboard.press("Control+P");
    await this.page.locator(".quick-input-widget input").fill(place);
    await this.page.locator(".quick-input-list .monaco-list-row.focused", { hasText: place.split(":")[0] }).waitFor();
    await this.page.keyboard.press("Enter");
    await this.page.locator(".tab.active", { hasText: place.split(":")[0] }).waitFor();
    await this.page.locator(".quick-input-widget").waitFor({ state: "hidden" });
  }

  // Save, and return the file's text once the tab no longer says that there is something to save.
  async save(file) {
    await this.page.keyboard.press("Control+S");
    await this.page.locator(".tab.active.dirty").waitFor({ state: "detached" });
    return fs.readFileSync(path.join(job.project, file), "utf8");
  }
}

async function smoke(bench) {
  const { page } = bench;
  await bench.load("ghost.py");
  await bench.step("loaded");

  await bench.goto("ghost.py:2:5");
  await page.keyboard.type("total = ", { delay: 30 });
  await page.locator(GHOST, { hasText: "None" }).waitFor();
  await bench.step("ghost-shown");
  await page.keyboard.press("Tab");
  await page.locator(GHOST, { hasText: "None" }).waitFor({ state: "detached" });
  result.accepted = await bench.save("ghost.py");
  await bench.step("ghost-accepted");

  await bench.goto(`fill.py:${job.line}:5`);
  await page.keyboard.press("Control+.");
  const action = page.locator(".action-widget .monaco-list-row", { hasText: job.title });
  await action.waitFor();
  await bench.step("fill-offered");
  await action.click();
  await page.locator(".tab.active.dirty").waitFor();
  result.filled = await bench.save("fill.py");
  await bench.step("fill-done");
  await page.keyboard.press("Control+Z");
  await page.locator(".tab.active.dirty").waitFor();
  result.undone = await bench.save("fill.py");
  await bench.step("fill-undone");
}

// Runs in the page: note when a key goes down, and when new ghost text is in the frame that the browser then paints.
function watchGhost(selector) {
  const watch = (globalThis.ghostWatch = { key: null, seen: null });
  const visible = () => [...document.querySelectorAll(selector)].some((part) => part.textContent.includes("None"));
  let old = false; // whether what is visible was there before the key
  const keyDown = (event) => {
    old = visible();
    Object.assign(watch, { key: event.timeStamp, seen: null });
  };
  addEventListener("keydown", keyDown, true);
  new MutationObserver(() => {
    if (!visible()) old = false;
    else if (!old && watch.key !== null && watch.seen === null) watch.seen = performance.now();
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}

// In each file in turn: Enter, wait for ghost text on the new line, write a statement there that leaves none to offer.
async function measure(bench) {
  const { page } = bench;
  await bench.load(job.files[0]);
  await page.evaluate(watchGhost, GHOST);
  for (const file of job.files) await bench.goto(`${file}:2:100`);
  const milliseconds = Object.fromEntries(job.files.map((file) => [file, []]));
  for (let round = 0; round < job.rounds; round++) {
    const turns = [...job.files.entries()];
    for (const [index, file] of round % 2 ? turns.reverse() : turns) {
      await page.keyboard.press(`Alt+${index + 1}`);
      await page.locator(".tab.active", { hasText: file }).waitFor();
      await page.waitForTimeout(job.pause);
      await page.keyboard.press("Enter");
      const took = await page.waitForFunction(() => {
        const { key, seen } = globalThis.ghostWatch;
        return seen === null ? null : { ms: seen - key };
      });
      milliseconds[file].push((await took.jsonValue()).ms);
      if (round === 0) await bench.step(`ghost-${file}`);
      await page.keyboard.press("Escape");
      await page.keyboard.type("0");
    }
  }
  await bench.step("measured");
  result.milliseconds = milliseconds;
}

async function main() {
  layOut();
  const port = await freePort();
  const host = await startHost(port);
  let browser;
  try {
    browser = await chromium.launch({
      executablePath: job.chromium,
      args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
      env: job.environment,
    });
    const page = await browser.newPage({ viewport: { width: 1100, height: 700 } });
    page.setDefaultTimeout(PATIENCE);
    try {
      await { smoke, measure }[job.task](new Workbench(page, port));
      result.ok = true;
    } catch (error) {
      await page.screenshot({ path: path.join(job.shots, "failed.png") });
      throw error;
    }
  } finally {
    await browser?.close();
    await stopHost(host);
  }
}

try {
  await main();
} catch (error) {
  result.error = error.message;
}
process.stdout.write(JSON.stringify(result));
