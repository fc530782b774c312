// What most pages do not need, loaded when it is shown.

import { useEffect, useState } from "../vendor/preact/hooks.mjs";
import { backoffMs, sleep } from "./api.js";
import { loadPart } from "./facts.js";
import { html } from "./ui.js";

async function loaded(load) {
  for (let tries = 0; ; tries += 1) {
    const found = await load().catch(() => null);
    if (found !== null) return found;
    await sleep(backoffMs(tries));
  }
}

/** embed.js loads it into pages of other origins, so it is given everything that depends on the page, and all that both
 * are made of. */
export async function part(name, tools) {
  const { make } = await loaded(() => loadPart(name));
  return make(tools);
}

/** A component that `load` promises. */
export function lazily(load) {
  let loading = null;
  return function Lazy(props) {
    const [Shown, setShown] = useState(null);
    useEffect(() => {
      loading ??= loaded(load);
      loading.then((found) => setShown(() => found));
    }, []);
    return Shown && html`<${Shown} ...${props} />`;
  };
}
