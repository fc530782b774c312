// What the server says of itself, in the head of the page. In somebody else's page, embed.js brings it along
// (embed/facts.js): nothing else of what both are made of knows where it is.

export const meta = (name) => document.querySelector(`meta[name="seckill-${name}"]`)?.content ?? "";

/** Where the API is: the path of somebody else's site that these pages are under; empty: they have the site to
 * themselves. */
export const base = meta("base");

// The same from here and from the bundle, which has a folder of its own.
const addressOf = (file) => new URL(`../app/${file}`, import.meta.url).href;

/** What few sales need; see lazily.js. */
export const loadPart = (name) => import(addressOf(`${name}_parts.js`));

export const loadTexts = (language) => import(addressOf(`texts/${language}.js`));
