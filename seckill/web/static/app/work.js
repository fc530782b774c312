// Solves a proof of work beside the page, which goes on meanwhile.

import { solve } from "./sha256.js";

self.onmessage = ({ data }) => self.postMessage(solve(data));
