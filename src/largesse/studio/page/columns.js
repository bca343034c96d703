// What the columns are, what the levels cost, and what may be spent.

import { server } from "./api.js";
import { button, make, put, refill, say } from "./dom.js";
import { adoptLevels, columnOf, findGaps, isPaidByRow, openDraft, readCosts, rolesOf, saveDraft, toRequest } from "./draft.js";
import { budgetOffer, budgetPart } from "./budget.js";
import { costOffer, levelsPart, orderNote } from "./levels.js";
import { beside, refusalBox } from "./messages.js";
import { columnsPart, questionsPart } from "./roles.js";
import { bytes, counted, listWords, plainAmount, readNumber } from "./words.js";

const WAIT = 350; // milliseconds without another key before the server is asked
const SPOTS = { order: orderNote, costs: costOffer, budget: budgetOffer };

export async function show(page, [, id]) {
  const [found, state] = await Promise.all([server.table(id), server.state()]);
  const draft = openDraft(found);
  const sheet = new Sheet(found, draft, state);
  if (Object.keys(draft.given).length) await sheet.look();
  put(page, ...sheet.parts());
  return { title: "Columns", step: 1, table: encodeURIComponent(id), leave: () => sheet.stop(), after: () => sheet.check() };
}

/** The page of one table: its parts, and what happens when one of them changes. */
class Sheet {
  constructor(table, draft, state) {
    Object.assign(this, { table, draft, models: state.models, files: state.files, timer: 0, asking: null, problems: [], tried: false });
    this.places = {};
    for (const place of ["questions", "columns", "levels", "budget", "question", "trouble"]) this.places[place] = make("div", { class: `part-${place}` });
  }

  parts() {
    const { table, places } = this;
    this.draw("questions", "columns", "levels", "budget");
    return [
      make("p", { class: "eyebrow" }, make("b", {}, table.name), ` · ${counted(table.rows, "row")} · ${counted(table.columns.length, "column")} · ${bytes(table.bytes)}`),
      make("h1", {}, "What does this table say?"),
      make("p", { class: "lead" }, "These are guesses from names and values. Look through them and correct what is wrong."),
      notesOf(table),
      places.questions, places.levels, places.budget, places.columns, places.question, places.trouble,
      make("div", { class: "go" }, button("Check the log", () => this.goOn(), { kind: "main", id: "go-on" }), make("a", { class: "button", href: "#/" }, "Another table")),
    ];
  }

  /** Draw parts of the page again, from the draft. */
  draw(...names) {
    const parts = { questions: questionsPart, columns: columnsPart, levels: levelsPart, budget: budgetPart };
    for (const name of names) refill(this.places[name], parts[name](this));
    this.mark();
  }

  /** Somebody typed: keep it, and look whether all is said. */
  typed() {
    saveDraft(this.draft);
    this.check();
  }

  /** Somebody chose what a column is: levels and suggestions may be others now. */
  async chose() {
    saveDraft(this.draft);
    this.draw("questions", "columns");
    await this.look();
    this.draw("levels", "budget");
    this.check();
  }

  async look() {
    try {
      const seen = await server.look(this.draft.table, rolesOf(this.draft));
      this.table = { ...this.table, ...seen, columns: this.table.columns };
      adoptLevels(this.draft, this.table);
      saveDraft(this.draft);
      refill(this.places.trouble);
    } catch (error) {
      this.table = { ...this.table, levels: null };
      refill(this.places.trouble, refusalBox(error));
    }
  }

  /** Look for what is missing; where nothing is, ask the server whether a campaign can be made of it. */
  check() {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.problems = [];
    this.mark();
    if (!findGaps(this.draft, this.table).length) this.timer = setTimeout(() => this.ask(), WAIT);
  }

  async ask() {
    this.asking = new AbortController();
    try {
      const answer = await server.campaign(toRequest(this.draft), this.asking.signal);
      this.problems = answer.problems ?? [];
      refill(this.places.trouble);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status >= 400 && error.problems?.length) this.problems = error.problems;
      else refill(this.places.trouble, refusalBox(error, () => this.ask()));
    }
    this.mark();
  }

  /** Show what is missing or wrong next to the field, and the question in words below. */
  mark() {
    const gaps = findGaps(this.draft, this.table);
    const said = (this.table.problems ?? []).filter(({ what }) => !/^no column is/.test(what)); // those are gaps, too
    const found = [...gaps, ...said, ...this.problems].map((one) => ({ ...one, place: one.place ?? placeOf(one, this.draft) }));
    for (const place of ["level", "response", "columns", "levels", "budget"]) {
      const shown = found.filter((one) => one.place === place);
      for (const part of Object.values(this.places)) part.querySelectorAll(`[data-problems="${place}"]`).forEach((spot) => fillSpot(spot, shown));
    }
    this.fillSpots();
    refill(this.places.question, questionPart(this.draft, this.table, gaps, found.filter((one) => one.place === "other")));
  }

  /** Draw what depends on typed numbers again, where it is another: fields themselves stay, so that no press is lost. */
  fillSpots() {
    for (const part of [this.places.levels, this.places.budget]) {
      part.querySelectorAll("[data-spot]").forEach((spot) => {
        const { key, build } = SPOTS[spot.dataset.spot](this);
        if (spot.dataset.key === key) return;
        spot.dataset.key = key;
        refill(spot, build?.() ?? []);
      });
      part.querySelectorAll(".unit").forEach((unit) => { unit.textContent = this.draft.unit; });
    }
  }

  goOn() {
    const gaps = findGaps(this.draft, this.table);
    if (gaps.length) {
      const field = document.getElementById(gaps[0].focus);
      field?.scrollIntoView({ block: "center" });
      field?.focus({ preventScroll: true });
      say(gaps[0].what);
      return;
    }
    saveDraft(this.draft);
    location.hash = `#/table/${encodeURIComponent(this.draft.table)}/checkup`;
  }

  stop() {
    clearTimeout(this.timer);
    this.asking?.abort();
  }
}

function fillSpot(spot, shown) {
  const words = shown.map(({ what, hint, tone }) => `${tone}${what}${hint}`).join("|");
  if (spot.dataset.words === words) return; // what stands there already is not read out again
  spot.dataset.words = words;
  refill(spot, shown.length ? beside(null, shown) : []);
}

/** The part of the page that a problem of the server concerns. */
function placeOf({ where, what }, draft) {
  const text = where || what;
  if (/^(plan|budget|total)|budget|total/i.test(text)) return "budget";
  if (/\blevels?\b.*\b(cost|order|name)|\bcosts?\b|^levels/i.test(text)) return "levels";
  const column = ["level", "response"].find((role) => columnOf(draft, role) && text.includes(columnOf(draft, role)));
  if (column) return column;
  return /column|feature/i.test(text) ? "columns" : "other";
}

function notesOf(table) {
  const notes = table.notes ?? [];
  return notes.length ? make("ul", { class: "notes" }, notes.map((note) => make("li", {}, note))) : null;
}

/** The question in words: what will be looked for, or what is still to be said. */
function questionPart(draft, table, gaps, others) {
  if (gaps.length) {
    return make("div", { class: "question" }, make("h2", {}, "Still to say"),
      make("p", {}, `${listWords(gaps.map(({ short }) => short))}.`.replace(/^./, (first) => first.toUpperCase())));
  }
  const unit = draft.unit.trim();
  const spent = readNumber(draft.budget);
  const names = draft.names;
  const most = draft.kind === "total" ? `${plainAmount(spent, unit)} in total` : `${plainAmount(spent, unit)} per customer on average`;
  const other = draft.kind === "total" ? `${plainAmount(spent / table.rows, unit)} per customer` : `${plainAmount(spent * table.rows, unit)} in total`;
  const paid = isPaidByRow(draft) ? "costs as the log has them" : draft.onRedemption ? "paid only to those who respond" : `costs ${listWords(readCosts(draft).map((cost) => plainAmount(cost, unit)))}`;
  return make("div", { class: "question" }, make("h2", {}, "The question"),
    make("p", {}, "Who of ", counted(table.rows, "customer"), " should get ", listWords(names.map((name) => `“${name}”`), "or"), `, so that “${columnOf(draft, "response")}” is as high as possible for at most ${most}? `),
    make("p", { class: "small" }, `About ${other}; ${paid}.`),
    others.length ? beside(null, others) : null);
}
