// What went wrong, in words, with what to do.

import { button, icon, make } from "./dom.js";

const TONES = { no: "Problem", careful: "Careful", note: "Note", fine: "Fine" };

/** A coloured box: its tone in words, then what it says. */
export function box(tone, ...children) {
  return make("div", { class: `warning ${tone}` }, make("span", { class: "tone" }, icon(tone)), make("div", {}, ...children));
}

export function problemList(problems) {
  return make("ul", { class: "problems" }, problems.map(({ what, hint }) => make("li", {}, sentence(what), hint ? make("span", { class: "hint" }, sentence(hint)) : null)));
}

/** A refusal of the server: its message, each problem and its hint. It is read aloud at once. */
export function refusalBox(error, again) {
  const problems = error.problems ?? [];
  const alone = problems.length === 1 && (!error.message || error.message === problems[0].what);
  const shown = box(
    "no",
    make("strong", {}, sentence(alone ? problems[0].what : error.message || "Something went wrong.")),
    alone ? make("span", { class: "hint" }, sentence(problems[0].hint)) : problems.length ? problemList(problems) : null,
    again ? make("p", { class: "row-of-buttons" }, button("Try again", again)) : null,
  );
  shown.setAttribute("role", "alert");
  requestAnimationFrame(() => shown.scrollIntoView({ block: "nearest" }));
  return shown;
}

/** A problem next to the field that it concerns. */
export function beside(id, problems) {
  return make("div", { class: "beside", id, role: "status" }, problems.map(({ what, hint, tone }) =>
    make("p", { class: tone ?? "no" }, icon(tone ?? "no"), make("span", {}, sentence(what), hint ? ` ${sentence(hint)}` : ""))));
}

/** A text as a sentence: with a capital letter in front and a full stop behind. */
export function sentence(text) {
  const words = String(text ?? "").trim();
  if (!words) return "";
  const first = /^[a-zäöü]+( |$)/.test(words) ? words[0].toUpperCase() + words.slice(1) : words;
  return /[.!?…:]["')\]]?$/.test(first) ? first : `${first}.`;
}

export function toneName(verdict) {
  return TONES[verdict] ?? TONES.note;
}
