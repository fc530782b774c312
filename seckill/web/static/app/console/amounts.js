// Money that came in, where nothing is an amount like any other and not a price of goods that are free.

import { decimalsOf } from "../currencies.js";
import { money } from "../i18n.js";

export const amount = (cents, currency) => (cents === 0 ? money(10 ** decimalsOf(currency), currency).replace("1", "0") : money(cents, currency));
