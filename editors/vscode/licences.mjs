// Writes dist/LICENSES.txt: the licence of each package whose code esbuild has put into dist/extension.js.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const inputs = Object.keys(JSON.parse(readFileSync("dist/meta.json", "utf8")).inputs);
const folders = inputs.map((input) => /^(?:.*node_modules\/)(?:@[^/]+\/)?[^/]+/.exec(input)?.[0]);
const texts = [...new Set(folders.filter(Boolean))].sort().map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${folder} has no licence file`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
});
if (texts.length === 0) throw new Error("no package found in dist/meta.json");
writeFileSync("dist/LICENSES.txt", texts.join(`\n${"-".repeat(80)}\n\n`));
