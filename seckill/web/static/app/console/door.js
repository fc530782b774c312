// Who may buy in a sale, as fields of its form, and the list of buyers.

import { useState } from "../../vendor/preact/hooks.mjs";
import { count, counted, t } from "../i18n.js";
import { html } from "../ui.js";
import { ask, told } from "./session.js";

export const DOOR_FIELDS = ["pass", "pass_work", "groups", "early", "listed", "limit_by", "limit_group"];
const PASSES = ["none", "work", "check"];
const WORK = "400000";
const UPLOAD_WITHIN_MS = 10 * 60_000;

export function initialDoor(sale) {
  const { groups = [], early = [], list = false } = sale?.audience ?? {};
  return {
    pass: sale?.pass ?? "none",
    pass_work: String(sale?.pass_work ?? WORK),
    groups: groups.join(", "),
    early: early.flatMap((each) => each.groups.map((group) => `${group} ${each.minutes}`)).join("\n"),
    listed: list,
  };
}

const groupsIn = (text) => text.split(/[,，]/).map((name) => name.trim()).filter((name) => name !== "");

/** null: a line that cannot be read. */
function earlyIn(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  const read = lines.map((line) => /^(.+?)\s+([0-9]{1,5})$/.exec(line));
  return read.includes(null) ? null : read.map(([, group, minutes]) => ({ groups: [group], minutes: Number(minutes) }));
}

/** Field → what is wrong with it, as far as it can be told here; the server knows the rest. */
export function checkDoor(values) {
  const wrong = {};
  if (earlyIn(values.early) === null) wrong.early = t("wrong_early");
  if (values.pass === "work" && !/^[0-9]{1,9}$/.test(values.pass_work)) wrong.pass_work = t("wrong_whole", { least: count(1_000), most: count(100_000_000) });
  return wrong;
}

/** What has been changed, as the API wants it. */
export function doorBody(values, sale) {
  const before = initialDoor(sale);
  const changed = {};
  if (values.pass !== before.pass) changed.pass = values.pass;
  if (values.pass === "work" && values.pass_work !== before.pass_work) changed.pass_work = Number(values.pass_work);
  if (["groups", "early", "listed"].some((name) => values[name] !== before[name])) {
    const [groups, early] = [groupsIn(values.groups), earlyIn(values.early)];
    changed.audience = groups.length + early.length > 0 || values.listed ? { groups, early, list: values.listed } : null;
  }
  return changed;
}

/** `field` and `choice` draw one by its name. */
export function DoorFields({ field, choice, choose, values }) {
  return html`
    ${choice("pass", PASSES, choose)}<p class="facts">${t("pass_why")}</p>
    ${values.pass === "work" && field("pass_work", { inputmode: "numeric" })}
    ${field("groups")}
    ${field("early", { rows: 2 })}
    <label class="check"><input type="checkbox" name="listed" checked=${values.listed} onChange=${(event) => choose({ target: { name: "listed", value: event.target.checked } })} /><span>${t("field_listed")}</span></label>`;
}

/** Whom the limit is for, which never changes. */
export const initialLimits = (sale) => ({ limit_by: sale?.limit_by ?? "", limit_group: sale?.limit_group ?? "" });

export function limitsBody(values) {
  const typed = ["limit_by", "limit_group"].filter((name) => values[name].trim() !== "");
  return Object.fromEntries(typed.map((name) => [name, values[name].trim()]));
}

export const LimitFields = ({ field }) => html`${field("limit_by", { placeholder: "sub" })}<p class="facts">${t("limit_by_why")}</p>
  ${field("limit_group")}<p class="facts">${t("limit_group_why")}</p>`;

/** A file, which goes to the server as it is. */
export function AudienceUpload({ sale, onDone, onClose }) {
  const [file, setFile] = useState(null);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const [said, setSaid] = useState(counted("audience_buyers", sale.list_buyers));
  const submit = async (event) => {
    event.preventDefault();
    if (file === null) return;
    setBusy(true);
    setProblem("");
    try {
      const kind = /\.(jsonl|ndjson)$/i.test(file.name) ? "application/jsonl" : "text/csv";
      const { buyers } = await ask("PUT", `/v1/admin/sales/${sale.id}/audience`, undefined, { file, fileType: kind, withinMs: UPLOAD_WITHIN_MS });
      setSaid(t("audience_uploaded", { buyers: count(buyers) }));
      onDone();
    } catch (error) {
      setProblem(told(error));
    } finally {
      setBusy(false);
    }
  };
  return html`<form novalidate onSubmit=${submit}>
    <p>${t("audience_upload_effect")}</p>
    <p class="facts" role="status">${said}</p>
    <label class="field"><span>${t("audience_file")}</span>
      <input type="file" name="audience" accept=".csv,.txt,.jsonl,.ndjson" aria-describedby="wrong-audience" onChange=${(event) => setFile(event.target.files[0] ?? null)} />
    </label>
    <p class="problem" id="wrong-audience" role="alert">${problem}</p>
    <div class="buttons">
      <button type="submit" class="button primary" disabled=${busy || file === null}>${t("audience_upload")}</button>
      <button type="button" class="button quiet" onClick=${onClose}>${t("back")}</button>
    </div>
  </form>`;
}
