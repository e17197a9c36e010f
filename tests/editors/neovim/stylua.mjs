// Formats Lua files with StyLua, or, with --check, names those that it would change and exits with 1.
// usage: node stylua.mjs PACKAGES [--check] FILE...      PACKAGES is the folder that holds node_modules
import { createRequire } from "node:module";
import fs from "node:fs";

const [packages, ...rest] = process.argv.slice(2);
const stylua = createRequire(`${packages}/`)("@johnnymorganz/stylua/stylua_lib_node.cjs");
const check = rest[0] === "--check";
let different = 0;
for (const name of rest.slice(check ? 1 : 0)) {
  const config = stylua.Config.new();
  config.column_width = 120;
  config.indent_type = stylua.IndentType.Spaces;
  config.indent_width = 2;
  const before = fs.readFileSync(name, "utf8");
  const after = stylua.formatCode(before, config, undefined, stylua.OutputVerification.None);
  if (before === after) continue;
  different += 1;
  console.log(name);
  if (!check) fs.writeFileSync(name, after);
}
process.exit(check && different ? 1 : 0);
