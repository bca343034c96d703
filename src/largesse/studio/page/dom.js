// Elements from words. Text is only ever put in as text: nothing here reads HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (name === "style") for (const [key, set] of Object.entries(value)) element.style.setProperty(key, set);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  return put(element, ...children);
}

/** Append children; what is nothing is left out. */
export function put(element, ...children) {
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** make("p", {class: "small"}, "text", child…): an element with attributes, listeners (`on`) and children. */
export function make(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

function draw(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** Put other children into an element; the focus stays where it was, as far as that is still there. */
export function refill(element, ...children) {
  const active = document.activeElement;
  const id = active && element.contains(active) ? active.id : "";
  const place = id && "selectionStart" in active ? active.selectionStart : null;
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
  const again = id ? document.getElementById(id) : null;
  if (again && again !== document.activeElement) {
    again.focus({ preventScroll: true });
    if (place !== null && again.setSelectionRange) again.setSelectionRange(place, place);
  }
}

/** Say something to people who listen to the page. */
export function say(words) {
  const place = document.getElementById("said");
  place.textContent = "";
  setTimeout(() => { place.textContent = words; }, 60);
}

let last = 0;
export function newId(prefix) {
  last += 1;
  return `${prefix}-${last}`;
}

const SHAPES = {
  no: [["path", { d: "M6.3 1.5h7.4l4.8 4.8v7.4l-4.8 4.8H6.3l-4.8-4.8V6.3z" }], ["path", { d: "M7 7l6 6M13 7l-6 6" }]],
  careful: [["path", { d: "M10 2l8.6 15.5H1.4z" }], ["path", { d: "M10 8v4.2" }], ["circle", { class: "solid", cx: 10, cy: 14.8, r: 1.15 }]],
  fine: [["circle", { cx: 10, cy: 10, r: 8.5 }], ["path", { d: "M6 10.3l2.8 2.8L14 7.5" }]],
  note: [["circle", { cx: 10, cy: 10, r: 8.5 }], ["path", { d: "M10 9.2v5" }], ["circle", { class: "solid", cx: 10, cy: 6, r: 1.15 }]],
  up: [["path", { d: "M10 16V4M4.8 9.2L10 4l5.2 5.2" }]],
  down: [["path", { d: "M10 4v12M4.8 10.8L10 16l5.2-5.2" }]],
  away: [["path", { d: "M5 5l10 10M15 5L5 15" }]],
  table: [["path", { d: "M2.5 4h15v12h-15zM2.5 8h15M8 8v8M13 8v8" }]],
};

/** A small picture that repeats what the words next to it say. */
export function icon(kind) {
  const parts = (SHAPES[kind] ?? SHAPES.note).map(([tag, props]) => draw(tag, props));
  return draw("svg", { class: "icon", viewBox: "0 0 20 20", "aria-hidden": "true" }, parts);
}

/** An interval as a line with a dot, on an axis from `low` to `high`; the words next to it say the same. */
export function strip(value, interval, low, high) {
  const at = (x) => `${Math.min(Math.max(((x - low) / (high - low || 1)) * 96 + 2, 2), 98)}%`;
  const parts = [draw("line", { class: "base", x1: "0%", x2: "100%", y1: 10, y2: 10 })];
  if (interval) {
    const [from, to] = interval.map(at);
    parts.push(draw("line", { class: "whisker", x1: from, x2: to, y1: 10, y2: 10 }));
    parts.push(...[from, to].map((x) => draw("line", { class: "whisker", x1: x, x2: x, y1: 5.5, y2: 14.5 })));
  }
  if (Number.isFinite(value)) parts.push(draw("circle", { class: "dot", cx: at(value), cy: 10, r: 5 }));
  return draw("svg", { class: "strip", width: "100%", height: 20, "aria-hidden": "true" }, parts);
}

/** A button; while it is busy or has nothing to do, it does nothing, but keeps the focus. */
export function button(words, act, props) {
  const { kind, ...more } = props ?? {};
  const click = (event) => { if (!isAsleep(event.currentTarget)) act(event); };
  return make("button", { type: "button", class: kind ? `button ${kind}` : "button", ...more, on: { click } }, words);
}

export const isAsleep = (element) => ["aria-busy", "aria-disabled"].some((word) => element.getAttribute(word) === "true");

