// Reads paths from the standard input and prints the errors of a parser for each, tab-separated; the parser is the
// first argument: javascript, typescript, css or scala. Packages are found by NODE_PATH.
const fs = require("fs"), vm = require("vm");

function javascript(text, path) {
  try {
    new vm.SourceTextModule(text);
    return [];
  } catch (module) {
    if (path.endsWith(".mjs") || /^(import|export)\b/m.test(text)) return [module.message];
    try {
      vm.compileFunction(text.replace(/^#!.*/, ""), ["exports", "require", "module", "__filename", "__dirname"]);
      return [];
    } catch (script) {
      return [script.message];
    }
  }
}

function typescript() {
  const ts = require("typescript");
  const options = { noResolve: true, noLib: true, jsx: ts.JsxEmit.Preserve, target: ts.ScriptTarget.ESNext, types: [],
    module: ts.ModuleKind.ESNext, experimentalDecorators: true };
  const host = ts.createCompilerHost(options);
  // Codes of 1000 and above are the grammar's, 17xxx and 18xxx are about JSX and private names among others.
  const isSyntax = (code) => (code < 2000 || code === 17002 || code === 17008 || code === 17014) && ![1259, 1192, 1361, 1362, 1378, 1375].includes(code);
  return (_, path) => {
    const program = ts.createProgram([path], options, host), file = program.getSourceFile(path);
    const found = [...program.getSyntacticDiagnostics(file)];
    try {
      found.push(...program.getSemanticDiagnostics(file));
    } catch (error) {
      // The checker is not made for files without a library; what it has not said is not held against a file.
    }
    return found.filter((one) => isSyntax(one.code)).map((one) =>
      `TS${one.code} ` + ts.flattenDiagnosticMessageText(one.messageText, " "));
  };
}

function css() {
  const postcss = require("postcss"), tree = require("css-tree");
  return (text) => {
    const found = [];
    try {
      postcss.parse(text);
    } catch (error) {
      found.push("postcss: " + error.reason);
    }
    tree.parse(text, { onParseError: (error) => found.push("css-tree: " + error.message), parseValue: true });
    return found;
  };
}

function scala() {
  const { parseSource } = require("scalameta-parsers");
  return (text) => {
    const dialects = ["Scala213", "Scala3"].map((dialect) => {
      const result = require("scalameta-parsers").parseSource(text, dialect);
      return result.error || "";
    });
    return dialects.every(Boolean) ? [dialects[0]] : [];
  };
}

const judge = { javascript: () => javascript, typescript, css, scala }[process.argv[2]]();
for (const path of fs.readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const errors = judge(fs.readFileSync(path, "utf8"), path);
  console.log([path, ...errors.map((error) => error.replace(/\s+/g, " "))].join("\t"));
}
