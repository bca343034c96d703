// The doctor's answer: can this log answer the question? Then the run.

import { server } from "./api.js";
import { button, icon, make, put, refill, say, strip } from "./dom.js";
import { findGaps, openDraft, rolesOf, saveDraft, toRequest } from "./draft.js";
import { follow, hasEnded } from "./jobs.js";
import { box, refusalBox, sentence } from "./messages.js";
import { progressPart } from "./progress.js";
import { count, counted, number, percent } from "./words.js";

const ANSWERS = {
  fine: ["This log can answer the question.", "Nothing was found that speaks against it."],
  careful: ["This log can answer the question, with care.", "Read what stands below before you decide by the result."],
  no: ["As it is, this log cannot answer the question.", "You can still run it, but do not decide by the result: its figures may be far from the truth. Mend what stands below first, if you can."],
};
const ORDER = ["no", "careful", "note"];

export async function show(page, [, id]) {
  let table = await server.table(id);
  const draft = openDraft(table);
  if (Object.keys(draft.given).length) table = { ...table, ...(await server.look(id, rolesOf(draft))), columns: table.columns };
  const way = `#/table/${encodeURIComponent(id)}`;
  const frame = { title: "Checkup", step: 2, table: encodeURIComponent(id) };
  if (findGaps(draft, table).length) {
    put(page, make("h1", {}, "Something is still to be said"), make("p", { class: "lead" }, "The log can be checked once columns, levels and budget are known."), make("p", { class: "row-of-buttons" }, make("a", { class: "button main", href: way }, "To the columns")));
    return frame;
  }
  const place = make("div", { class: "checkup" });
  put(page, make("p", { class: "eyebrow" }, make("b", {}, table.name), ` · ${counted(table.rows, "row")}`), place);
  const visit = new Visit(place, table, draft, way, await server.state());
  await visit.begin();
  return { ...frame, leave: () => visit.stop() };
}

class Visit {
  constructor(place, table, draft, way, state) {
    Object.assign(this, { place, table, draft, way, state, stop: () => {} });
    this.key = JSON.stringify(toRequest(draft));
  }

  /** Show the answer that is already there, or ask the doctor. */
  async begin() {
    const before = this.draft.checkup;
    if (before?.key === this.key) {
      try {
        const job = await server.job(before.job);
        if (!["failed", "cancelled"].includes(job.state)) return this.hear(job);
      } catch { /* forgotten: ask again */ }
    }
    await this.ask();
  }

  async ask() {
    try {
      const job = await server.doctor(toRequest(this.draft));
      this.draft.checkup = { key: this.key, job: job.id };
      saveDraft(this.draft);
      this.hear(job);
    } catch (error) {
      this.refuse(error);
    }
  }

  refuse(error) {
    refill(this.place, make("h1", {}, "The log could not be checked"), refusalBox(error, () => this.ask()), this.back());
  }

  back() {
    return make("p", { class: "row-of-buttons" }, make("a", { class: "button", href: this.way }, "Back to the columns"));
  }

  hear(job) {
    this.stop();
    if (hasEnded(job)) return this.end(job);
    const bar = progressPart(job, () => server.cancel(job.id).catch((error) => this.refuse(error)));
    refill(this.place, make("h1", {}, "Can this log answer the question?"), make("p", { class: "lead" }, "This is looked at before anything is learnt."), bar.element, this.back());
    this.stop = follow(job.id, (now) => (hasEnded(now) ? this.end(now) : bar.show(now)), (error) => this.refuse(error));
  }

  end(job) {
    if (job.state === "failed") return this.refuse(job.error);
    if (job.state === "cancelled") {
      refill(this.place, make("h1", {}, "The checkup was stopped"), make("p", { class: "row-of-buttons" }, button("Check again", () => this.ask(), { kind: "main" }), make("a", { class: "button", href: this.way }, "Back to the columns")));
      return null;
    }
    const { verdict, findings, levels } = job.result;
    const [headline, words] = ANSWERS[verdict] ?? ANSWERS.careful;
    refill(this.place,
      make("h1", { class: "answer-line" }, make("span", { class: `tone ${verdict}` }, icon(verdict)), headline),
      make("p", { class: "lead" }, words),
      findingsPart(findings ?? []), runPart(this, verdict), levelsFound(levels ?? [], this.draft));
    return say(headline);
  }
}

/** What was found: what to look at first as boxes, the rest as a list. */
function findingsPart(findings) {
  const asked = findings.filter(({ verdict }) => verdict !== "fine").sort((a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict));
  const fine = findings.filter(({ verdict }) => verdict === "fine");
  return [
    asked.length ? make("div", { class: "warnings" }, asked.map(({ verdict, title, text, hint }) => box(verdict, make("span", { class: "tone" }, `${capital(title)}: `), sentence(text), hint ? make("p", { class: "hint" }, sentence(hint)) : null))) : null,
    fine.length ? make("details", { open: !asked.length }, make("summary", {}, `${counted(fine.length, "check")} found nothing to worry about`),
      make("ul", { class: "checks" }, fine.map(({ title, text }) => make("li", { class: "check" }, make("span", { class: "tone fine" }, icon("fine")), make("span", { class: "about" }, capital(title)), make("span", { class: "said" }, sentence(text)))))) : null,
  ];
}

const capital = (words) => String(words ?? "").replace(/^./, (first) => first.toUpperCase());

/** The mean response at each level, with its interval. */
function levelsFound(levels) {
  const ends = levels.flatMap(({ response, interval }) => [response, ...(interval ?? [])]).filter(Number.isFinite);
  if (!ends.length) return null;
  const shares = ends.every((end) => end >= -0.2 && end <= 1.2);
  const write = shares ? (x) => percent(Math.min(Math.max(x, 0), 1)) : number;
  const low = Math.min(...ends);
  const high = Math.max(...ends);
  return make("section", { "aria-labelledby": "brought" }, make("h2", { id: "brought" }, "What each level brought"),
    make("p", { class: "caption" }, "The mean response at each level in the log, with its 95 % interval. No model is used here."),
    make("ul", { class: "rows" }, levels.map(({ name, rows, response, interval }) => make("li", { class: "row" },
      make("span", { class: "label" }, name, make("span", { class: "small" }, counted(rows, "row"))),
      make("span", { class: "plot" }, strip(response, interval, low, high)),
      make("span", { class: "figures" }, make("span", { class: "number" }, write(response)), interval ? make("span", { class: "small" }, `${write(interval[0])} to ${write(interval[1])}`) : null)))));
}

/** The name of the run, and the button that starts it. */
function runPart(visit, verdict) {
  const { draft, state, table } = visit;
  if (!draft.runName) draft.runName = freeName(table.name, state.runs.map(({ name }) => name));
  const input = make("input", { type: "text", id: "run-name", value: draft.runName, autocomplete: "off", maxlength: "80" });
  input.addEventListener("input", () => { draft.runName = input.value; saveDraft(draft); });
  const trouble = make("div", { class: "trouble" });
  const doubtful = verdict === "no";
  const go = button(doubtful ? "Run anyway" : "Run", async () => {
    refill(trouble);
    go.setAttribute("aria-busy", "true");
    try {
      const job = await server.run(draft.runName.trim(), toRequest(draft));
      location.hash = `${visit.way}/run/${encodeURIComponent(job.id)}`;
    } catch (error) {
      refill(trouble, refusalBox(error));
    } finally {
      go.removeAttribute("aria-busy");
    }
  }, { kind: doubtful ? null : "main", id: "run" });
  const back = make("a", { class: doubtful ? "button main" : "button", href: visit.way }, "Back to the columns");
  const model = (state.models ?? []).find(({ name }) => name === draft.model);
  return make("section", { class: "start-run", "aria-labelledby": "run-title" }, make("h2", { id: "run-title" }, "Learn, plan, judge"),
    make("p", { class: "caption" }, draft.model === "auto" ? `Models are compared on ${count(table.rows)} rows and judged on rows they have not seen.` : sentence(model?.sentence ?? "")),
    make("div", { class: "run-fields" }, make("div", {}, make("label", { for: "run-name" }, "Name of the run"), input), doubtful ? [back, go] : [go, back]),
    trouble);
}

/** A name for the run that is not taken yet: "coupons", "coupons 2". */
function freeName(file, taken) {
  const plain = file.replace(/\.(csv|tsv|txt|gz|parquet|pq|arrow|feather|ipc)\b/gi, "").replace(/[^\p{L}\p{N}\-_. ]+/gu, " ").replace(/^[. ]+/, "").trim().slice(0, 60) || "run";
  if (!taken.includes(plain)) return plain;
  for (let k = 2; ; k += 1) if (!taken.includes(`${plain} ${k}`)) return `${plain} ${k}`;
}
