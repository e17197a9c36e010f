// Drives a real VS Code in a real browser: one session for many checks. The first line of standard input is the job as
// JSON; each further line is a request {do, ...}, answered by one line {ok, value} or {error}. "quit" ends the session.
//
// job: editors (folder of install.sh), chromium, extensions (folders), home, project, shots (folder for
//      screenshots), environment (the editor's), settings (of the host, beside those below), user (the user's, beside
//      those below), keys (bindings of the user's own), trust (whether the editor asks if a workspace is trusted), file (to open first).
import { spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import net from "node:net";
import path from "node:path";
import readline from "node:readline";

const PATIENCE = 60_000; // ms: the first answer starts an engine, on a machine with other work

// What would open by itself, talk to the network or write text of its own is off. Completion is as it comes.
const SETTINGS = {
  "chat.disableAIFeatures": true,
  "editor.acceptSuggestionOnEnter": "off",
  "editor.autoClosingBrackets": "never",
  "editor.autoClosingQuotes": "never",
  "editor.autoIndent": "none",
  "editor.detectIndentation": false,
  "editor.hover.enabled": "off",
  "editor.inlineSuggest.showToolbar": "never",
  "editor.lightbulb.enabled": "off",
  "editor.minimap.enabled": false,
  "editor.parameterHints.enabled": false,
  "editor.stickyScroll.enabled": false,
  "editor.suggest.showStatusBar": false,
  "editor.useTabStops": false,
  "extensions.autoCheckUpdates": false,
  "extensions.autoUpdate": false,
  "files.autoSave": "off",
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "window.menuBarVisibility": "hidden",
  "workbench.enableExperiments": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
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

// Runs in the page once: `screen()` reads what the active editor shows, and keys are noted with what they met.
function watchScreen() {
  const text = (node) => node.textContent.replaceAll("\u00a0", " ").replaceAll(/[\u200b\u200c]/g, "");
  const isGhost = (span) => [...span.classList].some((name) => name.startsWith("ghost-text"));
  const editor = () => document.querySelector(".editor-group-container.active .monaco-editor[data-uri]");

  // All that an element says: its text, and its label.
  globalThis.said_ = (node) => `${node.textContent} ${node.getAttribute("aria-label") ?? ""}`;

  globalThis.screen_ = () => {
    const root = editor();
    if (!root) return null;
    const lines = [...root.querySelectorAll(".view-lines > .view-line")].sort(
      (a, b) => parseFloat(a.style.top) - parseFloat(b.style.top),
    );
    const cursor = root.querySelector(".cursors-layer .cursor")?.getBoundingClientRect();
    const rows = [];
    // whole: the row of the ghost text with the ghost text in it.
    const seen = { rows, ghost: "", more: "", before: "", after: "", whole: "", row: -1, misplaced: false };
    for (const [row, line] of lines.entries()) {
      let [before, ghost, after, whole] = ["", "", "", ""];
      for (const span of line.querySelectorAll(":scope > span > span")) {
        whole += text(span);
        if (isGhost(span)) {
          // Ghost text is at the cursor, or after blanks at the cursor that are part of it.
          const { left, width } = span.getBoundingClientRect();
          const away = cursor ? Math.round((left - cursor.left) / (width / text(span).length)) : 0;
          if (!ghost) seen.misplaced = away < 0 || (away > 0 && before.slice(-away).trim() !== "");
          ghost += text(span);
        } else if (ghost) after += text(span);
        else before += text(span);
      }
      rows.push(before + after);
      if (ghost) Object.assign(seen, { ghost, before, after, whole, row });
    }
    const blocks = [...root.querySelectorAll(".view-zones .view-line, .suggest-preview-text .view-line")];
    seen.more = blocks.map(text).join("\n");
    const menu = document.querySelector(".suggest-widget.visible");
    seen.menu = menu ? [...menu.querySelectorAll(".monaco-list-row .label-name")].map(text) : [];
    seen.entry = seen.menu.length ? text(menu.querySelector(".monaco-list-row.focused .label-name") ?? document.createElement("a")) : "";
    return seen;
  };

  // The screen as each key found it, so that no time passes between looking and pressing.
  globalThis.met = null;
  addEventListener("keydown", () => (globalThis.met = globalThis.screen_()), true);
}

// Runs in the page once: what the host sends comes `lag` milliseconds late, as from a machine far away.
function delayHost() {
  globalThis.lag = 0;
  const { addEventListener } = WebSocket.prototype;
  WebSocket.prototype.addEventListener = function (type, listener, ...options) {
    const waiting = [];
    const late = (event) => {
      if (!globalThis.lag && !waiting.length) return listener.call(this, event);
      waiting.push(event);
      setTimeout(() => listener.call(this, waiting.shift()), globalThis.lag);
    };
    return addEventListener.call(this, type, type === "message" ? late : listener, ...options);
  };
}

// Runs in the page: note each key with the screen that it met, and each painted frame that differs from the one before.
// A key also has the number of frames that were painted since the key before it.
function watchKeys() {
  const events = [];
  let last, frames;
  const note = (screen, more) => {
    events.push({ time: performance.now(), ...screen, ...more });
  };
  const keyDown = ({ key }) => {
    note(globalThis.screen_(), { key, frames });
    frames = 0;
  };
  addEventListener("keydown", keyDown, true);
  // What a message finds that is sent while a frame is made is what that frame has painted.
  const painted = new MessageChannel();
  painted.port1.onmessage = () => {
    frames++;
    const screen = globalThis.screen_();
    const painting = JSON.stringify(screen);
    if (screen && painting !== last) note(screen, {});
    last = painting;
  };
  let frame;
  const next = () => {
    painted.port2.postMessage(null);
    frame = requestAnimationFrame(next);
  };
  frame = requestAnimationFrame(next);
  const drawn = async () => {
    for (let frame = 0; frame < 2; frame++) await new Promise((done) => requestAnimationFrame(done));
  };
  globalThis.endWatch = async () => {
    await drawn();
    cancelAnimationFrame(frame);
    removeEventListener("keydown", keyDown, true);
    note(globalThis.screen_(), { key: "", frames });
    return events;
  };
  frames = 0;
  return drawn();
}

class Session {
  constructor(job) {
    this.job = job;
    this.pages = [];
    this.userSettings = path.join(job.home, "user", "User", "settings.json");
    // In a window of a remote host, settings of the scope `machine` count only here; and changes are seen here.
    this.machineSettings = path.join(job.home, "user", "Machine", "settings.json");
    const modules = `${job.editors}/vscode/node_modules`;
    this.entry = [`${modules}/code-server/out/node/entry.js`];
    this.folders = [
      ...["--user-data-dir", path.join(job.home, "user")],
      ...["--extensions-dir", path.join(job.home, "extensions")],
    ];
    this.environment = { ...job.environment, EXTENSIONS_GALLERY: "{}" }; // no gallery: no request leaves the machine
  }

  async start() {
    const { job } = this;
    for (const file of [this.userSettings, this.machineSettings]) fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(this.userSettings, JSON.stringify({ ...SETTINGS, ...job.user }, null, 2));
    this.settings(job);
    fs.writeFileSync(path.join(job.home, "user", "User", "keybindings.json"), JSON.stringify(job.keys ?? []));
    fs.writeFileSync(path.join(job.home, "code-server.yaml"), "");
    const config = ["--config", path.join(job.home, "code-server.yaml")];
    for (const folder of job.extensions) this.addExtension(folder);
    this.port = await freePort();
    const args = [
      ...[...this.entry, ...config, ...this.folders, "--auth", "none", "--bind-addr", `127.0.0.1:${this.port}`],
      ...["--disable-telemetry", "--disable-update-check", "--ignore-last-opened"],
      ...(job.trust ? [] : ["--disable-workspace-trust"]),
    ];
    const log = fs.openSync(path.join(job.shots, "host.log"), "w");
    // Its own process group, since it starts several processes and does not always take them along.
    this.host = spawn(process.execPath, args, { env: this.environment, detached: true, stdio: ["ignore", log, log] });
    await this.listening();
    const { chromium } = createRequire(`${job.editors}/npm/`)("playwright-core");
    this.browser = await chromium.launch({
      executablePath: job.chromium,
      args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
      env: job.environment,
    });
    await this.window(job);
  }

  // Open a window with one file, and turn to it.
  async window({ file, folder = this.job.project, width = 1100, height = 700 }) {
    const page = await this.browser.newPage({ viewport: { width, height } });
    this.pages.push(page);
    this.turn({ to: this.pages.length - 1 });
    page.setDefaultTimeout(PATIENCE);
    await page.addInitScript(watchScreen);
    await page.addInitScript(delayHost);
    const open = `vscode-remote://127.0.0.1:${this.port}${folder}/${file}`;
    const query = new URLSearchParams({ folder, payload: JSON.stringify([["openFile", open]]) });
    await page.goto(`http://127.0.0.1:${this.port}/?${query}`);
    await page.locator(".editor-group-container.active .monaco-editor .view-lines").first().click();
  }

  // Close the window and go on with the first one.
  async close() {
    this.pages = this.pages.filter((page) => page !== this.page);
    await this.page.context().close();
    this.turn({ to: 0 });
  }

  // Go on with another of the open windows, counted from 0.
  turn({ to }) {
    this.page = this.pages[to];
  }

  // Put an extension in from its folder, beside those that are installed.
  addExtension(folder) {
    const to = path.join(this.job.home, "extensions");
    const list = path.join(to, "extensions.json");
    const { publisher, name, version } = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"));
    const [id, relativeLocation] = [`${publisher}.${name}`, `${publisher}.${name}-${version}`];
    fs.cpSync(folder, path.join(to, relativeLocation), { recursive: true });
    const location = { $mid: 1, path: path.join(to, relativeLocation), scheme: "file" };
    const known = fs.existsSync(list) ? JSON.parse(fs.readFileSync(list, "utf8")) : [];
    fs.writeFileSync(list, JSON.stringify([...known, { identifier: { id }, version, location, relativeLocation }]));
  }

  async listening() {
    const until = Date.now() + PATIENCE;
    for (;;) {
      try {
        if ((await fetch(`http://127.0.0.1:${this.port}/healthz`)).ok) return;
      } catch {
        if (this.host.exitCode !== null || Date.now() > until) {
          throw new Error("code-server does not start: see host.log");
        }
      }
      await new Promise((done) => setTimeout(done, 50));
    }
  }

  async quit() {
    await this.browser?.close();
    if (!this.host) return;
    const gone = new Promise((done) => this.host.once("exit", done));
    const patience = setTimeout(() => process.kill(-this.host.pid, "SIGKILL"), 1500);
    process.kill(-this.host.pid, "SIGTERM");
    await gone;
    clearTimeout(patience);
  }

  // Write the settings of the host; the window takes them up by itself.
  settings({ settings }) {
    // At once, so that nobody reads half of it.
    fs.writeFileSync(`${this.machineSettings}.new`, JSON.stringify(settings, null, 2));
    fs.renameSync(`${this.machineSettings}.new`, this.machineSettings);
  }

  async shot({ name }) {
    await this.page.screenshot({ path: path.join(this.job.shots, `${name}.png`) });
  }

  // Open a file at line:column; `shown` is the column that the status bar then has, where characters are wide.
  async goto({ place, shown }) {
    const [file, line = 1, column = 1] = place.split(":");
    for (let left = 4; ; left--) {
      await this.pick({ key: "Control+P", text: `${this.job.project}/${place}`, row: file });
      await this.page.keyboard.press("Enter");
      try {
        return await this.at({ line, column: shown ?? column, file, patience: left ? PATIENCE / 5 : PATIENCE });
      } catch (error) {
        // Enter has met a row of the list before, such as the same file at another place.
        if (!left) throw error;
      }
    }
  }

  // Open a quick pick, write into it, and wait until the focused row has `row` in it. It closes when something else takes
  // the focus, and may take the place of one that is still there, so there are several tries.
  async pick({ key, text, row }) {
    for (let left = 4; ; left--) {
      await this.page.keyboard.press(key);
      try {
        await this.page.locator(".quick-input-widget input[type=text]").fill(text, { timeout: PATIENCE / 5 });
        if (row) await this.focused(row, PATIENCE / 5);
        return;
      } catch (error) {
        if (!left) throw error;
        // A question that is open takes all keys.
        await this.page.keyboard.press("Escape");
      }
    }
  }

  // Wait until the focused row of the quick pick has `text` in it.
  async focused(text, timeout = PATIENCE) {
    await this.page.locator(".quick-input-list .monaco-list-row.focused", { hasText: text }).waitFor({ timeout });
  }

  // Go to a line of the open file.
  async line({ line, column = 1 }) {
    await this.pick({ key: "Control+G", text: `:${line}:${column}` });
    await this.page.keyboard.press("Enter");
    await this.at({ line, column });
  }

  // Wait until the cursor is there, in the file if one is given, and the editor takes keys.
  async at({ line, column, file, patience: timeout = PATIENCE }) {
    await this.page.locator(".quick-input-widget").waitFor({ state: "hidden", timeout });
    const uri = file ? `[data-uri$="/${file}"]` : "";
    await this.page.locator(`.editor-group-container.active .monaco-editor.focused${uri}`).waitFor({ timeout });
    await this.frames(); // the status bar follows the editor a frame later
    const wanted = new RegExp(`Ln ${line}, Col ${column}(?!\\d)`);
    await this.page.locator(".statusbar-item#status\\.editor\\.selection", { hasText: wanted }).waitFor({ timeout });
  }

  // Wait until what has happened is painted.
  async frames() {
    await this.page.evaluate(async () => {
      for (let frame = 0; frame < 2; frame++) await new Promise((done) => requestAnimationFrame(done));
    });
  }

  async type({ text, delay = 20 }) {
    await this.page.keyboard.type(text, { delay });
  }

  // Press a key; the screen as the key found it, and as it is two frames and `wait` milliseconds later.
  async press({ key, wait = 0 }) {
    await this.page.evaluate(() => (globalThis.met = null));
    if ([...key].length === 1) await this.page.keyboard.type(key);
    else await this.page.keyboard.press(key);
    if (wait) await this.page.waitForTimeout(wait);
    await this.frames();
    return this.page.evaluate(() => ({ met: globalThis.met, now: globalThis.screen_() }));
  }

  // Have what the host sends come `milliseconds` late from now on.
  async lag({ milliseconds }) {
    await this.page.evaluate((ms) => (globalThis.lag = ms), milliseconds);
  }

  // Put `text` in the place of all that the open file has, and the cursor at the end of its line `line`.
  async rewrite({ text, line }) {
    const { keyboard } = this.page;
    await keyboard.press("Control+A");
    await keyboard.insertText(text);
    await keyboard.press("Control+Home");
    for (let number = 1; number < line; number++) await keyboard.press("ArrowDown");
    await keyboard.press("End");
  }

  // Press keys, and wait some milliseconds after each: all that was to be seen meanwhile. No more of them are pressed
  // once one of the rows is `done`.
  async play({ keys, done }) {
    const { keyboard } = this.page;
    await this.page.evaluate(watchKeys);
    for (const [key, wait] of keys) {
      if (done && (await this.page.evaluate((row) => globalThis.screen_().rows.includes(row), done))) break;
      await ([...key].length === 1 ? keyboard.type(key) : keyboard.press(key));
      if (wait) await this.page.waitForTimeout(wait);
    }
    return this.page.evaluate(() => globalThis.endWatch());
  }

  // Press a key; the milliseconds until an element's text or label has one of `wanted` in it, in the painted frame.
  async sign({ key, selector, wanted }) {
    await this.page.evaluate(() => {
      addEventListener("keydown", (event) => (globalThis.pressedAt = event.timeStamp), { capture: true, once: true });
    });
    await this.page.keyboard.press(key);
    const found = await this.page.waitForFunction(
      ([css, parts]) => {
        const node = document.querySelector(css);
        const all = `${node.textContent} ${node.querySelector("a")?.getAttribute("aria-label")}`;
        return parts.some((part) => all.includes(part)) ? { ms: performance.now() - globalThis.pressedAt } : null;
      },
      [selector, wanted],
      { polling: "raf" },
    );
    return (await found.jsonValue()).ms;
  }

  screen() {
    return this.page.evaluate(() => globalThis.screen_());
  }

  // Wait until `test`, a JavaScript expression of the screen `s`, holds; the screen then.
  async until({ test, patience = PATIENCE }) {
    const found = await this.page.waitForFunction(
      (source) => {
        const s = globalThis.screen_();
        return s && new Function("s", `return ${source}`)(s) ? s : null;
      },
      test,
      { polling: "raf", timeout: patience },
    );
    return found.jsonValue();
  }

  // Wait until an element has a text or a label with `wanted` in it; all of that text.
  async text({ selector, wanted, patience = PATIENCE }) {
    const found = await this.page.waitForFunction(
      ([css, part]) => [...document.querySelectorAll(css)].map(globalThis.said_).find((all) => all.includes(part)),
      [selector, wanted],
      { polling: 20, timeout: patience },
    );
    return found.jsonValue();
  }

  // Hover over an element until what then pops up has `wanted` in it; all of that text.
  async hover({ selector, wanted }) {
    const until = Date.now() + PATIENCE;
    for (;;) {
      await this.page.locator(selector).first().hover();
      const popped = this.page.locator(".monaco-hover", { hasText: wanted });
      try {
        await popped.waitFor({ timeout: 2000 });
        return await popped.innerText();
      } catch (error) {
        if (Date.now() > until) throw error;
      } finally {
        // What is shown is not renewed while it is shown.
        await this.page.mouse.move(0, 0);
      }
    }
  }

  // Wait until no element has a text or a label with `text` in it.
  async gone({ selector, text }) {
    await this.page.waitForFunction(
      ([css, part]) => ![...document.querySelectorAll(css)].some((node) => globalThis.said_(node).includes(part)),
      [selector, text],
      { polling: 20 },
    );
  }

  // All texts that a selector finds now.
  texts({ selector }) {
    return this.page.locator(selector).allTextContents();
  }

  async click({ selector, text }) {
    await this.page.locator(selector, text ? { hasText: text } : {}).first().click();
  }

  // Choose a code action at the cursor by its title. The menu is asked for again when it does not come: VS Code drops it,
  // also while it is only asked for, when an extension registers actions, as that for TypeScript does late; and a menu
  // that is open gains no rows.
  async act({ title }) {
    const menu = this.page.locator(".action-widget").first();
    const row = menu.locator(".monaco-list-row", { hasText: title }).first();
    for (let timeout = 2000; ; timeout *= 2) {
      await this.page.keyboard.press("Control+.");
      try {
        await row.hover({ force: true, timeout }); // older editors put a screen before a menu until the pointer moves
        break;
      } catch (error) {
        if (timeout > PATIENCE / 2) throw error;
        if (await menu.isVisible()) await this.page.keyboard.press("Escape");
      }
    }
    await row.click();
  }

  // The titles of the code actions at the cursor. They are asked for again when neither they nor the message that there are
  // none comes, as in `act`.
  async actions() {
    const rows = this.page.locator(".action-widget .monaco-list-row");
    const none = this.page.locator(".monaco-editor-overlaymessage", { hasText: "No code actions" });
    for (let timeout = 2000; ; timeout *= 2) {
      await this.page.keyboard.press("Control+.");
      try {
        await rows.or(none).first().waitFor({ state: "attached", timeout });
        break;
      } catch (error) {
        if (timeout > PATIENCE / 2) throw error;
        await this.page.keyboard.press("Escape");
      }
    }
    const titles = await rows.allTextContents();
    await this.page.keyboard.press("Escape");
    await rows.first().waitFor({ state: "detached" });
    return titles;
  }

  // Wait until a draft with `text` is drawn in the editor, in its row `row` if one is given, or none is.
  async drawn({ text, row, gone = false }) {
    await this.page.waitForFunction(
      ([part, number, away]) => {
        const lines = [...document.querySelectorAll(".editor-group-container.active .view-lines > .view-line")];
        lines.sort((a, b) => parseFloat(a.style.top) - parseFloat(b.style.top));
        const spans = lines
          .filter((_, index) => number === null || index === number)
          .flatMap((line) => [...line.querySelectorAll("span")]);
        const drawn = spans.some((span) => getComputedStyle(span, "::before").content.includes(part));
        return drawn !== away;
      },
      [text, row ?? null, gone],
      { polling: 20 },
    );
  }

  // The rows of the quick pick, from the top, once one has `text` in it: before, they may be those of the list before.
  async rows({ text }) {
    const rows = this.page.locator(".quick-input-list .monaco-list-row");
    await rows.filter({ hasText: text }).first().waitFor();
    // Their order in the document is not the one on the screen.
    return rows.evaluateAll((found) =>
      found.sort((a, b) => a.dataset.index - b.dataset.index).map((node) => node.textContent),
    );
  }

  async choose({ text }) {
    await this.rows({ text });
    await this.page.keyboard.type(text);
    await this.focused(text);
    await this.page.keyboard.press("Enter");
  }

  // Run a command by its title in the palette.
  async command({ title }) {
    await this.pick({ key: "F1", text: `>${title}`, row: title });
    await this.page.keyboard.press("Enter");
  }

  // Save, and wait until the tab no longer says that there is something to save.
  async save() {
    await this.page.keyboard.press("Control+S");
    await this.page.locator(".tab.active.dirty").waitFor({ state: "detached" });
  }

  async dirty() {
    await this.page.locator(".tab.active.dirty").waitFor();
  }

  // Type a text while the screen is sampled each `every` milliseconds; the distinct neighbouring samples.
  // `<` is the key Backspace, and `~` a pause.
  async sample({ text, delay, every = 20, pause }) {
    await this.page.evaluate((milliseconds) => {
      globalThis.samples = [];
      globalThis.sampling = setInterval(() => globalThis.samples.push(globalThis.screen_()), milliseconds);
    }, every);
    for (const character of text) {
      if (character === "<") await this.page.keyboard.press("Backspace");
      else if (character !== "~") await this.page.keyboard.type(character);
      await this.page.waitForTimeout(character === "~" ? pause : delay);
    }
    return this.page.evaluate(() => {
      clearInterval(globalThis.sampling);
      return globalThis.samples.map(({ before, ghost, more, after, row, misplaced }) => ({
        ...{ before, ghost, more, after, row, misplaced },
      }));
    });
  }

  // In each file in turn: Enter, wait for ghost text on the new line, and write a statement that leaves none to offer.
  async measure({ files, rounds, pause }) {
    const { page } = this;
    await page.evaluate(watchGhost, ".ghost-text-decoration");
    for (const file of files) await this.goto({ place: `${file}:2:14` });
    const milliseconds = Object.fromEntries(files.map((file) => [file, []]));
    for (let round = 0; round < rounds; round++) {
      const turns = [...files.entries()];
      for (const [index, file] of round % 2 ? turns.reverse() : turns) {
        await page.keyboard.press(`Alt+${index + 1}`);
        await page.locator(".tab.active", { hasText: file }).waitFor();
        await page.waitForTimeout(pause);
        await page.keyboard.press("Enter");
        const took = await page.waitForFunction(() => {
          const { key, seen } = globalThis.ghostWatch;
          return seen === null ? null : { ms: seen - key };
        });
        milliseconds[file].push((await took.jsonValue()).ms);
        // Not Escape, after which the server offers nothing more on such lines.
        await page.keyboard.type("0");
      }
    }
    return milliseconds;
  }
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

let session;
for await (const line of readline.createInterface({ input: process.stdin })) {
  let answer;
  try {
    const { do: name, ...given } = JSON.parse(line);
    if (name === "start") session = new Session(given);
    answer = { ok: true, value: (await session[name](given)) ?? null };
    if (name === "quit") session = undefined;
  } catch (error) {
    await session?.page?.screenshot({ path: path.join(session.job.shots, "failed.png") }).catch(() => undefined);
    answer = { ok: false, error: error.message };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
  if (!session) break;
}
await session?.quit();
