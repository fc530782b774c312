// Was this draw made as it says? Written from the definition in docs/door.md alone: it shares no code with the drawing.
//
// commitment  hex SHA-256 of the seed's text, published before anybody could enter
// list_hash   hex SHA-256 of all entry ids, sorted as text and joined by line feeds, published before the seed
// rank        hex SHA-256 of `seed:beacon:list_hash:entry_id`, beacon empty if there is none
// places      the entries by their ranks, the least first
// beacon      where its source was announced: of the values that are published every `period_s` seconds, number 1 at
//             `genesis_s`, the first that is published more than 15 s after the list's hash
// receipt     `entry_id.joined_ms.round-signature`: hexadecimal Ed25519 of `receipt entry_id.joined_ms.round`; or, if more
//             follows, of `receipts` and the last hash: the first is that of what is said above, and each step, `-l` or
//             `-r` and a hash, makes the next one, of `node left right`, where its own stands at the side that it names

import { Hash, hex } from "./sha256.js";

const NAMED_MAX = 5;

/** Whether the hash `one` stands before `other`, as their hexadecimal texts do. */
function isBefore(one, other) {
  for (let i = 0; i < 8; i += 1) if (one[i] !== other[i]) return one[i] >>> 0 < other[i] >>> 0;
  return false;
}

function flawsOfList({ entries, list_hash: published }) {
  const inOrder = [...entries].sort();
  const flaws = [];
  const twice = inOrder.find((entry, i) => entry === inOrder[i - 1]);
  if (twice !== undefined) flaws.push({ code: "twice", entries: [twice] });
  const odd = inOrder.find((entry) => entry === "" || entry.includes("\n"));
  if (odd !== undefined) flaws.push({ code: "list", entries: [odd] }); // two lists could have one hash
  if (hex(inOrder.join("\n")) !== published) flaws.push({ code: "list_hash", entries: [] });
  return flaws;
}

function flawsOfPlaces({ seed, beacon, list_hash: published, entries }) {
  const ranks = new Hash(`${seed}:${beacon ?? ""}:${published}:`);
  let [before, rank] = [new Int32Array(8), new Int32Array(8)];
  const wrong = [];
  for (const entry of entries) {
    ranks.of(entry, rank);
    if (isBefore(rank, before)) wrong.push(entry);
    [before, rank] = [rank, before];
  }
  return wrong.length > 0 ? [{ code: "places", entries: wrong.slice(0, NAMED_MAX), many: wrong.length }] : [];
}

function flawsOfBeacon({ beacon, beacon_source: source, beacon_round: number, beacon_missed_at: missedAt, listed_at: listedAt }) {
  if (!source) return [];
  if (missedAt) return beacon ? [{ code: "beacon_round", entries: [] }] : [];
  let wanted = 1;
  const afterMs = Date.parse(listedAt) + 15_000;
  while (1000 * (source.genesis_s + (wanted - 1) * source.period_s) <= afterMs) wanted += Math.max(1, Math.floor((afterMs / 1000 - source.genesis_s) / source.period_s) + 1 - wanted);
  return beacon && number === wanted ? [] : [{ code: "beacon_round", entries: [] }];
}

const bytesOf = (text) => Uint8Array.from(text.match(/../g) ?? [], (digits) => parseInt(digits, 16));

function signedText(said, steps) {
  if (!steps) return said;
  const join = (node, step) => hex(`node ${step[0] === "l" ? `${step.slice(1)} ${node}` : `${node} ${step.slice(1)}`}`);
  return `receipts ${steps.slice(1).split("-").reduce(join, hex(said))}`;
}

/** What a receipt says, and whether the key's owner has signed it for this round; null: this browser cannot tell. */
export async function readReceipt(receipt, key, round) {
  const [, entryId, joinedMs, ofRound, signature, steps] = /^([^.]+)\.(\d+)\.(\d+)-([0-9a-f]{128})((?:-[lr][0-9a-f]{64})*)$/.exec(receipt ?? "") ?? [];
  if (!entryId) return null;
  const read = { entryId, joinedMs: Number(joinedMs), isSigned: null };
  try {
    const imported = await crypto.subtle.importKey("raw", bytesOf(key), "Ed25519", false, ["verify"]);
    const said = new TextEncoder().encode(signedText(`receipt ${entryId}.${joinedMs}.${ofRound}`, steps));
    read.isSigned = ofRound === round && (await crypto.subtle.verify("Ed25519", imported, bytesOf(signature), said));
  } catch {
    // Not over plain HTTP, and not in browsers of before 2025.
  }
  return read;
}

/** `entries`: ids in the order of their places. `noted`: what somebody has kept from before, and the id of their entry.
 * Gives the flaws, by their codes, and the place of that entry. */
export function check(draw, noted = {}) {
  const flaws = [...flawsOfList(draw), ...flawsOfPlaces(draw), ...flawsOfBeacon(draw)];
  if (hex(draw.seed) !== draw.commitment) flaws.unshift({ code: "seed", entries: [] });
  if (noted.commitment && noted.commitment !== draw.commitment) flaws.push({ code: "commitment", entries: [] });
  if (noted.list_hash && noted.list_hash !== draw.list_hash) flaws.push({ code: "noted_list", entries: [] });
  if (noted.receipt_key && draw.receipt_key && noted.receipt_key !== draw.receipt_key) flaws.push({ code: "key", entries: [] });
  const at = noted.entry_id ? draw.entries.indexOf(noted.entry_id) : -1;
  if (noted.entry_id && at < 0) flaws.push({ code: "dropped", entries: [noted.entry_id] });
  return { entries: draw.entries.length, flaws, place: at < 0 ? null : at + 1 };
}
