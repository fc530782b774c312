// Work beside the page.

/** The policy of our pages lets scripts come from one place, and what is named here only through this. */
const policy = globalThis.trustedTypes?.createPolicy("seckill-worker", { createScriptURL: (url) => url });
export const trusted = (url) => policy?.createScriptURL(url) ?? url;

/** Another origin's script cannot be a worker, but one of the page's own may import it. */
function worker(name) {
  const address = new URL(name, import.meta.url).href;
  if (new URL(address).origin === location.origin) return new Worker(trusted(address), { type: "module" });
  const own = URL.createObjectURL(new Blob([`import ${JSON.stringify(address)};`], { type: "text/javascript" }));
  return new Worker(trusted(own), { type: "module" });
}

/** What the worker in the file `name` answers to this message. */
export function worked(name, message) {
  const working = worker(name);
  return new Promise((resolve, reject) => {
    working.onmessage = ({ data }) => resolve(data);
    working.onerror = () => reject(new Error("The work could not be done here."));
    working.postMessage(message);
  }).finally(() => working.terminate());
}
