// Another budget, other rules: a plan from what the run has learnt, next to the run's own.

import { server, whatIfFile } from "./api.js";
import { button, isAsleep, make, put, refill, say } from "./dom.js";
import { campaignPart } from "./files.js";
import { priceText, sharesCell, valueWriter } from "./compare.js";
import { follow, hasEnded } from "./jobs.js";
import { box, refusalBox } from "./messages.js";
import { progressPart } from "./progress.js";
import { readRules, rulesOf, rulesPart } from "./rules.js";
import { runAddress } from "./runs.js";
import { amount, count, number, readNumber } from "./words.js";

const keyOf = (name) => `largesse-what-if-1-${name}`;

export async function show(page, [, name, , id]) {
  const run = await server.runOf(name);
  const frame = { title: `${name}: what if`, run: name, tab: "What if" };
  if (!run.kept) {
    put(page, make("h1", {}, "What if?"), box("note", "This run does not have its log any more, so that no other plan can be made from it. Run the campaign again to try other budgets."));
    return frame;
  }
  const trial = new Trial(run);
  put(page, make("h1", {}, "What if?"), make("p", { class: "lead" }, "Another budget or other rules. Nothing is learnt again, and the run stays as it is."),
    make("div", { class: "trial" }, make("div", {}, trial.form(), triedPart(run)), trial.result));
  await trial.reopen(id);
  return { ...frame, wide: "broad", leave: () => trial.stop() };
}

class Trial {
  constructor(run) {
    this.run = run;
    this.stop = () => {};
    this.result = make("section", { class: "result", "aria-label": "The result" });
    this.asked = { kind: "budget", budget: String(Number((run.budget ?? 0).toPrecision(6))), ...rulesOf(run) };
    try {
      Object.assign(this.asked, JSON.parse(sessionStorage.getItem(keyOf(run.name)) ?? "{}"));
    } catch { /* what cannot be read is not there */ }
  }

  keepAsked() {
    try {
      sessionStorage.setItem(keyOf(this.run.name), JSON.stringify(this.asked));
    } catch { /* a full store: it lasts as long as the page */ }
  }

  form() {
    const form = make("form", { class: "ask", "aria-label": "Budget and rules", novalidate: true });
    const trouble = make("div", { class: "trouble" });
    const plan = make("button", { type: "submit", class: "button main", id: "plan" }, "Plan");
    form.append(this.budgetPart(), rulesPart(this.run, this.asked, () => this.keepAsked()), trouble, make("p", { class: "row-of-buttons" }, plan));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (isAsleep(plan)) return null;
      refill(trouble);
      const { asked, problems } = this.read();
      if (problems.length) return refill(trouble, refusalBox({ message: "This cannot be planned yet", problems }));
      plan.setAttribute("aria-busy", "true");
      try {
        await this.plan(asked);
      } catch (error) {
        refill(trouble, refusalBox(error));
      } finally {
        plan.removeAttribute("aria-busy");
      }
      return null;
    });
    return form;
  }

  read() {
    const spent = readNumber(this.asked.budget);
    const { plan, problems } = readRules(this.run, this.asked);
    if (spent === null || spent < 0) problems.unshift({ what: `“${this.asked.budget}” is not a budget`, hint: "give an amount, such as 1.70" });
    return { asked: { [this.asked.kind]: spent, plan }, problems };
  }

  budgetPart() {
    const { run, asked } = this;
    const most = run.most ?? Math.max(...(run.costs ?? [0]), (run.budget ?? 1) * 2);
    const input = make("input", { type: "text", inputmode: "decimal", id: "other-budget", class: "money large", value: asked.budget, autocomplete: "off" });
    const slider = make("input", { type: "range", id: "slide", min: 0, max: most, step: most / 200, "aria-label": "Budget per customer" });
    const words = make("p", { class: "small" });
    const tell = () => {
      const spent = readNumber(asked.budget);
      slider.setAttribute("aria-valuetext", amount(spent ?? 0, run.unit));
      const other = asked.kind === "total" ? `${amount(spent / run.customers, run.unit)} per customer` : `${amount(spent * run.customers, run.unit)} in total`;
      words.textContent = spent === null || !run.customers ? "" : `${other} for ${count(run.customers)} customers. The run: ${amount(run.budget, run.unit)} per customer.`;
      this.keepAsked();
    };
    const average = () => { const spent = readNumber(asked.budget) ?? 0; return asked.kind === "total" ? spent / run.customers : spent; };
    input.addEventListener("input", () => { asked.budget = input.value; slider.value = average(); tell(); });
    slider.addEventListener("input", () => {
      const per = Number(Number(slider.value).toPrecision(3));
      asked.budget = String(asked.kind === "total" ? Math.round(per * run.customers) : per);
      input.value = asked.budget;
      tell();
    });
    const kinds = [["budget", "per customer"], ["total", "in total"]].map(([kind, label]) => {
      const radio = make("input", { type: "radio", name: "other-kind", id: `other-${kind}` });
      radio.checked = asked.kind === kind;
      radio.addEventListener("change", () => { asked.kind = kind; slider.value = average(); tell(); });
      return make("label", {}, radio, make("span", {}, label));
    });
    slider.value = average();
    tell();
    return make("fieldset", {}, make("legend", {}, "Budget"),
      make("div", { class: "budget" }, make("label", { class: "unseen", for: "other-budget" }, "Budget"), make("span", { class: "cost" }, input, make("span", { class: "unit", "aria-hidden": "true" }, run.unit ?? "")), make("div", { class: "switch", role: "radiogroup", "aria-label": "The budget is" }, kinds)),
      slider, words);
  }

  async plan(asked) {
    this.pressed = true;
    const job = await server.whatIf(this.run.name, asked);
    history.replaceState(null, "", `${runAddress(this.run.name)}/what-if/${encodeURIComponent(job.id)}`);
    this.hear(job);
  }

  /** Where the result stands below the form, as on a phone, go there once it was asked for. */
  reveal() {
    if (this.pressed && this.result.getBoundingClientRect().top > window.innerHeight * 0.8) this.result.scrollIntoView();
    this.pressed = false;
  }

  /** Show the plan that the address names, or what one would see here. */
  async reopen(id) {
    if (id) {
      try {
        return this.hear(await server.job(id));
      } catch { /* forgotten: what the run knows of it is shown, or the user starts again */ }
      const tried = (this.run.what_ifs ?? []).find((one) => one.id === id);
      if (tried) return refill(this.result, resultPart(this.run, tried));
    }
    return refill(this.result, make("div", { class: "empty" }, make("p", {}, "Set a budget or a rule and press Plan."), make("p", { class: "small" }, "The new plan then stands here, next to the run’s own.")));
  }

  hear(job) {
    this.stop();
    if (hasEnded(job)) return this.end(job);
    const bar = progressPart(job, () => server.cancel(job.id).catch((error) => refill(this.result, refusalBox(error))));
    refill(this.result, make("h2", {}, "Planning"), bar.element);
    const pressed = this.pressed;
    this.reveal();
    this.pressed = pressed;
    this.stop = follow(job.id, (now) => (hasEnded(now) ? this.end(now) : bar.show(now)), (error) => refill(this.result, refusalBox(error)));
    return null;
  }

  end(job) {
    if (job.state === "failed") return refill(this.result, refusalBox(job.error));
    if (job.state === "cancelled") return refill(this.result, make("div", { class: "empty" }, make("p", {}, "The planning was cancelled.")));
    refill(this.result, resultPart(this.run, job.result));
    this.reveal();
    return say("The plan is made.");
  }
}

/** Plans that were tried before: what they cost and bring, each with its address. */
function triedPart(run) {
  const tried = run.what_ifs ?? [];
  if (!tried.length) return null;
  const value = valueWriter(run);
  return make("nav", { class: "tried", "aria-labelledby": "tried" }, make("h2", { id: "tried" }, "Tried before"),
    make("ul", {}, tried.map((one) => make("li", {}, make("a", { href: `${runAddress(run.name)}/what-if/${encodeURIComponent(one.id)}` }, `${value(one.planned.value)} for ${amount(one.planned.spend, run.unit)}`)))));
}

/** The new plan next to the run's own. */
function resultPart(run, found) {
  const now = found.planned;
  const was = found.before?.planned ?? {};
  const value = valueWriter(run);
  const lines = [
    ["Value by the model", value, "value"],
    ["Spend per customer", (x) => amount(x, run.unit), "spend"],
    ["Budget per customer", (x) => amount(x, run.unit), "budget"],
    ["Price of the budget", (x) => priceText(run, x), "price"],
  ];
  const table = make("table", { class: "beside-run" },
    make("thead", {}, make("tr", {}, make("td", {}), make("th", { scope: "col" }, "This plan"), make("th", { scope: "col" }, "The run’s plan"))),
    make("tbody", {}, lines.map(([words, write, key]) => make("tr", {}, make("th", { scope: "row" }, words), make("td", {}, make("b", {}, write(now[key]))), make("td", {}, write(was[key]))))));
  const own = found.before?.levels;
  return [
    make("h2", {}, differenceText(run, now, was)), table,
    make("p", { class: "small" }, "The value is what the model expects. A plan that is kept as a run is also judged by the log."),
    make("h3", {}, "Who gets what"),
    make("div", { class: "both-shares" }, make("div", {}, own ? make("p", { class: "small" }, "This plan") : null, sharesCell(found.levels)), own ? make("div", {}, make("p", { class: "small" }, "The run’s plan"), sharesCell(own)) : null),
    segmentsPart(found.segments, run),
    takeAlong(run, found),
    found.toml ? make("details", {}, make("summary", {}, "The same from the command line"), campaignPart(found.toml)) : null,
  ];
}

/** What the new plan costs and brings more or less than the run's own. */
function differenceText(run, now, was) {
  const [spend, value] = [now.spend - was.spend, now.value - was.value];
  if (!Number.isFinite(spend) || !Number.isFinite(value)) return "This plan";
  const binary = run.response_kind === "binary";
  const size = binary ? `${number(Number((Math.abs(value) * 100).toFixed(1)))} percentage points` : valueWriter(run)(Math.abs(value));
  const brings = `response ${size} ${value < 0 ? "lower" : "higher"}`;
  const costs = `${amount(Math.abs(spend), run.unit)} ${spend < 0 ? "less" : "more"} per customer`;
  const [same, alike] = [Math.abs(spend) < 0.005, Math.abs(value) < (binary ? 0.0005 : 0.005)];
  if (same && alike) return "As good and as dear as the run’s plan";
  if (same) return `At the same cost, ${brings}`;
  return alike ? `The same response for ${costs}` : `For ${costs}, ${brings}`;
}

function segmentsPart(segments, run) {
  if (!segments?.length) return null;
  return [make("h3", {}, "By segment"), make("table", {}, make("thead", {}, make("tr", {}, ["Segment", "Customers", "Spend each", "Value each"].map((words) => make("th", { scope: "col" }, words)))),
    make("tbody", {}, segments.map((one) => make("tr", {}, make("th", { scope: "row" }, String(one.name)), make("td", {}, count(one.customers)), make("td", {}, amount(one.spend / one.customers, run.unit)), make("td", {}, valueWriter(run)(one.value / one.customers))))))];
}

/** Download the plan, or keep it as a run of its own. */
function takeAlong(run, found) {
  const trouble = make("div", { class: "trouble" });
  const input = make("input", { type: "text", id: "keep-name", value: `${run.name} at ${number(found.planned.budget)}`.replaceAll(",", ""), autocomplete: "off", maxlength: "80" });
  const keep = button("Keep as a run", async () => {
    refill(trouble);
    keep.setAttribute("aria-busy", "true");
    try {
      const kept = await server.keep(run.name, found.id, input.value.trim());
      refill(trouble, box("fine", "Kept. ", make("a", { href: runAddress(kept.name) }, `Open ${kept.name}`)));
      say(`Kept as ${kept.name}.`);
    } catch (error) {
      refill(trouble, refusalBox(error));
    } finally {
      keep.removeAttribute("aria-busy");
    }
  }, { id: "keep" });
  const file = (name, words, kind) => make("a", { class: kind, href: whatIfFile(run.name, found.id, name), download: `${run.name} what if ${name}` }, words);
  return [
    make("p", { class: "row-of-buttons" }, file("plan.csv", "Download as CSV", "button main"), file("plan.parquet", "as Parquet", "button")),
    make("div", { class: "run-fields" }, make("div", {}, make("label", { for: "keep-name" }, "Name of the run"), input), keep), trouble,
  ];
}
