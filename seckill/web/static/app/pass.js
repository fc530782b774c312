// A buyer's pass for a sale that needs one: had before the start, so that the rush itself carries no challenge.

import { useEffect, useRef, useState } from "../vendor/preact/hooks.mjs";
import { getDoor, needsPass, useDoor } from "./door.js";
import { html } from "./ui.js";

/**
 * What there is to say of the pass: `none` (not needed), `preparing`, `ready` or `refused`. `get` waits for one; `renew`
 * gives up the one that there is, because it was not accepted. `widget` is where one may appear.
 */
export function usePass(sale, me) {
  const isNeeded = needsPass(sale) && sale.state !== "ended" && Boolean(me);
  const [state, setState] = useState(isNeeded ? "preparing" : "none");
  const door = useDoor(sale);
  const widget = useRef(null);
  const keeping = useRef(null); // a promise of who has it at hand
  useEffect(() => {
    setState(isNeeded ? "preparing" : "none");
    if (!isNeeded) return undefined;
    let isWanted = true;
    const wants = { isWanted: () => isWanted, onState: (now) => isWanted && setState(now), place: () => widget.current };
    keeping.current = getDoor().then(({ keepPass }) => keepPass(sale, me, wants));
    return () => {
      isWanted = false;
      keeping.current = null;
    };
  }, [isNeeded && `${me.user} ${sale.id} ${sale.round} ${me.token}`]);
  const get = async () => (await keeping.current)?.get();
  const renew = async () => (await keeping.current)?.renew();
  return { state, get, renew, widget, door };
}

export const PassNote = ({ pass }) => pass.door !== null && pass.state !== "none" && html`<${pass.door.PassNote} pass=${pass} />`;
