// What a run leaves: files to take along, and the campaign file that does the same from the command line.

import { fileOf, report, server } from "./api.js";
import { button, make, put, refill, say } from "./dom.js";
import { refusalBox } from "./messages.js";

const FILES = {
  "plan.csv": ["The plan as CSV", "Who gets which level, for a spreadsheet or a mailing tool. Without a column of customer ids, customers are the rows, counted from 0."],
  "rule.csv": ["The simple rule as a plan", "One level for each group of one column, at the same cost. It takes a moment: the plan is drawn when you ask for it."],
  "mix.csv": ["The mix as a plan", "Levels drawn at random, the same for everyone, at the same cost. It takes a moment, too."],
  "plan.parquet": ["The plan as Parquet", "The same, for programs."],
  "report.html": ["The report", "One file that opens in every browser, to show to others."],
  "campaign.toml": ["The campaign file", "Every setting of this run, defaults spelt out."],
  "evaluation.json": ["The figures", "Everything that the report shows, as JSON."],
  "frontier.parquet": ["The frontier", "What every budget would bring."],
};

export async function show(page, [, name]) {
  const run = await server.runOf(name);
  const drawn = run.kept ? (run.simpler ?? []).map((kind) => `${kind}.csv`) : [];
  const has = (file) => run.files.includes(file) || drawn.includes(file) || (file === "plan.csv" && run.files.includes("plan.parquet"));
  const best = `${run.recommended}.csv`;
  const listed = Object.entries(FILES).filter(([file]) => has(file)).sort(([a], [b]) => (b === best) - (a === best));
  put(page,
    make("h1", {}, "Take it along"),
    make("p", { class: "lead" }, "Everything but the CSV lies in the folder of the run, too."),
    make("ul", { class: "downloads" }, listed.map(([file, [title, words]]) => make("li", {},
      make("a", { class: "download", href: fileOf(name, file), download: /^(plan|rule|mix)/.test(file) ? `${name} ${file}` : file }, make("b", {}, file === best ? `${title} (recommended)` : title), make("span", { class: "small" }, words), make("span", { class: "small path" }, file))))),
    has("report.html") ? make("p", { class: "small" }, make("a", { href: report(name), target: "_blank", rel: "noopener" }, "Open the report in a tab of its own")) : null,
    run.kept ? againPart(name) : null,
    run.toml ? campaignPart(run.toml, `largesse run campaign.toml --out "${name}"`) : null);
  return { title: `${name}: files`, run: name, tab: "Files" };
}

/** Opens the log of a run with the settings of the run, to change some and run again. */
function againPart(name) {
  const trouble = make("div", {});
  const again = button("Change something and run again", async () => {
    try {
      const table = await server.pick({ run: name });
      location.hash = `#/table/${encodeURIComponent(table.id)}`;
    } catch (error) {
      refill(trouble, refusalBox(error));
    }
  }, { id: "again" });
  return make("section", {}, make("p", { class: "row-of-buttons" }, again), trouble);
}

/** A campaign file with its command, each with a button that copies it. */
export function campaignPart(toml, command) {
  return make("section", { class: "campaign", "aria-labelledby": "same" },
    make("h2", { id: "same" }, "The same from the command line"),
    make("p", { class: "caption" }, "Keep this as campaign.toml next to the log, and the same run can be made again by anyone, or every night."),
    copyable("the campaign file", toml), command ? copyable("the command", command) : null);
}

function copyable(what, text) {
  const copy = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
      say(`Copied ${what}.`);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      copy.textContent = "Selected";
      say(`Selected ${what}. Press Control C to copy it.`);
    }
    setTimeout(() => { copy.textContent = "Copy"; }, 2000);
  }, { kind: "copy", "aria-label": `Copy ${what}` });
  const code = make("code", {}, text);
  return make("div", { class: "copyable" }, copy, make("pre", { tabindex: "0", "aria-label": what }, code));
}
