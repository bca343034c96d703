// What somebody has said about a table so far: kept by the browser, so that another tab and another start of the studio have it.

import { readNumber } from "./words.js";

export const FEATURE = "feature";
export const PROTECTED = "protected";
export const IGNORED = "ignore";
const VERSION = 2;
const PREFIX = "largesse-draft-";
const MOST_KEPT = 20;
/** The same table gets the same draft, also when it is chosen again. */
const keyOf = (table) => `${PREFIX}${VERSION}-${table.name}-${table.bytes}-${table.rows}`;
const isFeature = (role) => role === "feature" || role === "features";

/** The draft of a table: as it was left, or the guesses. */
export function openDraft(table) {
  const guessed = {
    table: table.id,
    roleOf: Object.fromEntries(table.columns.map(({ name, role }) => [name, isFeature(role) ? FEATURE : role || IGNORED])),
    given: {}, // columns whose role a person chose
    names: [],
    settled: false, // a person has said that the order is right
    costs: {},
    contact: "", // what it costs to contact a customer
    onRedemption: Boolean(table.suggested_on_redemption),
    kind: "budget",
    budget: "",
    unit: table.suggested_unit ?? "",
    responseUnit: "",
    responseValue: "",
    model: "auto",
    seed: 0,
    title: table.suggested_title ?? "",
    parse: {}, // column → how it is written, where it could be read in two ways
    runName: "",
    checkup: null,
    labels: "", // "column or level = label", one on each line
    customers: "", // a table of the folder to plan for; empty: the customers of the log
    plan: {}, // rules of a run that is made again
    ...table.draft,
    key: keyOf(table),
  };
  let draft = guessed;
  try {
    const kept = JSON.parse(localStorage.getItem(guessed.key) ?? "null");
    const checkup = kept?.table === table.id ? kept?.checkup : null; // of this start of the studio
    if (kept) draft = { ...guessed, ...kept, checkup, table: table.id, roleOf: { ...guessed.roleOf, ...kept.roleOf } };
  } catch { /* what cannot be read is not there */ }
  return adoptLevels(draft, table);
}

export function saveDraft(draft) {
  try {
    localStorage.setItem(draft.key, JSON.stringify({ ...draft, saved: Date.now() }));
    const saved = (key) => JSON.parse(localStorage.getItem(key)).saved ?? 0;
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
    for (const key of keys.sort((a, b) => saved(b) - saved(a)).slice(MOST_KEPT)) localStorage.removeItem(key);
  } catch { /* a full or forbidden store: the draft lasts as long as the page */ }
}

/** Take over the levels that the table has now; an order that somebody made is kept while the levels are the same. */
export function adoptLevels(draft, table) {
  const names = (table.levels ?? []).map(({ name }) => name);
  const same = names.length === draft.names.length && names.every((name) => draft.names.includes(name));
  if (!same) {
    draft.names = names;
    draft.settled = false;
  }
  return draft;
}

export function columnOf(draft, role) {
  return Object.keys(draft.roleOf).find((name) => draft.roleOf[name] === role) ?? null;
}

/** Give a column a role; of roles that one column has, the column that had it before is left out. Returns that column. */
export function giveRole(draft, column, role, many) {
  const before = many ? null : columnOf(draft, role);
  if (before && before !== column) {
    draft.roleOf[before] = IGNORED;
    draft.given[before] = "It had this role before. It is left out now, unless you say what it is.";
  }
  if (column) {
    draft.roleOf[column] = role;
    draft.given[column] = "You chose this.";
  }
  return before !== column ? before : null;
}

/** Roles as the server reads them: one column for each, and the list of features. */
export function rolesOf(draft) {
  const roles = { features: [], protected: [] };
  for (const [name, role] of Object.entries(draft.roleOf)) {
    if (role === FEATURE) roles.features.push(name);
    else if (role === PROTECTED) roles.protected.push(name);
    else if (role !== IGNORED) roles[role] = name;
  }
  return roles;
}

export const readCosts = (draft) => draft.names.map((name) => readNumber(draft.costs[name]));
export const isPaidByRow = (draft) => columnOf(draft, "cost_column") !== null;

/** Whether the order of the levels is known: the names state it, somebody has said so, or the costs do. */
export function isOrdered(draft, table) {
  if (table.order_known || draft.settled) return true;
  const costs = readCosts(draft);
  return !isPaidByRow(draft) && costs.every((cost) => cost !== null) && costs.every((cost, k) => !k || cost > costs[k - 1]);
}

/** What is sent for a checkup, a campaign file or a run. */
export function toRequest(draft) {
  const spent = readNumber(draft.budget);
  return {
    table: draft.table,
    roles: rolesOf(draft),
    levels: {
      names: draft.names.length ? draft.names : null,
      costs: isPaidByRow(draft) ? null : readCosts(draft),
      on_redemption: !isPaidByRow(draft) && draft.onRedemption,
      contact_cost: isPaidByRow(draft) ? null : readNumber(draft.contact),
    },
    budget: draft.kind === "budget" ? spent : null,
    total: draft.kind === "total" ? spent : null,
    title: draft.title || draft.runName.trim() || null,
    unit: draft.unit.trim() || null,
    response_unit: draft.responseUnit.trim() || null,
    response_value: readNumber(draft.responseValue),
    model: draft.model,
    seed: draft.seed,
    parse: draft.parse,
    labels: readLabels(draft.labels),
    customers: draft.customers || null,
    plan: draft.plan ?? {},
  };
}

/** Labels as they are written, one on each line: "column or level = label". */
export function readLabels(text) {
  const lines = (text ?? "").split("\n").map((line) => line.match(/^\s*(.+?)\s*=\s*(.+?)\s*$/)).filter(Boolean);
  return Object.fromEntries(lines.map(([, name, label]) => [name, label]));
}

/** What is still to be said before the log can be checked: place on the page, words. */
export function findGaps(draft, table) {
  const gaps = [];
  const ask = (place, focus, short, what) => gaps.push({ place, focus, short, what, tone: "careful" });
  if (!columnOf(draft, "level")) ask("level", "role-level", "what each customer got", "Choose the column that says what each customer got.");
  if (!columnOf(draft, "response")) ask("response", "role-response", "what happened", "Choose the column that says what happened.");
  if (!Object.values(draft.roleOf).includes(FEATURE)) ask("columns", "roles", "something to learn from", "At least one column must describe the customers.");
  if (draft.names.length && !isPaidByRow(draft)) {
    const costs = readCosts(draft);
    const missing = draft.names.filter((name, k) => costs[k] === null);
    const wrong = missing.filter((name) => String(draft.costs[name] ?? "").trim());
    const first = draft.names.indexOf(wrong[0] ?? missing[0]);
    if (wrong.length) ask("levels", `cost-${first}`, "a cost that is a number", `“${draft.costs[wrong[0]]}” is not a number.`);
    else if (missing.length) ask("levels", `cost-${first}`, "what each level costs", "Say what each level costs you per customer; 0 where it costs nothing.");
    else if (costs.some((cost) => cost < 0)) ask("levels", `cost-${costs.findIndex((cost) => cost < 0)}`, "a cost of 0 or more", "A cost is 0 or more.");
    else if (costs.some((cost, k) => k && cost < costs[k - 1])) ask("levels", "sort", "the order of the levels", "Levels stand from the cheapest to the dearest, but these costs do not.");
  }
  if (draft.names.length && !isOrdered(draft, table) && !gaps.some(({ place }) => place === "levels")) {
    ask("levels", "settle", "the order of the levels", "Their names do not say which level is more. Move them until the smallest is first, or say that the order is right.");
  }
  const spent = readNumber(draft.budget);
  if (!draft.budget.trim()) ask("budget", "budget", "the budget", "Say what may be spent.");
  else if (spent === null || spent < 0) ask("budget", "budget", "a budget that is a number", `“${draft.budget}” is not an amount.`);
  if (draft.contact.trim() && readNumber(draft.contact) === null) ask("budget", "contact", "what a contact costs", `“${draft.contact}” is not an amount.`);
  if (draft.responseValue.trim() && readNumber(draft.responseValue) === null) ask("budget", "response-value", "what a response is worth", `“${draft.responseValue}” is not an amount.`);
  return gaps;
}
