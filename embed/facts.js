// In the place of app/facts.js: what the server says of itself comes with the script. `given` is what the app was made
// with (build.mjs), once for each language.

/* global given */
export const meta = (name) => given[name] ?? "";
export const base = given.base;
// What few sales need stays where it is: no other file is ever loaded.
export const loadPart = (name) => import(`${base}/assets/${given.assets}/app/${name}_parts.js`);
