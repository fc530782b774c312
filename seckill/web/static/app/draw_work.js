// Checks a draw beside the page, which goes on meanwhile: a million entries take seconds.

import { check } from "./draw_check.js";

self.onmessage = ({ data: { draw, noted } }) => self.postMessage(check(draw, noted));
