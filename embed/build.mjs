// Makes seckill/web/embed.js: one module with everything in it, the same bytes from the same sources.
//
//     node build.mjs           writes it, and built-from.json, by which a test without Node sees whether it is current
//     node build.mjs --check   fails if it is not what the sources make

import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import esbuild from "esbuild";
import postcss from "postcss";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const ROOT = path.dirname(HERE);
const APP = path.join(ROOT, "seckill/web/static/app");
const RESULT = path.join(ROOT, "seckill/web/embed.js");
const BUILT_FROM = path.join(HERE, "built-from.json");
// Loaded by the app where they are needed: what they name of texts and styles is in the script.
const PARTS = ["codes", "door", "line"].map((name) => path.join(APP, `${name}_parts.js`));
const STYLES = [path.join(APP, "theme.css"), path.join(APP, "buyer.css"), path.join(HERE, "embed.css")];
// The server puts its facts in the place of this text.
const FACTS = "__SECKILL_FACTS__";
const BANNER = `/*! seckill: <seckill-sale>, Apache-2.0. Contains preact (MIT, Copyright Jason Miller) and htm (Apache-2.0). */`;
const TARGET = ["chrome111", "firefox111", "safari16.4"];

/** Texts of the console are of no use to buyers. */
const withoutConsole = (text) => `${text.split("\n  // The console\n")[0].trimEnd()}\n};\n`;

/** Only the texts that this code names, in quotes or as `order_${state}_title`. */
function named(text, code) {
  const quoted = new Set(Array.from(code.matchAll(/"(\w+)"/g), ([, key]) => key));
  const made = Array.from(code.matchAll(/`((?:\w+_)?\$\{[^`{}]*\}(?:_\w+)?)`/g), ([, key]) => key)
    .filter((key) => !/^\$\{[^}]*\}$/.test(key))
    .map((key) => new RegExp(`^${key.replace(/\$\{[^}]*\}/, "\\w+")}$`));
  const isNamed = (key) => quoted.has(key) || made.some((pattern) => pattern.test(key));
  const isKept = (line) => !/^  \w+: \[/.test(line) || isNamed(line.trim().split(":")[0]);
  return text.split("\n").filter(isKept).join("\n");
}

/** `code`: what may name a text; null: all of them are kept. */
const seams = (code) => ({
  name: "seams",
  setup(build) {
    build.onResolve({ filter: /\/facts\.js$/ }, () => ({ path: path.join(HERE, "facts.js") }));
    build.onLoad({ filter: /[/\\]strings\.js$/ }, async ({ path: file }) => {
      const text = withoutConsole(await readFile(file, "utf8"));
      return { contents: code === null ? text : named(text, code), loader: "js" };
    });
  },
});

const common = { bundle: true, charset: "utf8", legalComments: "none", metafile: true, minify: true, target: TARGET, write: false, absWorkingDir: ROOT };

/** The app as the body of a function, which gives an app of its own each time that it is called. */
async function app() {
  const options = { ...common, entryPoints: [path.join(HERE, "app.js")], format: "iife", globalName: "app" };
  // What is left of the code when what nobody calls is gone, with its texts as they were written.
  const whole = await esbuild.build({ ...options, minify: false, plugins: [seams(null)] });
  const [before, after] = whole.outputFiles[0].text.split("var STRINGS = {");
  const parts = await Promise.all(PARTS.map((file) => readFile(file, "utf8")));
  const code = [before + after.slice(after.indexOf("\n  };")), ...parts].join("\n");
  const made = await esbuild.build({ ...options, plugins: [seams(code)] });
  return { text: made.outputFiles[0].text, code, inputs: Object.keys(made.metafile.inputs) };
}

/** Only the rules for what this code makes: elements as <name or "name", classes as words, or as `p${number}`. */
function applied(css, code) {
  const words = new Set(code.match(/[\w-]+/g));
  const isMade = (selector) =>
    Array.from(selector.matchAll(/\.([a-z][\w-]*)/g)).every(([, name]) => words.has(name) || code.includes(`${name.replace(/\d+$/, "")}\${`)) &&
    Array.from(selector.matchAll(/(?<![\w.:[="-])([a-z][a-z0-9]*)/g)).every(([, name]) => code.includes(`<${name}`) || code.includes(`"${name}"`));
  const root = postcss.parse(css);
  root.walkRules((rule) => {
    if (rule.parent.name === "keyframes") return;
    const made = rule.selectors.filter((selector) => selector === ".seckill" || isMade(selector));
    if (made.length > 0) rule.selectors = made;
    else rule.remove();
  });
  return root.toString();
}

/** The pages' own styles, told of a shadow root and of the element's width instead of a page and its width. */
async function styles(code) {
  const texts = await Promise.all(STYLES.map((file) => readFile(file, "utf8")));
  const css = texts
    .join("\n")
    .replaceAll(":root", ":host")
    .replaceAll(/^body\b/gm, ".seckill")
    .replaceAll("@media (min-width:", "@container (min-width:")
    .replaceAll(/(\d)vw, /g, "$1cqi, ");
  const minified = await esbuild.transform(applied(css, code), { loader: "css", minify: true, target: TARGET, charset: "utf8" });
  return minified.code.trim();
}

async function script(appText, css) {
  const contents =
    `export const css = ${JSON.stringify(css)};\n` +
    `export const serverFacts = ${JSON.stringify(FACTS)};\n` +
    `export const makeApp = (given) => {\n${appText}\nreturn app;\n};\n`;
  const built = {
    name: "built",
    setup(build) {
      build.onResolve({ filter: /^seckill:built$/ }, () => ({ path: "built", namespace: "built" }));
      build.onLoad({ filter: /.*/, namespace: "built" }, () => ({ contents, loader: "js" }));
    },
  };
  const made = await esbuild.build({ ...common, banner: { js: BANNER }, entryPoints: [path.join(HERE, "element.js")], format: "esm", plugins: [built] });
  return made.outputFiles[0].text;
}

async function digests(files) {
  const found = {};
  for (const file of [...files].sort()) {
    const text = await readFile(path.join(ROOT, file), "utf8");
    const read = file.endsWith("/strings.js") ? withoutConsole(text) : text;
    found[file] = createHash("sha256").update(read).digest("hex");
  }
  return found;
}

const { text, code, inputs } = await app();
const result = await script(text, await styles(code));
const sources = [...inputs, ...[...PARTS, ...STYLES].map((file) => path.relative(ROOT, file)), "embed/build.mjs", "embed/element.js", "embed/package-lock.json"];
const builtFrom = `${JSON.stringify({ ...(await digests(sources)), "seckill/web/embed.js": createHash("sha256").update(result).digest("hex") }, null, 2)}\n`;

if (result.split(`"${FACTS}"`).length !== 2) throw new Error(`The place for the server's facts is there ${result.split(FACTS).length - 1} times, not once.`);
if (process.argv.includes("--check")) {
  const isCurrent = (await readFile(RESULT, "utf8")) === result && (await readFile(BUILT_FROM, "utf8")) === builtFrom;
  if (!isCurrent) throw new Error("seckill/web/embed.js is not what its sources make: run make embed.");
} else {
  await writeFile(RESULT, result);
  await writeFile(BUILT_FROM, builtFrom);
}
