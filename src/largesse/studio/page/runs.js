// Runs made before: a list to open one, to choose some that are compared, and to rename or delete one.

import { server } from "./api.js";
import { button, make, put, refill, say } from "./dom.js";
import { refusalBox } from "./messages.js";
import { counted, day, listWords, plainAmount } from "./words.js";

const SHOWN = 10; // runs that are listed at once
const MOST = 6; // runs that fit side by side

export const runAddress = (name) => `#/run/${encodeURIComponent(name)}`;

/** The list of runs, newest first. */
export function runList(runs) {
  if (!runs.length) {
    return make("section", { class: "past" }, make("h2", {}, "Your runs"), make("p", { class: "empty" }, "None yet. Every run that you make is listed here, with its plan and its report."));
  }
  const chosen = new Set();
  const go = button("Compare", () => { if (chosen.size > 1) location.hash = `#/compare/${[...chosen].map(encodeURIComponent).join("/")}`; }, { id: "compare", "aria-disabled": "true", "aria-describedby": "compare-words" });
  const words = make("p", { class: "small", id: "compare-words" }, "Tick two or more to see them side by side.");
  const choose = (name, on) => {
    if (on) chosen.add(name);
    else chosen.delete(name);
    go.setAttribute("aria-disabled", String(chosen.size < 2));
    words.textContent = chosen.size < 2 ? "Tick two or more to see them side by side." : `${counted(chosen.size, "run")}: ${listWords([...chosen])}.`;
  };
  const list = make("ul", { class: "runs" });
  const rows = runs.map((run, k) => runRow(run, k, (box) => {
    if (box.checked && chosen.size >= MOST) {
      box.checked = false;
      say(`At most ${MOST} runs fit side by side.`);
    }
    choose(run.name, box.checked);
  }, runs.length > 1));
  return make("section", { class: "past" },
    make("div", { class: "past-head" }, make("h2", {}, "Your runs"), runs.length > 1 ? make("div", { class: "compare-bar" }, words, go) : null),
    fold(list, rows));
}

/** The first rows of a long list, and a button for the rest. */
function fold(list, rows) {
  list.append(...rows.slice(0, SHOWN));
  if (rows.length <= SHOWN) return list;
  const more = button(`Show ${rows.length - SHOWN} more`, () => {
    list.append(...rows.slice(SHOWN));
    more.remove();
    document.getElementById(`run-${SHOWN}`).focus();
  });
  return [list, make("p", { class: "row-of-buttons" }, more)];
}

function runRow(run, k, onTick, many) {
  const tick = many ? make("label", { class: "tick" }, make("input", { type: "checkbox", on: { change: (event) => onTick(event.currentTarget) } }), make("span", { class: "unseen" }, `Compare ${run.name}`)) : null;
  const facts = [day(run.made), run.customers ? counted(run.customers, "customer") : null, Number.isFinite(run.budget) ? `budget ${plainAmount(run.budget, run.unit)} per customer` : null, run.model];
  return make("li", { class: "run" }, tick,
    make("a", { href: runAddress(run.name), id: `run-${k}` },
      make("span", { class: "run-title" }, run.name),
      run.headline ? make("span", { class: "run-headline" }, run.headline) : null,
      run.problems?.length ? make("span", { class: "run-headline" }, `Not complete: ${run.problems[0].what}.`) : null,
      make("span", { class: "small" }, facts.filter(Boolean).join(" · "))),
    make("span", { class: "run-tools" },
      button("Rename", () => renameDialog(run.name), { kind: "small-button", "aria-label": `Rename ${run.name}` }),
      button("Delete", () => deleteDialog(run.name), { kind: "small-button", "aria-label": `Delete ${run.name}` })));
}

function renameDialog(name) {
  const input = make("input", { type: "text", id: "new-name", value: name, autocomplete: "off", maxlength: "80" });
  ask(`Rename ${name}`, [make("label", { for: "new-name" }, "New name"), input], "Rename", async () => {
    const run = await server.rename(name, input.value.trim());
    return `${name} is now ${run.name}.`;
  });
  input.select();
}

function deleteDialog(name) {
  const words = make("p", {}, "Its folder, with the plan, the report and its copy of the table, is deleted from this computer. This cannot be undone.");
  ask(`Delete ${name}?`, [words], "Delete", async () => {
    await server.remove(name);
    return `${name} is deleted.`;
  });
  document.getElementById("dialog-cancel").focus(); // a key pressed too soon must not delete
}

/** Ask in a dialog before something is changed; then show the new list. */
function ask(title, parts, verb, act) {
  const trouble = make("div", { class: "trouble" });
  const close = () => dialog.close();
  const go = button(verb, async () => {
    go.setAttribute("aria-busy", "true");
    refill(trouble);
    try {
      const words = await act();
      close();
      const list = document.querySelector(".past");
      list.replaceWith(runList(await server.runs()));
      say(words);
    } catch (error) {
      refill(trouble, refusalBox(error));
    } finally {
      go.removeAttribute("aria-busy");
    }
  }, { kind: "main", id: "dialog-go" });
  const form = make("form", { method: "dialog", on: { submit: (event) => { event.preventDefault(); go.click(); } } },
    make("h2", { id: "dialog-title" }, title), parts, trouble,
    make("p", { class: "row-of-buttons" }, go, button("Cancel", close, { id: "dialog-cancel" })));
  const dialog = make("dialog", { "aria-labelledby": "dialog-title", on: { close: () => dialog.remove() } }, form);
  put(document.body, dialog);
  dialog.showModal();
}
