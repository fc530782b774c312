// What the server has put into the page, so that it is drawn before anything is asked for. It may be some seconds old.

import { meta } from "./facts.js";

const given = meta("first") === "" ? {} : JSON.parse(meta("first"));

/** Older than whatever was asked for. */
export const firstSale = (saleId) => (given.sale?.id === saleId ? { ...given.sale, askedMs: -Infinity } : null);

export const firstSales = () => given.list ?? null;
