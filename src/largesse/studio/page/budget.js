// What may be spent, and settings that most people leave as they are.

import { button, make, say } from "./dom.js";
import { columnOf, isPaidByRow } from "./draft.js";
import { sentence } from "./messages.js";
import { counted, plainAmount, readNumber } from "./words.js";

const AUTO = "Chooses for you: several models are blended, as far as rows that they have not seen support it.";

export function budgetPart(sheet) {
  const { draft } = sheet;
  if (!columnOf(draft, "level")) return [];
  const input = make("input", { type: "text", inputmode: "decimal", autocomplete: "off", id: "budget", class: "money large", value: draft.budget, "aria-label": draft.kind === "total" ? "Budget in total" : "Budget per customer" });
  input.addEventListener("input", () => { draft.budget = input.value; sheet.typed(); });
  return make("section", { "aria-labelledby": "budget-title" },
    make("h2", { id: "budget-title" }, "The budget"),
    make("p", { class: "caption" }, "What may be spent on average. Other budgets can be tried afterwards, without learning again."),
    make("div", { class: "budget" }, make("span", { class: "cost" }, input, make("span", { class: "unit", "aria-hidden": "true" }, draft.unit)),
      make("div", { class: "switch", role: "radiogroup", "aria-label": "The budget is" }, kind(sheet, "budget", "per customer"), kind(sheet, "total", "in total")), make("div", { "data-spot": "budget" })),
    make("div", { "data-problems": "budget" }),
    more(sheet));
}

function kind(sheet, name, words) {
  const { draft } = sheet;
  const radio = make("input", { type: "radio", name: "kind", id: `kind-${name}` });
  radio.checked = draft.kind === name;
  radio.addEventListener("change", () => { draft.kind = name; sheet.typed(); sheet.draw("budget"); });
  return make("label", {}, radio, make("span", {}, words));
}

/** A budget that the log suggests. */
export function budgetOffer(sheet) {
  const { draft, table } = sheet;
  const offered = table.suggested_budget;
  if (!Number.isFinite(offered)) return { key: "" };
  const total = draft.kind === "total";
  const value = total ? Math.round(offered * table.rows) : offered;
  if (readNumber(draft.budget) === value) return { key: "taken" };
  const words = `${plainAmount(value, draft.unit.trim())} ${total ? `for ${counted(table.rows, "customer")}` : "per customer"}`;
  const use = () => {
    draft.budget = String(value);
    say("The suggested budget is filled in.");
    sheet.typed();
    sheet.draw("budget");
    document.getElementById("budget")?.focus();
  };
  return { key: words, build: () => make("p", { class: "offer" }, `Suggested: ${words}. `, button("Use it", use, { id: "use-budget" })) };
}

function moneyField(sheet, id, key) {
  const { draft } = sheet;
  const input = make("input", { type: "text", inputmode: "decimal", id, class: "money", value: draft[key], autocomplete: "off", placeholder: "none" });
  input.addEventListener("input", () => { draft[key] = input.value; sheet.typed(); });
  return make("span", { class: "cost" }, input, make("span", { class: "unit", "aria-hidden": "true" }, draft.unit));
}

function more(sheet) {
  const { draft, models } = sheet;
  const files = (sheet.files ?? []).filter(({ name }) => name !== sheet.table.name);
  const model = make("select", { id: "model" }, (models ?? []).map(({ name }) => make("option", { value: name }, name)));
  model.value = draft.model;
  const words = make("p", { class: "small" });
  const explain = () => { words.textContent = draft.model === "auto" ? AUTO : sentence((models ?? []).find(({ name }) => name === draft.model)?.sentence); };
  model.addEventListener("change", () => { draft.model = model.value; explain(); sheet.typed(); });
  explain();
  const unit = make("input", { type: "text", id: "response-unit", class: "short", value: draft.responseUnit, autocomplete: "off", placeholder: "none" });
  unit.addEventListener("input", () => { draft.responseUnit = unit.value; sheet.typed(); });
  const labels = make("textarea", { id: "labels", rows: 3, value: draft.labels ?? "", placeholder: "age = Age in years", "aria-describedby": "labels-help" });
  labels.addEventListener("input", () => { draft.labels = labels.value; sheet.typed(); });
  const others = make("select", { id: "customers" }, make("option", { value: "" }, "the customers of this table"), files.map(({ name }) => make("option", { value: name }, name)));
  others.value = draft.customers ?? "";
  others.addEventListener("change", () => { draft.customers = others.value; sheet.typed(); });
  const details = make("details", { class: "more" }, make("summary", {}, "More settings"),
    make("div", { class: "fields" },
      make("div", {}, make("label", { for: "response-value" }, "What one response is worth to you"), moneyField(sheet, "response-value", "responseValue"), make("p", { class: "small" }, "Your margin on a sale, for example. Then the report says what is left after costs.")),
      isPaidByRow(draft) ? null : make("div", {}, make("label", { for: "contact" }, "Cost of a contact"), moneyField(sheet, "contact", "contact"), make("p", { class: "small" }, "Postage or a call: for everyone who gets more than the first level.")),
      make("div", {}, make("label", { for: "model" }, "How to learn"), model, words),
      make("div", {}, make("label", { for: "response-unit" }, "Unit of the response"), unit, make("p", { class: "small" }, "Only where it is an amount, such as revenue in €.")),
      make("div", {}, make("label", { for: "customers" }, "Plan for"), others, make("p", { class: "small" }, "Another table in the studio’s folder, with the same features: the customers to plan for.")),
      make("div", {}, make("label", { for: "labels" }, "Labels for the report"), labels, make("p", { class: "small", id: "labels-help" }, "One on each line: column or level = label."))));
  details.open = sheet.moreOpen ?? Boolean(draft.responseValue || draft.contact || draft.responseUnit || draft.labels || draft.customers || draft.model !== "auto");
  details.addEventListener("toggle", () => { sheet.moreOpen = details.open; });
  return details;
}
