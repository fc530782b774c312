// How many decimals a currency has: ISO 4217, as in money.py. Browsers know other numbers for some: those that people
// use, not those that amounts are counted in.

const USUAL =
  "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CNY " +
  "COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS " +
  "INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR " +
  "MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP " +
  "STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG";
const OTHERS = {
  0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
  3: "BHD IQD JOD KWD LYD OMR TND",
  4: "CLF UYW",
};
const USUAL_DECIMALS = 2; // of what is unknown, too

// Not every page asks for the whole list: one that does not is spared it.
const all = () => [USUAL, ...Object.values(OTHERS)].flatMap((codes) => codes.split(" "));
export const currencies = () => all().sort();
export const isCurrency = (code) => all().includes(code);
export const decimalsOf = (currency) =>
  Number(Object.keys(OTHERS).find((decimals) => OTHERS[decimals].split(" ").includes(currency)) ?? USUAL_DECIMALS);

/** What was typed, as 99 or 99.5, in minor units; null if it is no amount of this currency. */
export function minorUnits(text, currency) {
  const decimals = decimalsOf(currency);
  const [, whole, fraction = ""] = /^(\d{1,12})(?:[.](\d+))?$/.exec(text) ?? [];
  if (whole === undefined || fraction.length > decimals) return null;
  return Number(whole + fraction.padEnd(decimals, "0"));
}
