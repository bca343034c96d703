// The page: which view the address asks for, and the frame around it.

import { server } from "./api.js";
import { make, say } from "./dom.js";
import { refusalBox } from "./messages.js";
import * as checkup from "./checkup.js";
import * as columns from "./columns.js";
import * as compare from "./compare.js";
import * as files from "./files.js";
import * as reported from "./reported.js";
import { runAddress } from "./runs.js";
import * as running from "./running.js";
import * as start from "./start.js";
import * as whatif from "./whatif.js";

const main = document.getElementById("view");
const steps = document.getElementById("steps");
const STEPS = ["Table", "Columns", "Checkup", "Run", "Report"];
let turn = 0;
let leave = null;

/** The address after the #: "#/table/ab12/checkup" → ["table", "ab12", "checkup"]. */
function readAddress() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").filter(Boolean);
  try {
    return parts.map(decodeURIComponent);
  } catch {
    return [];
  }
}

function chooseView([kind, , what]) {
  if (kind === "table") return { checkup, run: running }[what] ?? columns;
  if (kind === "run") return { "what-if": whatif, files }[what] ?? reported;
  return { job: running, compare }[kind] ?? start;
}

/** The steps from a table to its report; those already made can be gone back to. */
function showSteps(at, table) {
  const ways = ["#/", table && `#/table/${table}`, table && `#/table/${table}/checkup`];
  return make("ol", { class: "steps" }, STEPS.map((words, k) => make("li", { class: k < at ? "past" : k === at ? "now" : "" },
    k < at && ways[k] ? make("a", { href: ways[k] }, words) : make("span", { "aria-current": k === at ? "step" : null }, words))));
}

/** The parts of a run: its report, other budgets, its files. */
function showTabs(name, now) {
  const way = `#/run/${encodeURIComponent(name)}`;
  const tabs = [["Report", way], ["What if", `${way}/what-if`], ["Files", `${way}/files`]];
  return [
    make("a", { class: "all-runs", href: "#/" }, "All runs"),
    make("span", { class: "run-name", title: name }, name),
    make("ul", { class: "tabs" }, tabs.map(([words, href]) => make("li", {}, make("a", { href, "aria-current": words === now ? "page" : null }, words)))),
  ];
}

async function go(event) {
  turn += 1;
  const mine = turn;
  const address = readAddress();
  const view = chooseView(address);
  const page = make("div", { class: "page" });
  let shown;
  try {
    shown = await view.show(page, address);
  } catch (error) {
    if (!error.problems) throw error;
    page.replaceChildren(make("h1", {}, "This did not work"), refusalBox(error, () => go()), make("p", { class: "row-of-buttons" }, make("a", { class: "button", href: "#/" }, "To the start")));
    shown = { title: "Problem" };
  }
  if (mine !== turn) return shown.leave?.(); // another view was asked for meanwhile
  leave?.();
  leave = shown.leave ?? null;
  main.replaceChildren(page);
  main.className = shown.wide ?? "";
  document.body.classList.toggle("filled", shown.wide === "filled");
  steps.replaceChildren(...[shown.run ? showTabs(shown.run, shown.tab) : shown.step === undefined ? [] : [showSteps(shown.step, shown.table)]].flat());
  document.title = `${shown.title} · largesse studio`;
  if (event) {
    window.scrollTo(0, 0);
    main.focus({ preventScroll: true });
    say(shown.title);
  }
  shown.after?.();
}

async function showFoot() {
  const foot = document.getElementById("foot");
  try {
    const { version, folder } = await server.state();
    foot.replaceChildren(make("p", {}, `largesse ${version} · runs are kept in `, make("span", { class: "path" }, folder), " · nothing leaves this computer"));
  } catch {
    foot.replaceChildren();
  }
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
/** A studio that was started with a run opens it. */
async function begin() {
  if (!location.hash) {
    const open = (await server.state().catch(() => null))?.open;
    if (open) history.replaceState(null, "", runAddress(open));
  }
  await go();
}

window.addEventListener("hashchange", go);
// A table dropped next to the field for it must not replace the page.
for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());
begin();
showFoot();
