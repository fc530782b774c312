// Components that most pages do not need, loaded when they are shown.

import { useEffect, useState } from "../vendor/preact/hooks.mjs";
import { backoffMs, sleep } from "./api.js";
import { html } from "./ui.js";

async function loaded(load) {
  for (let tries = 0; ; tries += 1) {
    const found = await load().catch(() => null);
    if (found !== null) return found;
    await sleep(backoffMs(tries));
  }
}

/** `pick(module)` is the component. */
export function lazily(load, pick) {
  let loading = null;
  return function Lazy(props) {
    const [Shown, setShown] = useState(null);
    useEffect(() => {
      loading ??= loaded(load);
      loading.then((found) => setShown(() => pick(found)));
    }, []);
    return Shown && html`<${Shown} ...${props} />`;
  };
}
