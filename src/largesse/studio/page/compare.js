// Runs side by side.

import { server } from "./api.js";
import { make, put, strip } from "./dom.js";
import { levelColour } from "./levels.js";
import { runAddress } from "./runs.js";
import { amount, count, day, number, percent } from "./words.js";

export async function show(page, [, ...names]) {
  const runs = await Promise.all(names.map((name) => server.runOf(name)));
  const alike = new Set(runs.map(({ response, response_kind: kind }) => `${kind} ${response}`)).size === 1;
  const ends = runs.flatMap(({ value, value_interval: interval }) => [value, ...(interval ?? [])]).filter(Number.isFinite);
  const low = Math.min(...ends);
  const high = Math.max(...ends);
  const lines = [
    ["What it says", (run) => run.headline ?? "–"],
    ["Value", (run) => valueCell(run, alike ? [low, high] : null)],
    ...(runs.some(({ profit }) => profit) ? [["Left after costs", profitCell]] : []),
    ["Spend per customer", (run) => amount(run.spend, run.unit)],
    ["Budget per customer", (run) => amount(run.budget, run.unit)],
    ["Price of the budget", (run) => priceText(run, run.planned?.price)],
    ["Who gets what", (run) => sharesCell(run.levels ?? [])],
    ["Customers", (run) => (run.customers ? count(run.customers) : "–")],
    ["Model", (run) => run.model ?? "–"],
    ["Made", (run) => day(run.made)],
  ];
  put(page, make("h1", {}, "Runs side by side"), differNote(runs),
    make("div", { class: "wide-table", role: "region", "aria-label": "Comparison", tabindex: "0" }, make("table", { class: "compare" },
      make("thead", {}, make("tr", {}, make("td", {}), runs.map(({ name }) => make("th", { scope: "col" }, make("a", { href: runAddress(name) }, name))))),
      make("tbody", {}, lines.map(([words, cell]) => make("tr", {}, make("th", { scope: "row" }, words), runs.map((run) => make("td", { "data-label": run.name }, cell(run)))))))),
    make("p", { class: "row-of-buttons" }, make("a", { class: "button", href: "#/" }, "To the start")));
  return { title: "Comparison", wide: "broad" };
}

/** A value that comes from another log or counts another response is not better or worse. */
function differNote(runs) {
  const same = new Set(runs.map(({ response, customers }) => `${response} ${customers}`)).size === 1;
  return same ? null : make("p", { class: "lead" }, "These runs differ in their customers or in what is counted as response: compare their values with care.");
}

/** How a run writes values: per cent where customers say yes or no, else amounts in the unit of the response. */
export function valueWriter(run) {
  return run.response_kind === "binary" ? (x) => percent(x) : (x) => (run.response_unit ? amount(x, run.response_unit) : number(x));
}

/** What one more unit of budget buys, in responses or their unit. */
export function priceText(run, price) {
  if (!Number.isFinite(price)) return "–";
  if (price <= 0) return "nothing more to gain";
  if (run.response_kind !== "binary" && run.response_unit) return `${amount(price, run.response_unit)} for each ${amount(1, run.unit)}`;
  return `${amount(Number((1 / price).toPrecision(3)), run.unit)} for one more ${run.response_kind === "binary" ? "response" : "unit of response"}`;
}

function profitCell({ profit, unit }) {
  if (!profit) return "–";
  const write = (x) => amount(x, unit);
  return [make("b", {}, write(profit.estimate)), make("span", { class: "small" }, `per customer; 95 % interval ${write(profit.low)} to ${write(profit.high)}`)];
}

function valueCell(run, axis) {
  const write = valueWriter(run);
  const interval = run.value_interval;
  return [make("b", {}, write(run.value)), interval ? make("span", { class: "small" }, `95 % interval ${write(interval[0])} to ${write(interval[1])}`) : null, axis && Number.isFinite(run.value) ? strip(run.value, interval, ...axis) : null];
}

/** A bar of the levels' shares, and the same as a list. */
export function sharesCell(levels) {
  if (!levels.length) return "–";
  const many = levels.length;
  return [
    make("div", { class: "shares", "aria-hidden": "true" }, levels.map(({ share }, k) => make("span", { style: { "flex-grow": String(share), background: levelColour(k, many) } }))),
    make("ul", { class: "share-list" }, levels.map(({ name, title, share }, k) => make("li", {}, make("span", { class: "swatch", style: { background: levelColour(k, many) }, "aria-hidden": "true" }), make("span", { class: "share-name" }, title ?? name), make("b", {}, percent(share, share > 0 && share < 0.01 ? 1 : 0))))),
  ];
}
