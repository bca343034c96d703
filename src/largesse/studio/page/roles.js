// Which column says what each customer got, which says what happened, and what the others are.

import { button, make, newId, say } from "./dom.js";
import { columnOf, FEATURE, giveRole, IGNORED } from "./draft.js";
import { sentence } from "./messages.js";
import { count, counted, percent } from "./words.js";

const ASKED = {
  level: ["What did each customer get?", "The incentive: an amount, a coupon, a message, or nothing."],
  response: ["What happened then?", "What you want more of: bought or not, revenue, a visit."],
};
const FOLDED = 12; // columns that are shown at once

/** The two columns that a log must have. */
export function questionsPart(sheet) {
  return make("section", { "aria-label": "The two columns that matter" }, make("div", { class: "cards two" }, Object.keys(ASKED).map((role) => questionCard(sheet, role))));
}

function questionCard(sheet, role) {
  const { table, draft } = sheet;
  const [question, help] = ASKED[role];
  const now = columnOf(draft, role);
  const column = table.columns.find(({ name }) => name === now);
  const id = `role-${role}`;
  const choose = (event) => {
    const before = giveRole(draft, event.currentTarget.value || null, role, false);
    if (before) say(`“${before}” is left out now.`);
    sheet.chose();
  };
  const options = groupColumns(table.columns, role);
  const select = make("select", { id, "aria-describedby": `${id}-help`, on: { change: choose } }, now ? null : make("option", { value: "" }, "Choose a column…"), options);
  select.value = now ?? "";
  return make("div", { class: "card" },
    make("label", { for: id, class: "card-title" }, question),
    make("p", { class: "small", id: `${id}-help` }, help),
    select,
    column ? make("p", { class: "small examples" }, describe(column)) : null,
    column ? make("p", { class: "small" }, reasonOf(column, draft)) : null,
    column ? writtenField(sheet, column) : null,
    make("div", { "data-problems": role }));
}

/** The columns as options of a menu, those that could have the role first. */
function groupColumns(columns, role) {
  const fits = role === "level" ? ({ distinct }) => distinct >= 2 && distinct <= 20 : ({ kind }) => kind === "number" || kind === "yes/no";
  const groups = [[role === "level" ? "Few distinct values" : "Numbers, yes or no", columns.filter(fits)], ["Other columns", columns.filter((column) => !fits(column))]];
  return groups.filter(([, own]) => own.length).map(([label, own]) => make("optgroup", { label }, own.map(({ name }) => make("option", { value: name }, name))));
}

function describe(column) {
  const parts = [column.kind, Number.isFinite(column.distinct) ? counted(column.distinct, "distinct value") : null, column.missing ? `${count(column.missing)} missing` : null];
  const examples = column.examples?.length ? make("span", { class: "values" }, ...column.examples.map((value) => make("code", {}, String(value)))) : null;
  return [parts.filter(Boolean).join(" · "), examples];
}

function reasonOf(column, draft) {
  return draft.given[column.name] ?? (column.reason && !/distinct/.test(column.reason) ? sentence(column.reason) : "");
}

/** All other columns, each with a menu of what it can be. */
export function columnsPart(sheet) {
  const { table, draft } = sheet;
  const others = sortColumns(table.columns).filter(({ name }) => !(draft.roleOf[name] in ASKED));
  const roles = (table.role_names ?? []).filter(({ role }) => !(role in ASKED)).map((one) => ({ ...one, role: one.role === "features" ? FEATURE : one.role }));
  const folded = others.length > FOLDED + 3 && !sheet.unfolded;
  const shown = folded ? others.slice(0, FOLDED) : others;
  const tally = (role) => others.filter(({ name }) => draft.roleOf[name] === role).length;
  return make("section", { "aria-labelledby": "roles" },
    make("h2", { id: "roles", tabindex: "-1" }, "The other columns"),
    make("p", { class: "caption" }, `${counted(tally(FEATURE), "column")} to learn from, ${count(tally(IGNORED))} left out. Learn only from what was known before the incentive was chosen: what happened afterwards would give the answer away.`),
    make("div", { "data-problems": "columns" }),
    make("ul", { class: "columns" }, shown.map((column) => columnRow(sheet, column, roles))),
    folded ? make("p", { class: "row-of-buttons" }, button(`Show ${count(others.length - FOLDED)} more`, () => { sheet.unfolded = true; sheet.draw("columns"); document.getElementById("roles").focus(); })) : null,
    rolesHelp(roles));
}

/** Columns with a role of their own first, then features, then what is left out; as guessed, so that rows stay in place. */
function sortColumns(columns) {
  const rank = ({ role }) => (role === IGNORED || !role ? 2 : role === "feature" || role === "features" ? 1 : 0);
  return [...columns].sort((a, b) => rank(a) - rank(b));
}

function columnRow(sheet, column, roles) {
  const { draft } = sheet;
  const id = `column-${sheet.table.columns.indexOf(column)}`;
  const choose = (event) => {
    const role = event.currentTarget.value;
    const before = giveRole(draft, column.name, role, roles.find((one) => one.role === role)?.many ?? true);
    if (before) say(`“${before}” is left out now.`);
    sheet.chose();
  };
  const select = make("select", { id, "aria-describedby": `${id}-why`, on: { change: choose } }, roles.map(({ role, label }) => make("option", { value: role }, label)));
  select.value = draft.roleOf[column.name];
  const missing = column.missing && sheet.table.rows ? ` · ${percent(column.missing / sheet.table.rows, 0)} missing` : "";
  return make("li", { class: draft.roleOf[column.name] === IGNORED ? "column out" : "column" },
    make("label", { for: id, class: "column-name" }, column.name),
    make("p", { class: "small" }, `${column.kind}${missing}`, " ", make("span", { class: "values" }, (column.examples ?? []).map((value) => make("code", {}, String(value))))),
    select,
    make("p", { class: "small why", id: `${id}-why` }, reasonOf(column, draft)),
    writtenField(sheet, column));
}

/** Where a text could be read in two ways, such as a date: which one is meant. */
function writtenField(sheet, column) {
  const { table, draft } = sheet;
  const found = (table.parse ?? []).find((one) => one.column === column.name);
  if (!found) return null;
  const id = `written-${table.columns.indexOf(column)}`;
  const select = make("select", { id }, make("option", { value: "" }, "leave it as text"), found.ways.map((way) => make("option", { value: way }, way)));
  select.value = draft.parse[column.name] ?? "";
  select.addEventListener("change", () => {
    if (select.value) draft.parse[column.name] = select.value;
    else delete draft.parse[column.name];
    sheet.typed();
  });
  return make("p", { class: "written" }, make("label", { for: id }, "How is ", make("code", {}, found.example), " written?"), select);
}

function rolesHelp(roles) {
  return make("details", { id: newId("help") }, make("summary", {}, "What these words mean"),
    make("dl", { class: "glossary" }, roles.filter(({ help }) => help).flatMap(({ label, help }) => [make("dt", {}, label), make("dd", {}, sentence(help))])));
}
