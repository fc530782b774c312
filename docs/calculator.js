// The capacity model of seckill/lab/rehearsal/capacity.py, for the page calculator.html: nothing is sent anywhere.

const atLeastOne = (cores, model) => Math.max(1, Math.ceil(cores / model.planned - 1e-6 / 1e3));
const rounded = (value, decimals) => Number(value.toFixed(decimals));

/** Everybody presses once, evenly over the seconds; a unit each, while there are any. */
function seckillNeeds(buyers, seconds, units, ledger, model = globalThis.SECKILL_MODEL) {
  const { workerUs, databaseUs } = model.ledgers[ledger];
  const rate = buyers / seconds;
  const sold = Math.min(units, buyers);
  const orders = sold / seconds;
  const connections = Math.ceil(rate * model.heldS);
  const apiCores = (rate * model.apiUs) / 1e6;
  const workerCores = (orders * workerUs) / 1e6;
  const gateCores = (rate * model.gateUs) / 1e6;
  const api = Math.max(atLeastOne(apiCores, model), Math.ceil(connections / model.connectionsEach));
  const workers = atLeastOne(workerCores, model);
  const primaries = atLeastOne(gateCores, model);
  const gateMb = (sold * model.gateBytes) / 1e6;
  const { api: apiMb, worker: workerMb, keeper: keeperMb } = model.memoryMb;
  return {
    rate,
    api,
    workers,
    primaries,
    replicas: primaries,
    lanes: Math.max(primaries, workers),
    cores: rounded(apiCores + workerCores + gateCores, 2),
    orders_per_s: rounded(orders, 1),
    refused_per_s: rounded(rate - rounded(orders, 1), 1),
    database_cores: rounded((orders * databaseUs) / 1e6, 2),
    connections,
    network_mbit: rounded((rate * model.pressBytes) / (1e6 / 8), 1),
    gate_mb: rounded(gateMb, 1),
    memory_mb: rounded(api * apiMb + workers * workerMb + keeperMb + gateMb, 1),
  };
}

/** Fills in the page, now and whenever something is typed. What makes no sense leaves the results empty. */
function showCalculator(form) {
  const whole = (name) => {
    const value = Number(form.elements[name].value);
    return Number.isFinite(value) && value >= 1 ? value : null;
  };
  const show = () => {
    const [buyers, seconds, units] = ["buyers", "seconds", "units"].map(whole);
    const isComplete = buyers !== null && seconds !== null && units !== null;
    const found = isComplete ? seckillNeeds(buyers, seconds, units, form.elements.ledger.value) : {};
    for (const place of document.querySelectorAll("[data-needs]")) {
      const value = found[place.dataset.needs];
      place.textContent = value === undefined ? "–" : value.toLocaleString(document.documentElement.lang);
    }
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
}

if (typeof document !== "undefined") {
  const look = () => {
    const form = document.querySelector("form[data-calculator]");
    if (form !== null) showCalculator(form);
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", look);
  else look();
}
