// How far a job is: the stages it has been through, and a bar for the one it is in; and a way to stop it.

import { button, icon, make, say } from "./dom.js";
import { sentence } from "./messages.js";
import { counted, duration, percent } from "./words.js";

const nameOf = (job) => (job.state === "waiting" || !job.stage ? "Getting ready" : sentence(job.stage).replace(/\.$/, ""));

/** {element, show(job)}: the same place shows every state, so that nothing moves but what is new. */
export function progressPart(first, onCancel) {
  const past = make("ol", { class: "stages" });
  const stage = make("p", { class: "stage" });
  const bar = make("progress", { max: 1, "aria-label": "Share of this stage that is done" });
  const facts = make("p", { class: "small facts" });
  let now = { name: "", since: 0 };
  const cancel = button("Cancel", () => {
    cancel.setAttribute("aria-disabled", "true");
    stage.textContent = "Stopping…";
    onCancel();
  }, { id: "cancel" });
  const enter = (name, seconds) => {
    if (now.name && now.name !== "Getting ready") {
      past.append(make("li", {}, make("span", { class: "tone fine" }, icon("fine")), make("span", {}, now.name), make("span", { class: "small" }, duration(seconds - now.since))));
    }
    now = { name, since: seconds };
    stage.textContent = name;
    say(name);
  };
  const show = (job) => {
    if (cancel.getAttribute("aria-disabled")) return;
    if (nameOf(job) !== now.name) enter(nameOf(job), job.seconds ?? 0);
    const share = Math.min(Math.max(job.done ?? 0, 0), 1);
    if (job.stage) bar.value = share;
    else bar.removeAttribute("value"); // not known yet
    const parts = [job.stage ? `${percent(share, 0)} of this stage` : null, job.rows ? counted(job.rows, "row") : null, job.seconds >= 1 ? `${duration(job.seconds)} so far` : null, Number.isFinite(job.left) ? `about ${duration(job.left)} left` : null];
    facts.textContent = parts.filter(Boolean).join(" · ");
  };
  show(first);
  return { element: make("div", { class: "progress" }, past, stage, bar, facts, make("p", { class: "row-of-buttons" }, cancel)), show };
}
