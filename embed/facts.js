// In the place of app/facts.js: what the server says of itself comes with the script. `given` is what the app was made
// with (build.mjs), once for each language.

/* global given */
export const meta = (name) => given[name] ?? "";
export const base = given.base;
// What few sales need, and the texts of other languages, stay where they are: no other file is ever loaded.
const load = (file) => import(`${base}/assets/${given.assets}/app/${file}.js`);
export const loadPart = (name) => load(`${name}_parts`);
export const loadTexts = (language) => load(`texts/${language}`);
