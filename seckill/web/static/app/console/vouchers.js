// The codes of a sale that gives some: how many there are, how many are missing, and more of them from a file.

import { useRef, useState } from "../../vendor/preact/hooks.mjs";
import { count, t } from "../i18n.js";
import { html } from "../ui.js";
import { usePolled } from "./data.js";
import { ask, told } from "./session.js";

const COUNTS_EVERY_MS = 5_000;
// A million codes from a slow line.
const UPLOAD_WITHIN_MS = 900_000;
const COUNTED = ["codes", "free", "given", "redeemed", "void"];

export function Vouchers({ sale, onChanged }) {
  const [counts, , again] = usePolled(`/v1/admin/sales/${sale.id}/vouchers`, COUNTS_EVERY_MS);
  const [problem, setProblem] = useState("");
  const [done, setDone] = useState("");
  const [busy, setBusy] = useState(false);
  const chosen = useRef();
  const item = useRef();
  const upload = async () => {
    const file = chosen.current.files[0];
    setProblem("");
    setDone("");
    if (file === undefined) return setProblem(t("codes_choose"));
    setBusy(true);
    try {
      const only = item.current?.value ? `?item_id=${item.current.value}` : "";
      const { added } = await ask("POST", `/v1/admin/sales/${sale.id}/vouchers${only}`, undefined, {
        file,
        fileType: "text/csv",
        withinMs: UPLOAD_WITHIN_MS,
      });
      setDone(t("codes_added", { many: count(added) }));
      chosen.current.value = "";
      again();
      onChanged();
    } catch (error) {
      setProblem(told(error));
    } finally {
      setBusy(false);
    }
    return undefined;
  };
  return html`<section class="vouchers" aria-labelledby="vouchers-title">
    <h2 id="vouchers-title">${t("codes")}</h2>
    ${counts && html`<dl class="stats">${COUNTED.map((name) => html`<div key=${name}><dt>${t(`codes_${name}`)}</dt><dd>${count(counts[name])}</dd></div>`)}</dl>`}
    ${counts?.items && html`<${ItemCodes} items=${counts.items} />`}
    ${counts?.missing > 0 && html`<p class="notice" role="status">${t(sale.waits_for_codes ? "codes_wait" : "codes_missing", { many: count(counts.missing) })}</p>`}
    <div class="upload">
      ${sale.items?.length > 0 && html`<label class="field"><span>${t("codes_for")}</span><select ref=${item} name="item"><option value="">${t("codes_any")}</option>${sale.items.map(({ item_id, title }) => html`<option key=${item_id} value=${item_id}>${title}</option>`)}</select></label>`}
      <label class="field"><span>${t("codes_file")}</span><input ref=${chosen} type="file" name="codes" accept=".csv,.txt,text/csv,text/plain" aria-describedby="codes-problem" /></label>
      <button type="button" class="button quiet small" disabled=${busy} onClick=${upload}>${t(busy ? "codes_uploading" : "codes_upload")}</button>
    </div>
    <p class="problem" id="codes-problem" role="alert">${problem}</p>
    <p class="facts" role="status">${done}</p>
  </section>`;
}

/** What each item has of its own, and needs; the rest comes from the codes that are for any. */
const ItemCodes = ({ items }) => html`<div class="scroll"><table class="by-item">
  <thead><tr><th scope="col">${t("item")}</th><th scope="col" class="number">${t("codes_own")}</th><th scope="col" class="number">${t("codes_needed")}</th></tr></thead>
  <tbody>${items.map(({ item_id, title, free, needed }) => html`<tr key=${item_id}><th scope="row" class="text">${title}</th><td class="number">${count(free)}</td><td class="number">${count(needed)}</td></tr>`)}</tbody>
</table></div>`;
