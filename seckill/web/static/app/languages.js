// The languages of the buyers' pages. One more is a line here and a file in texts/.

export const LANGUAGES = {
  en: { name: "English", tag: "en" },
  zh: { name: "中文", tag: "zh-CN" },
  ja: { name: "日本語", tag: "ja" },
};

// Of readers with a language that is not here, those who are more at home in one of these than in English.
const NEARER = { yue: "zh", wuu: "zh", nan: "zh", hak: "zh", gan: "zh", cdo: "zh", za: "zh", ug: "zh", bo: "zh", ii: "zh", ain: "ja", ryu: "ja" };

/** The first of the wanted ones that is offered, else the nearest to the first that is near to any, else English. */
export function languageFor(wanted, offered = Object.keys(LANGUAGES)) {
  const codes = wanted.map((tag) => tag.toLowerCase().split("-")[0]);
  const near = codes.map((code) => NEARER[code]);
  return [...codes, ...near].find((code) => offered.includes(code)) ?? "en";
}
