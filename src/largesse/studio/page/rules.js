// Rules of a plan beyond its budget: how many, which segments, who may not get what, fixed customers, how sure.

import { button, icon, make, refill, say } from "./dom.js";
import { count, readNumber } from "./words.js";

const SURE = [["0.5", "as likely as not (50 %)"], ["0.8", "probably (80 %)"], ["0.9", "very probably (90 %)"], ["0.95", "almost surely (95 %)"]];

/** A run's levels, the cheapest first: as rules name them (key), and as people do (name). */
const levelsOf = (run) => (run.levels ?? []).map(({ name, title }) => ({ key: name, name: title ?? name }));

const isGiven = (texts) => Object.values(texts).some((text) => String(text).trim());

/** What a run's own plan asks for, as texts for the fields. */
export function rulesOf(run) {
  const plan = run.plan ?? {};
  const texts = (table, by = 1) => Object.fromEntries(Object.entries(table ?? {}).map(([name, value]) => [name, String(Number((value * by).toPrecision(12)))]));
  return {
    caps: texts(plan.caps),
    shares: texts(plan.shares, 100),
    segment: plan.segment ?? "",
    segmentBudgets: texts(plan.segment_budgets),
    barred: Object.entries(plan.barred ?? {}).flatMap(([column, values]) => Object.entries(values).flatMap(([value, levels]) => levels.map((level) => ({ column, value, level: String(level) })))),
    fixed: Object.entries(plan.fixed ?? {}).map(([customer, level]) => `${customer}, ${level}`).join("\n"),
    sure: String(plan.budget_confidence ?? 0.9),
  };
}

/** The fields for all rules. `asked` holds what was typed; `keep` keeps it. */
export function rulesPart(run, asked, keep) {
  return make("div", { class: "rules" }, capsPart(run, asked, keep), barredPart(run, asked, keep), segmentsPart(run, asked, keep), fixedPart(run, asked, keep), surePart(asked, keep));
}

function fold(title, open, words, ...children) {
  const details = make("details", { class: "rule" }, make("summary", {}, title), words ? make("p", { class: "small" }, words) : null, ...children);
  details.open = open;
  return details;
}

function numberField(texts, name, keep, props, unit) {
  const input = make("input", { type: "text", inputmode: "decimal", class: "money", autocomplete: "off", value: texts[name] ?? "", ...props });
  input.addEventListener("input", () => { texts[name] = input.value; keep(); });
  return make("span", { class: "cost" }, input, make("span", { class: "unit", "aria-hidden": "true" }, unit));
}

function menu(props, options, now, act) {
  const select = make("select", props, options.map((option) => (Array.isArray(option) ? make("option", { value: option[0] }, option[1]) : make("option", { value: option }, option))));
  select.value = now;
  select.addEventListener("change", () => act(select.value));
  return select;
}

function capsPart(run, asked, keep) {
  return fold("How many may get a level", isGiven(asked.caps) || isGiven(asked.shares), "Leave empty what has no limit.",
    make("div", { class: "grid-fields" }, make("span", { class: "small" }, "Level"), make("span", { class: "small" }, "at most, customers"), make("span", { class: "small" }, "at least, share"),
      levelsOf(run).map(({ key, name }, k) => [
        make("span", { class: "level-name" }, name),
        numberField(asked.caps, key, keep, { id: `caps-${k}`, "aria-label": `At most this many customers get ${name}` }, ""),
        numberField(asked.shares, key, keep, { id: `shares-${k}`, "aria-label": `At least this share of customers gets ${name}, in per cent` }, "%"),
      ])));
}

/** "Customers whose … is … do not get …": one line for each. */
function barredPart(run, asked, keep) {
  const columns = Object.keys(run.segments ?? {});
  const levels = levelsOf(run).map(({ key, name }) => [key, name]);
  if (!columns.length) return null;
  const place = make("ul", { class: "barred" });
  const draw = () => refill(place, asked.barred.map((rule, k) => {
    const change = (key) => (value) => {
      rule[key] = value;
      if (key === "column") [rule.value] = run.segments[value];
      keep();
      draw();
    };
    const remove = () => {
      asked.barred.splice(k, 1);
      keep();
      draw();
      say("The rule is removed.");
      document.getElementById("add-barred").focus();
    };
    const values = run.segments[rule.column] ?? [rule.value];
    return make("li", {}, make("span", {}, "Where"), menu({ id: `barred-column-${k}`, "aria-label": "Column" }, columns.includes(rule.column) ? columns : [rule.column, ...columns], rule.column, change("column")),
      make("span", {}, "is"), menu({ id: `barred-value-${k}`, "aria-label": "Value" }, values.map(String), rule.value, change("value")),
      make("span", {}, "never give"), menu({ id: `barred-level-${k}`, "aria-label": "Level" }, levels, rule.level, change("level")),
      button(icon("away"), remove, { kind: "arrow", "aria-label": `Remove the rule about ${rule.value}` }));
  }));
  const add = () => {
    asked.barred.push({ column: columns[0], value: String(run.segments[columns[0]][0]), level: levels.at(-1)[0] });
    keep();
    draw();
    document.getElementById(`barred-column-${asked.barred.length - 1}`).focus();
  };
  draw();
  return fold("Who may not get what", asked.barred.length > 0, null, place, button("Add a rule", add, { id: "add-barred" }));
}

function segmentsPart(run, asked, keep) {
  const columns = Object.keys(run.segments ?? {});
  if (!columns.length) return null;
  const place = make("div", {});
  const draw = () => refill(place, !run.segments[asked.segment] ? [] : make("div", { class: "grid-fields two" }, make("span", { class: "small" }, "Segment"), make("span", { class: "small" }, "at most, in total"),
    run.segments[asked.segment].map((value, k) => [make("span", { class: "level-name" }, String(value)), numberField(asked.segmentBudgets, value, keep, { id: `segment-${k}`, "aria-label": `Total budget of ${value}` }, run.unit ?? "")])));
  const choose = (column) => {
    asked.segment = column;
    asked.segmentBudgets = {};
    keep();
    draw();
  };
  draw();
  return fold("A budget for each segment", Boolean(asked.segment), "What may be spent on each group. Together they stay within the budget above.",
    make("label", { for: "segment" }, "Column"), menu({ id: "segment" }, [["", "No segments"], ...columns], columns.includes(asked.segment) ? asked.segment : "", choose), place);
}

function fixedPart(run, asked, keep) {
  const area = make("textarea", { id: "fixed", rows: 4, spellcheck: "false", placeholder: `c00017, ${levelsOf(run).at(-1)?.name ?? "10"}` });
  area.value = asked.fixed;
  area.addEventListener("input", () => { asked.fixed = area.value; keep(); });
  return fold("Customers whose level is fixed", Boolean(asked.fixed.trim()), null, make("label", { for: "fixed" }, "One line for each: customer, level"), area);
}

function surePart(asked, keep) {
  const options = SURE.some(([value]) => value === asked.sure) ? SURE : [[asked.sure, asked.sure], ...SURE];
  return fold("How surely the budget must hold", asked.sure !== "0.9", "Where the cost depends on who responds, it is not known exactly in advance.",
    make("label", { for: "sure" }, "The true cost stays within the budget"), menu({ id: "sure" }, options, asked.sure, (value) => { asked.sure = value; keep(); }));
}

// -- reading ----------------------------------------------------------------------------------------------------------

function readTable(texts, read, what, problems) {
  const table = {};
  for (const [name, text] of Object.entries(texts)) {
    if (!String(text).trim()) continue;
    const value = readNumber(String(text).replace("%", ""));
    if (value === null || value < 0) problems.push({ what: `${what} ${name}: “${text}” is not a number`, hint: "give a number, or leave it empty" });
    else table[name] = read(value);
  }
  return Object.keys(table).length ? table : null;
}

function readFixed(run, asked, problems) {
  const fixed = {};
  asked.fixed.split("\n").map((line) => line.trim()).filter(Boolean).forEach((line, k) => {
    const [customer, ...rest] = line.split(/[,;\t]/).map((part) => part.trim());
    const level = rest.join(",");
    const known = levelsOf(run).find(({ key, name }) => key === level || name === level);
    const where = `line ${count(k + 1)} of the fixed customers`;
    if (!customer || !level) problems.push({ what: `${where}: “${line}”`, hint: "write the customer, a comma, and the level" });
    else if (!known) problems.push({ what: `${where}: “${level}” is not a level`, hint: `the levels are ${levelsOf(run).map(({ name }) => name).join(", ")}` });
    else fixed[customer] = known.key;
  });
  return Object.keys(fixed).length ? fixed : null;
}

function readBarred(rules) {
  const barred = {};
  for (const { column, value, level } of rules) {
    barred[column] ??= {};
    const levels = (barred[column][value] ??= []);
    if (!levels.includes(level)) levels.push(level);
  }
  return rules.length ? barred : null;
}

/** What was typed as settings of [plan], and what is wrong with it; null takes a rule of the run away. */
export function readRules(run, asked) {
  const problems = [];
  const budgets = asked.segment ? readTable(asked.segmentBudgets, (x) => x, "Segment", problems) : null;
  const plan = {
    caps: readTable(asked.caps, (x) => x, "At most", problems),
    shares: readTable(asked.shares, (x) => x / 100, "At least", problems),
    segment: budgets ? asked.segment : null,
    segment_budgets: budgets,
    barred: readBarred(asked.barred),
    fixed: readFixed(run, asked, problems),
    budget_confidence: Number(asked.sure),
  };
  return { plan, problems };
}
