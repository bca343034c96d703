// The levels in order, the cheapest first, and what each costs.

import { button, icon, make, say } from "./dom.js";
import { columnOf, isOrdered, isPaidByRow, readCosts } from "./draft.js";
import { sentence } from "./messages.js";
import { counted, number, percent, readNumber } from "./words.js";

const UNITS = ["€", "$", "£", "USD", "EUR", "GBP", "CHF", "points"];

export function levelsPart(sheet) {
  const { table, draft } = sheet;
  if (!columnOf(draft, "level")) return [];
  if (!table.levels?.length) {
    return make("section", { "aria-labelledby": "levels" }, make("h2", { id: "levels" }, "Levels"), make("p", { class: "caption" }, "The levels of this column could not be read."), make("div", { "data-problems": "levels" }));
  }
  const paid = isPaidByRow(draft);
  return make("section", { "aria-labelledby": "levels" },
    make("h2", { id: "levels", tabindex: "-1" }, paid ? "The levels, from small to large" : "The levels, and what each costs you"),
    make("p", { class: "caption" }, paid ? `The column “${columnOf(draft, "cost_column")}” says what each customer cost.` : "The cheapest first. The cost is what one customer costs you at this level: 0 where nothing is given."),
    make("div", { "data-spot": "order" }),
    make("div", { "data-problems": "levels" }),
    make("div", { "data-spot": "costs" }),
    make("ol", { class: paid ? "levels bare" : "levels" }, draft.names.map((name, k) => levelRow(sheet, name, k, paid))),
    extras(sheet, paid));
}

/** Where names do not state the order: ask. Where they do: say how. */
export function orderNote(sheet) {
  const { table, draft } = sheet;
  const why = sentence(table.order_reason);
  if (table.order_known && !draft.settled) return { key: `known ${why}`, build: () => (why ? make("p", { class: "small" }, `In order ${why.replace(/^By/, "by")}`) : []) };
  if (isOrdered(draft, table)) return { key: "ordered" };
  const settle = () => {
    draft.settled = true;
    say("The order is kept.");
    sheet.typed();
    document.getElementById("levels").focus();
  };
  const build = () => make("div", { class: "warning careful" }, make("span", { class: "tone" }, icon("careful")),
    make("div", {}, make("strong", {}, "Is this order right? "), why || "The names do not say which level is more.", " Use the arrows to move a level.",
      make("p", { class: "row-of-buttons" }, button("Yes, this order is right", settle, { id: "settle" }))));
  return { key: `ask ${why}`, build };
}

/** Costs that names or amounts suggest, and the order that the costs state: one press each. */
export function costOffer(sheet) {
  const { table, draft } = sheet;
  const costs = readCosts(draft);
  if (isPaidByRow(draft)) return { key: "" };
  if (costs.every((cost) => cost !== null) && costs.some((cost, k) => k && cost < costs[k - 1])) {
    const sort = () => {
      const known = new Map(draft.names.map((name) => [name, readNumber(draft.costs[name])]));
      draft.names.sort((a, b) => known.get(a) - known.get(b));
      say("The levels are sorted by cost.");
      sheet.typed();
      sheet.draw("levels");
      document.getElementById("levels").focus();
    };
    return { key: "sort", build: () => make("p", { class: "offer" }, "These costs are not in order. ", button("Sort by cost", sort, { id: "sort" })) };
  }
  const offered = table.suggested_costs;
  if (!offered || costs.some((cost) => cost !== null)) return { key: "" };
  const use = () => {
    table.levels.forEach(({ name }, k) => { draft.costs[name] = String(offered[k]); });
    say("The suggested costs are filled in.");
    sheet.typed();
    sheet.draw("levels");
    document.getElementById("cost-0")?.focus();
  };
  return { key: `use ${offered}`, build: () => make("p", { class: "offer" }, `Suggested: ${offered.map(number).join(", ")}. `, button("Use these costs", use, { id: "use-costs" })) };
}

function levelRow(sheet, name, k, paid) {
  const { table, draft } = sheet;
  const level = table.levels.find((one) => one.name === name);
  const own = table.levels.indexOf(level);
  const last = draft.names.length - 1;
  const move = (by) => {
    const to = k + by;
    if (to < 0 || to > last) return;
    draft.names.splice(to, 0, ...draft.names.splice(k, 1));
    draft.settled = true;
    say(`${name} is now ${to + 1} of ${last + 1}.`);
    sheet.typed();
    sheet.draw("levels");
  };
  const arrow = (kind, by, off) => button(icon(kind), () => move(by), { kind: "arrow", id: `move-${kind}-${own}`, "aria-label": `Move ${name} ${kind}`, "aria-disabled": off ? "true" : null });
  return make("li", { class: "level" },
    make("span", { class: "swatch", style: { background: levelColour(k, draft.names.length) }, "aria-hidden": "true" }),
    make("span", { class: "level-name" }, name),
    make("span", { class: "small level-facts" }, counted(level.rows, "row"), meanOf(level, table)),
    paid ? null : costField(sheet, name, k),
    make("span", { class: "arrows" }, arrow("up", -1, k === 0), arrow("down", 1, k === last)));
}

function costField(sheet, name, k) {
  const { draft } = sheet;
  const input = make("input", { type: "text", inputmode: "decimal", autocomplete: "off", id: `cost-${k}`, class: "money", value: draft.costs[name] ?? "", placeholder: "cost", "aria-label": `Cost of ${name}` });
  input.addEventListener("input", () => { draft.costs[name] = input.value; sheet.typed(); });
  return make("span", { class: "cost" }, input, make("span", { class: "unit", "aria-hidden": "true" }, draft.unit));
}

function meanOf(level, table) {
  if (!Number.isFinite(level.mean_response)) return "";
  const shares = table.levels.every(({ mean_response: mean }) => !Number.isFinite(mean) || (mean >= 0 && mean <= 1));
  return ` · mean response ${shares ? percent(level.mean_response) : number(level.mean_response)}`;
}

/** When a cost is paid, and in what unit. */
function extras(sheet, paid) {
  const { draft } = sheet;
  const redeemed = make("input", { type: "checkbox", id: "redeemed" });
  redeemed.checked = draft.onRedemption;
  redeemed.addEventListener("change", () => { draft.onRedemption = redeemed.checked; sheet.typed(); });
  const unit = make("input", { type: "text", id: "unit", list: "units", class: "short", value: draft.unit, autocomplete: "off", placeholder: "none" });
  unit.addEventListener("input", () => { draft.unit = unit.value; sheet.typed(); });
  return make("div", { class: "extras" },
    paid ? null : make("label", { class: "choice" }, redeemed, make("span", {}, "Paid only to those who respond", make("span", { class: "small" }, "a coupon that costs you nothing unless it is redeemed; the response is yes or no"))),
    make("label", { class: "inline", for: "unit" }, "Unit of money"), unit,
    make("datalist", { id: "units" }, UNITS.map((name) => make("option", { value: name }))));
}

/** The colour of level k of n: the report's own, pale for the cheapest. */
export function levelColour(k, many) {
  const place = many > 1 ? (k * 6) / (many - 1) : 3;
  const left = Math.min(Math.floor(place), 5);
  return `color-mix(in srgb, var(--ramp-${left + 1}) ${((place - left) * 100).toFixed(1)}%, var(--ramp-${left}))`;
}
