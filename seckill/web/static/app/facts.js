// What the server says of itself, in the head of the page. In somebody else's page, embed.js brings it along
// (embed/facts.js): nothing else of what both are made of knows where it is.

export const meta = (name) => document.querySelector(`meta[name="seckill-${name}"]`)?.content ?? "";

/** Where the API is: the path of somebody else's site that these pages are under; empty: they have the site to
 * themselves. */
export const base = meta("base");

/** Most buyers never need these. */
export const loadQr = () => import("../vendor/uqr/uqr.mjs");
export const loadDoor = () => import("./door_parts.js");
