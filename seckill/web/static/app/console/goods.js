// What a sale sells, as fields of its form.

import { useState } from "../../vendor/preact/hooks.mjs";
import { decimalsOf, minorUnits } from "../currencies.js";
import { t } from "../i18n.js";
import { html } from "../ui.js";
import { ask, told } from "./session.js";

const METADATA_BYTES_MAX = 4096;
export const GOODS_FIELDS = ["description", "images", "list_price", "delivery", "terms_url", "return_url", "external_id", "metadata"];

/** A price as people write it. */
export const asTyped = (cents, currency) => (cents / 10 ** decimalsOf(currency)).toFixed(decimalsOf(currency));

export function initialGoods(sale) {
  const { currency = "CNY", list_price_cents: list = null, metadata = null } = sale ?? {};
  return {
    description: sale?.description ?? "",
    images: (sale?.images ?? []).join("\n"),
    list_price: list === null ? "" : asTyped(list, currency),
    delivery: sale?.delivery ?? "",
    terms_url: sale?.terms_url ?? "",
    return_url: sale?.return_url ?? "",
    external_id: sale?.external_id ?? "",
    metadata: metadata === null ? "" : JSON.stringify(metadata, null, 2),
  };
}

/** Field → what is wrong with it, as far as it can be told here; the server knows the rest. */
export function checkGoods(values, currency) {
  const wrong = {};
  if (values.list_price.trim() !== "" && minorUnits(values.list_price.trim(), currency) === null) wrong.list_price = t("wrong_list_price");
  if (values.metadata.trim() !== "" && objectIn(values.metadata) === null) wrong.metadata = t("wrong_metadata");
  else if (new TextEncoder().encode(values.metadata).length > 2 * METADATA_BYTES_MAX) wrong.metadata = t("wrong_metadata_long");
  return wrong;
}

function objectIn(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** What has been changed, as the API wants it; null takes away what was there. */
export function goodsBody(values, currency, sale) {
  const before = initialGoods(sale);
  const changed = GOODS_FIELDS.filter((name) => values[name].trim() !== before[name].trim());
  return Object.fromEntries(changed.map((name) => [name === "list_price" ? "list_price_cents" : name, valueOf(name, values[name].trim(), currency)]));
}

function valueOf(name, text, currency) {
  if (text === "") return null;
  if (name === "list_price") return minorUnits(text, currency);
  if (name === "metadata") return objectIn(text);
  return name === "images" ? text.split(/\s+/) : text;
}

const UPLOAD_WITHIN_MS = 120_000;

/** Adds its address to the others as soon as it is there. */
function UploadPicture({ onUploaded }) {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const upload = async ({ target }) => {
    const [file] = target.files;
    if (file === undefined) return;
    setProblem("");
    setBusy(true);
    try {
      const options = { file, fileType: file.type || "application/octet-stream", withinMs: UPLOAD_WITHIN_MS };
      onUploaded((await ask("POST", "/v1/admin/images", undefined, options)).url);
      target.value = "";
    } catch (error) {
      setProblem(told(error));
    } finally {
      setBusy(false);
    }
  };
  return html`<label class="field"><span>${t(busy ? "picture_uploading" : "picture_upload")}</span>
      <input type="file" name="picture" accept="image/jpeg,image/png,image/webp" disabled=${busy} onChange=${upload} aria-describedby="picture-problem" /></label>
    <p class="problem" id="picture-problem" role="alert">${problem}</p>`;
}

/** `field` draws one by its name. `onPicture` is told the address of one that was uploaded. */
export const GoodsFields = ({ field, onPicture }) => html`
  ${field("description", { rows: 5 })}<p class="facts">${t("description_why")}</p>
  ${field("images", { rows: 2 })}<p class="facts">${t("images_why")}</p>
  <${UploadPicture} onUploaded=${onPicture} />
  ${field("list_price", { inputmode: "decimal" })}
  ${field("delivery", { rows: 2 })}
  ${field("terms_url", { inputmode: "url" })}
  ${field("return_url", { inputmode: "url" })}
  ${field("external_id", { maxlength: 128 })}
  ${field("metadata", { rows: 3, placeholder: '{"sku": "K-1"}' })}<p class="facts">${t("own_facts_why")}</p>
`;
