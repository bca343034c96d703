// Rules of a plan beyond its budget: at most, at least, segments, who may not get what, fixed customers.

import { make, refill } from "./dom.js";
import { count, readNumber } from "./words.js";

/** The names of a run's levels, the cheapest first. */
const namesOf = (run) => (run.levels ?? []).map((level) => level.name ?? String(level));

/** The fields for all rules. `asked` holds what was typed; `keep` keeps it. */
export function rulesPart(run, asked, keep) {
  const parts = [capsPart(run, asked, keep), segmentsPart(run, asked, keep), fixedPart(run, asked, keep)];
  return make("div", { class: "rules" }, parts);
}

function fold(title, open, words, ...children) {
  const details = make("details", { class: "rule" }, make("summary", {}, title), words ? make("p", { class: "small" }, words) : null, ...children);
  details.open = open;
  return details;
}

const isGiven = (texts) => Object.values(texts).some((text) => String(text).trim());

function capsPart(run, asked, keep) {
  const field = (kind, name, k, unit) => {
    const input = make("input", { type: "text", inputmode: "decimal", id: `${kind}-${k}`, class: "money", value: asked[kind][name] ?? "", autocomplete: "off", "aria-label": kind === "caps" ? `At most this many customers get ${name}` : `At least this share of customers gets ${name}, in percent` });
    input.addEventListener("input", () => { asked[kind][name] = input.value; keep(); });
    return make("span", { class: "cost" }, input, make("span", { class: "unit", "aria-hidden": "true" }, unit));
  };
  return fold("How many may get a level", isGiven(asked.caps) || isGiven(asked.shares), "Leave empty what has no limit.",
    make("div", { class: "grid-fields" }, make("span", { class: "small" }, "Level"), make("span", { class: "small" }, "at most, customers"), make("span", { class: "small" }, "at least, share"),
      namesOf(run).map((name, k) => [make("span", { class: "level-name" }, name), field("caps", name, k, ""), field("shares", name, k, "%")])));
}

function segmentsPart(run, asked, keep) {
  const columns = Object.keys(run.segments ?? {});
  if (!columns.length) return null;
  const place = make("div", {});
  const select = make("select", { id: "segment" }, make("option", { value: "" }, "No segments"), columns.map((name) => make("option", { value: name }, name)));
  select.value = columns.includes(asked.segment) ? asked.segment : "";
  const draw = () => refill(place, !asked.segment ? [] : make("div", { class: "grid-fields two" }, make("span", { class: "small" }, "Segment"), make("span", { class: "small" }, "at most in total"),
    run.segments[asked.segment].map((value, k) => {
      const input = make("input", { type: "text", inputmode: "decimal", id: `segment-${k}`, class: "money", autocomplete: "off", value: asked.segmentBudgets[value] ?? "", "aria-label": `Total budget of ${value}` });
      input.addEventListener("input", () => { asked.segmentBudgets[value] = input.value; keep(); });
      return [make("span", { class: "level-name" }, String(value)), make("span", { class: "cost" }, input, make("span", { class: "unit", "aria-hidden": "true" }, run.unit ?? ""))];
    })));
  select.addEventListener("change", () => { asked.segment = select.value; asked.segmentBudgets = {}; keep(); draw(); });
  draw();
  return fold("A budget for each segment", Boolean(asked.segment), "What may be spent on each group in total.", make("label", { for: "segment" }, "Column"), select, place);
}

function fixedPart(run, asked, keep) {
  const area = make("textarea", { id: "fixed", rows: 4, spellcheck: "false", placeholder: `c00017, ${namesOf(run).at(-1) ?? "10"}` });
  area.value = asked.fixed;
  area.addEventListener("input", () => { asked.fixed = area.value; keep(); });
  return fold("Customers whose level is fixed", Boolean(asked.fixed.trim()), null, make("label", { for: "fixed" }, "One line for each: customer, level"), area);
}

function readTable(texts, read, what, problems) {
  const table = {};
  for (const [name, text] of Object.entries(texts)) {
    if (!String(text).trim()) continue;
    const value = readNumber(String(text).replace("%", ""));
    if (value === null || value < 0) problems.push({ what: `${what} ${name}: “${text}” is not a number`, hint: "give a number, or leave it empty" });
    else table[name] = read(value);
  }
  return table;
}

/** What was typed as the server reads it, and what is wrong with it. */
export function readRules(run, asked) {
  const problems = [];
  const plan = {};
  const caps = readTable(asked.caps, (x) => x, "At most", problems);
  const shares = readTable(asked.shares, (x) => x / 100, "At least", problems);
  if (Object.keys(caps).length) plan.caps = caps;
  if (Object.keys(shares).length) plan.shares = shares;
  if (asked.segment) {
    plan.segment = asked.segment;
    plan.segment_budgets = readTable(asked.segmentBudgets, (x) => x, "Segment", problems);
  }
  const fixed = {};
  asked.fixed.split("\n").map((line) => line.trim()).filter(Boolean).forEach((line, k) => {
    const parts = line.split(/[,;\t]/).map((part) => part.trim());
    const [customer, level] = [parts[0], parts.slice(1).join(",").trim()];
    if (!customer || !level) problems.push({ what: `line ${count(k + 1)} of the fixed customers: “${line}”`, hint: "write the customer, a comma, and the level" });
    else if (!namesOf(run).includes(level)) problems.push({ what: `line ${count(k + 1)} of the fixed customers: “${level}” is not a level`, hint: `the levels are ${namesOf(run).join(", ")}` });
    else fixed[customer] = level;
  });
  return { plan, fixed: Object.keys(fixed).length ? fixed : null, problems };
}

