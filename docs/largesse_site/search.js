"use strict";
// Search without a server: every word must occur; headings count more than text.
const box = document.getElementById("search"), list = document.getElementById("found"), count = document.getElementById("count");
const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
const entries = PAGES.map(([address, page, heading, text]) => ({
  address, page, heading, text, inPage: fold(page), inHeading: fold(heading), inText: fold(text),
}));

function score(entry, words) {
  let total = 0;
  for (const word of words) {
    const points = (entry.inHeading === word ? 60 : 0) + (entry.inHeading.includes(word) ? 30 : 0)
      + (entry.inPage.includes(word) ? 8 : 0) + Math.min(5, entry.inText.split(word).length - 1);
    if (!points) return 0;
    total += points;
  }
  return total;
}

function excerpt(entry, words) {
  const at = Math.max(0, entry.inText.indexOf(words[0]) - 40);
  const part = entry.text.slice(at, at + 150), small = document.createElement("small");
  const where = fold(part).length === part.length ? fold(part).indexOf(words[0]) : -1;
  if (where < 0) { small.textContent = part; return small; }
  const mark = document.createElement("mark");
  mark.textContent = part.slice(where, where + words[0].length);
  small.append(part.slice(0, where), mark, part.slice(where + words[0].length));
  return small;
}

function search() {
  const words = fold(box.value).split(/\s+/).filter(Boolean);
  list.replaceChildren();
  if (!words.length) { list.hidden = true; count.textContent = ""; return; }
  const best = entries.map((entry) => [score(entry, words), entry]).filter(([points]) => points).sort((a, b) => b[0] - a[0]).slice(0, 12);
  for (const [, entry] of best) {
    const item = document.createElement("li"), link = document.createElement("a"), title = document.createElement("b");
    link.href = ROOT + entry.address;
    title.textContent = entry.heading === entry.page ? entry.page : `${entry.page}: ${entry.heading}`;
    link.append(title, excerpt(entry, words));
    link.addEventListener("click", () => { list.hidden = true; });
    item.append(link);
    list.append(item);
  }
  count.textContent = best.length ? `${best.length} results` : "nothing found";
  if (!best.length) { const item = document.createElement("li"); item.textContent = "Nothing found."; list.append(item); }
  list.hidden = false;
}

box.addEventListener("input", search);
document.addEventListener("keydown", (event) => {
  const links = [...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
  if (event.key === "/" && document.activeElement !== box) { event.preventDefault(); box.focus(); }
  else if (event.key === "Escape") { list.hidden = true; }
  else if (!list.hidden && event.key === "ArrowDown") { event.preventDefault(); (links[at + 1] || links[0])?.focus(); }
  else if (!list.hidden && event.key === "ArrowUp") { event.preventDefault(); (links[at - 1] || box).focus(); }
  else if (!list.hidden && event.key === "Enter" && document.activeElement === box) { links[0]?.click(); }
});
document.addEventListener("click", (event) => { if (!event.target.closest(".search")) list.hidden = true; });
