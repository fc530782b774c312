// SHA-256, and searching with it for the number of a proof of work. Written out, because the browser's own answers each
// time in another turn of the event loop, and is not there at all on pages without TLS.

const K = Int32Array.from(fractions(64, 3));
const H = Int32Array.from(fractions(8, 2));
const ONE_BLOCK = 55; // bytes of text that fit into one block of the hash

/** The first 32 bits of the fractional parts of the square or cube roots of the first primes, as the standard has it. */
function* fractions(many, root) {
  for (let number = 2, found = 0; found < many; number += 1) {
    let isPrime = true;
    for (let divisor = 2; divisor * divisor <= number; divisor += 1) if (number % divisor === 0) isPrime = false;
    if (!isPrime) continue;
    const value = root === 2 ? Math.sqrt(number) : Math.cbrt(number);
    yield Math.floor((value - Math.floor(value)) * 2 ** 32) | 0;
    found += 1;
  }
}

const W = new Int32Array(64);

/** Hashes the one block in `words`, behind the blocks that made `from`, into `state`, which may be the same. */
function compress(words, state, from = H) {
  for (let i = 0; i < 16; i += 1) W[i] = words[i];
  for (let i = 16; i < 64; i += 1) {
    const x = W[i - 15];
    const y = W[i - 2];
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    W[i] = (W[i - 16] + s0 + W[i - 7] + s1) | 0;
  }
  let a = from[0];
  let b = from[1];
  let c = from[2];
  let d = from[3];
  let e = from[4];
  let f = from[5];
  let g = from[6];
  let h = from[7];
  for (let i = 0; i < 64; i += 1) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i] + W[i]) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  state[0] = from[0] + a;
  state[1] = from[1] + b;
  state[2] = from[2] + c;
  state[3] = from[3] + d;
  state[4] = from[4] + e;
  state[5] = from[5] + f;
  state[6] = from[6] + g;
  state[7] = from[7] + h;
}

/** A text of ASCII that fits into one block, and the number behind it. */
class Block {
  constructor(salt) {
    this.words = new Int32Array(16);
    this.state = new Int32Array(8);
    this.length = salt.length;
    for (let i = 0; i < salt.length; i += 1) this.put(i, salt.charCodeAt(i));
  }

  put(place, byte) {
    const shift = 24 - 8 * (place % 4);
    this.words[place >> 2] = (this.words[place >> 2] & ~(0xff << shift)) | (byte << shift);
  }

  hash(digits) {
    const end = this.length + digits.length;
    if (end > ONE_BLOCK) throw new RangeError("The text is longer than one block.");
    for (let i = 0; i < digits.length; i += 1) this.put(this.length + i, digits.charCodeAt(i));
    this.put(end, 0x80);
    for (let i = end + 1; i <= ONE_BLOCK; i += 1) this.put(i, 0);
    this.words[14] = 0;
    this.words[15] = 8 * end;
    compress(this.words, this.state);
    return this.state;
  }
}

const BLOCK = 64;

/** Puts block number `number` of these bytes into `words`. */
function take(bytes, number, words) {
  for (let i = 0, at = number * BLOCK; i < 16; i += 1, at += 4) {
    words[i] = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
  }
}

/** Texts that begin alike: their beginning is hashed once. */
export class Hash {
  constructor(beginning = "") {
    const bytes = new TextEncoder().encode(beginning);
    this.words = new Int32Array(16);
    this.begun = Int32Array.from(H);
    const whole = Math.floor(bytes.length / BLOCK);
    for (let number = 0; number < whole; number += 1) {
      take(bytes, number, this.words);
      compress(this.words, this.begun, this.begun);
    }
    this.hashed = whole * BLOCK;
    this.rest = bytes.subarray(this.hashed);
  }

  /** The eight words of the hash, into `state`. */
  of(text, state = new Int32Array(8)) {
    const bytes = new TextEncoder().encode(text);
    const length = this.rest.length + bytes.length;
    const padded = new Uint8Array(BLOCK * Math.ceil((length + 9) / BLOCK));
    padded.set(this.rest);
    padded.set(bytes, this.rest.length);
    padded[length] = 0x80;
    new DataView(padded.buffer).setBigUint64(padded.length - 8, 8n * BigInt(this.hashed + length));
    state.set(this.begun);
    for (let number = 0; number < padded.length / BLOCK; number += 1) {
      take(padded, number, this.words);
      compress(this.words, state, state);
    }
    return state;
  }
}

export const hex = (text) => Array.from(new Hash().of(text), (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");

/** The number for which the SHA-256 of salt and number is the challenge; null: there is none up to `maxnumber`. */
export function solve({ challenge, salt, maxnumber }) {
  const wanted = Array.from({ length: 8 }, (_, i) => Number.parseInt(challenge.slice(8 * i, 8 * i + 8), 16) | 0);
  const block = new Block(salt);
  for (let number = 0; number <= maxnumber; number += 1) {
    const state = block.hash(String(number));
    if (state[0] === wanted[0] && wanted.every((word, i) => word === state[i])) return number;
  }
  return null;
}
