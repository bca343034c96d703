// The start: a table to look at, or a run made before.

import { server, upload } from "./api.js";
import { button, icon, isAsleep, make, put, refill, say } from "./dom.js";
import { refusalBox } from "./messages.js";
import { hasEnded } from "./jobs.js";
import { runList } from "./runs.js";
import { bytes, percent } from "./words.js";

const TYPES = ".csv,.tsv,.txt,.gz,.parquet,.pq,.arrow,.feather,.ipc";

export async function show(page) {
  const state = await server.state();
  const trouble = make("div", { class: "trouble" });
  const open = (table) => { location.hash = `#/table/${encodeURIComponent(table.id)}`; };
  const pick = async (what, pressed) => {
    if (isAsleep(pressed)) return;
    pressed.setAttribute("aria-busy", "true");
    refill(trouble);
    try {
      open(await server.pick(what));
    } catch (error) {
      refill(trouble, refusalBox(error));
    } finally {
      pressed.removeAttribute("aria-busy");
    }
  };
  put(page,
    make("section", { class: "hero" },
      make("h1", {}, "Who should get which incentive?"),
      make("p", { class: "lead" }, "Bring the table of a past campaign: who got what, and what happened. You get a plan that fits your budget, and an honest estimate of what it brings.")),
    busyNote(state.job),
    make("div", { class: "ways" }, dropField(state, trouble, open), otherWays(state, pick)),
    trouble,
    runList(state.runs),
  );
  return { title: "Start", step: 0 };
}

function busyNote(job) {
  if (!job || hasEnded(job) || job.kind !== "run") return null;
  return make("p", { class: "warning note" }, icon("note"), make("span", {}, "A run is under way. ", make("a", { href: `#/job/${encodeURIComponent(job.id)}` }, "See how far it is")));
}

/** Where a table is dropped or chosen; while it is sent, a bar and a way to stop. */
function dropField(state, trouble, open) {
  const limit = state.limits.upload_bytes;
  const input = make("input", { type: "file", id: "file", class: "unseen", accept: TYPES, tabindex: "-1", "aria-hidden": "true" });
  const field = make("section", { class: "drop", "aria-label": "A table of yours" });
  const rest = () => refill(field,
    make("span", { class: "drop-icon" }, icon("table")),
    make("p", { class: "drop-words" }, make("b", {}, "Drop a table here"), make("span", { class: "small" }, `CSV, Parquet or Arrow, up to ${bytes(limit)}. It stays on this computer.`)),
    button("Choose a file…", () => input.click(), { kind: "main", id: "choose" }), input);

  const send = async (file) => {
    refill(trouble);
    if (file.size > limit) {
      refill(trouble, refusalBox({ message: `${file.name} has ${bytes(file.size)}`, problems: [{ what: `the studio takes up to ${bytes(limit)}`, hint: "put it into the studio's folder and pick it there, or use the command line: largesse init" }] }));
      return;
    }
    const bar = make("progress", { max: 1, value: 0, "aria-label": `Sending ${file.name}` });
    const words = make("p", { class: "small", id: "sent" }, "0 %");
    const sending = upload(file, (share) => {
      bar.value = share;
      words.textContent = share < 1 ? `${percent(share, 0)} of ${bytes(file.size)}` : "Reading the table…";
    });
    refill(field, make("p", { class: "drop-words" }, make("b", {}, `Sending ${file.name}`)), bar, words, button("Cancel", sending.stop, { id: "stop-sending" }));
    document.getElementById("stop-sending")?.focus();
    try {
      open(await sending.done);
    } catch (error) {
      rest();
      if (error.name !== "AbortError") refill(trouble, refusalBox(error));
      else say("The table was not sent.");
      document.getElementById("choose")?.focus();
    }
  };
  input.addEventListener("change", () => { if (input.files[0]) send(input.files[0]); input.value = ""; });
  const over = (event) => { event.preventDefault(); field.classList.add("over"); };
  field.addEventListener("dragenter", over);
  field.addEventListener("dragover", over);
  field.addEventListener("dragleave", (event) => { if (!field.contains(event.relatedTarget)) field.classList.remove("over"); });
  field.addEventListener("drop", (event) => {
    event.preventDefault();
    field.classList.remove("over");
    const file = event.dataTransfer.files[0];
    if (file) send(file);
  });
  rest();
  return field;
}

function otherWays(state, pick) {
  const example = make("section", { class: "way" },
    make("h2", {}, "No table yet?"),
    make("p", { class: "small" }, "Cash for collecting a test result: a randomised study in Malawi with 2,825 people and five amounts (Thornton 2008)."),
    button("Try it on real data", (event) => pick({ example: "thornton" }, event.currentTarget), { id: "example" }));
  if (!state.files.length) return make("div", { class: "way-column" }, example);
  const files = make("section", { class: "way" },
    make("h2", {}, "In the studio’s folder"),
    make("ul", { class: "files" }, state.files.map(({ name, bytes: size }) => make("li", {},
      make("button", { type: "button", class: "file", on: { click: (event) => pick({ file: name }, event.currentTarget) } }, make("span", {}, name), make("span", { class: "small" }, bytes(size)))))));
  return make("div", { class: "way-column" }, files, example);
}
