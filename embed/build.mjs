// Makes seckill/web/embed.js and the bundle of the buyers' pages (seckill/web/static/bundle): each one module with
// everything in it that a first view needs, the same bytes from the same sources.
//
//     node build.mjs           writes them, and built-from.json, by which a test without Node sees whether they are current
//     node build.mjs --check   fails if they are not what the sources make

import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import esbuild from "esbuild";
import postcss from "postcss";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const ROOT = path.dirname(HERE);
const APP = path.join(ROOT, "seckill/web/static/app");
const EMBED = "seckill/web/embed.js";
const BUNDLE = "seckill/web/static/bundle";
const BUILT_FROM = path.join(HERE, "built-from.json");
// Loaded by the app where they are needed: what they name of styles is in the script.
const PARTS = ["codes", "door", "line"].map((name) => path.join(APP, `${name}_parts.js`));
const PAGE_STYLES = [path.join(APP, "theme.css"), path.join(APP, "buyer.css")];
const STYLES = [...PAGE_STYLES, path.join(HERE, "embed.css")];
// The server puts its facts in the place of this text.
const FACTS = "__SECKILL_FACTS__";
const BANNER = `/*! seckill, Apache-2.0. Contains preact (MIT, Copyright Jason Miller) and htm (Apache-2.0). */`;
const TARGET = ["chrome111", "firefox111", "safari16.4"];

const seams = {
  name: "seams",
  setup(build) {
    build.onResolve({ filter: /\/facts\.js$/ }, () => ({ path: path.join(HERE, "facts.js") }));
  },
};

const common = { bundle: true, charset: "utf8", legalComments: "none", metafile: true, minify: true, target: TARGET, write: false, absWorkingDir: ROOT };

/** The app as the body of a function, which gives an app of its own each time that it is called. */
async function app() {
  const options = { ...common, entryPoints: [path.join(HERE, "app.js")], format: "iife", globalName: "app", plugins: [seams] };
  // What is left of the code when what nobody calls is gone, as it was written.
  const whole = await esbuild.build({ ...options, minify: false });
  const parts = await Promise.all(PARTS.map((file) => readFile(file, "utf8")));
  const made = await esbuild.build(options);
  return { text: made.outputFiles[0].text, code: [whole.outputFiles[0].text, ...parts].join("\n"), inputs: Object.keys(made.metafile.inputs) };
}

/** The buyers' pages. What few of them need stays beside it, and is loaded where it is needed. */
async function pages() {
  const options = { ...common, banner: { js: BANNER }, outdir: path.join(ROOT, BUNDLE), format: "esm" };
  const made = await esbuild.build({ ...options, entryPoints: [path.join(APP, "buyer.js")] });
  const styles = await esbuild.build({ ...options, stdin: { contents: PAGE_STYLES.map((file) => `@import "./${path.basename(file)}";`).join("\n"), resolveDir: APP, loader: "css" } });
  return { js: made.outputFiles[0].text, css: styles.outputFiles[0].text, inputs: Object.keys(made.metafile.inputs) };
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

const digestOf = (text) => createHash("sha256").update(text).digest("hex");

async function digests(files) {
  const found = {};
  for (const file of [...new Set(files)].sort()) found[file] = digestOf(await readFile(path.join(ROOT, file), "utf8"));
  return found;
}

const { text, code, inputs } = await app();
const page = await pages();
const results = {
  [EMBED]: await script(text, await styles(code)),
  [`${BUNDLE}/buyer.js`]: page.js,
  [`${BUNDLE}/buyer.css`]: page.css,
};
const sources = [
  ...inputs,
  ...page.inputs,
  ...[...PARTS, ...STYLES].map((file) => path.relative(ROOT, file)),
  "embed/build.mjs",
  "embed/element.js",
  "embed/package-lock.json",
];
const ofResults = Object.fromEntries(Object.entries(results).map(([file, made]) => [file, digestOf(made)]));
const builtFrom = `${JSON.stringify({ ...(await digests(sources)), ...ofResults }, null, 2)}\n`;

const places = results[EMBED].split(`"${FACTS}"`).length - 1;
if (places !== 1) throw new Error(`The place for the server's facts is there ${places} times, not once.`);
for (const [file, made] of [...Object.entries(results), [path.relative(ROOT, BUILT_FROM), builtFrom]]) {
  const place = path.join(ROOT, file);
  if (!process.argv.includes("--check")) {
    await mkdir(path.dirname(place), { recursive: true });
    await writeFile(place, made);
  } else if ((await readFile(place, "utf8")) !== made) throw new Error(`${file} is not what its sources make: run make embed.`);
}
