// A sale with a line: what shows it is loaded for those who see one.

import { useRef, useState } from "../vendor/preact/hooks.mjs";
import { backoffMs, base, call, canSignIn, isEmbedded, sleep } from "./api.js";
import { count, counted, has, sentences, t } from "./i18n.js";
import { ItemChoice, itemOf } from "./items.js";
import { lazily, part } from "./lazily.js";
import { Countdown, OrderLink } from "./panels.js";
import { PassNote, usePass } from "./pass.js";
import { isTrouble } from "./press.js";
import { Confirm, html, useNow, useRepeated } from "./ui.js";

const TOOLS = { useRef, useState, backoffMs, base, call, canSignIn, isEmbedded, sleep, count, counted, has, sentences, t, ItemChoice, itemOf, Countdown, OrderLink, PassNote, usePass, isTrouble, Confirm, html, useNow, useRepeated };

export const Line = lazily(() => part("line", TOOLS));
