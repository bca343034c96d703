// Hover, tap or use the arrow keys on a curve to read another point of it; without this the page loses nothing.
(function () {
  "use strict";
  function follow(svg) {
    var figure = svg.closest("figure"), readout = figure && figure.querySelector(".readout");
    var stops = Array.prototype.slice.call(svg.querySelectorAll(".stop"));
    var cursor = svg.querySelector(".cursor"), chosen = svg.querySelector(".chosen");
    if (!readout || !stops.length) return;
    var first = readout.textContent, at = -1, tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    tip.setAttribute("aria-hidden", "true"); // the readout below says the same aloud
    svg.parentNode.classList.add("tipped");
    svg.parentNode.appendChild(tip);
    function place(stop) { return Number(stop.getAttribute("cx")); }
    function closest(x) {
      var best = 0;
      stops.forEach(function (stop, i) { if (Math.abs(place(stop) - x) < Math.abs(place(stops[best]) - x)) best = i; });
      return best;
    }
    function show(index) {
      stops.forEach(function (stop, i) { stop.classList.toggle("on", i === index); });
      at = index;
      cursor.classList.toggle("on", index >= 0);
      tip.hidden = index < 0;
      var words = index < 0 ? first : stops[index].getAttribute("data-readout");
      readout.textContent = words;
      if (index < 0) return;
      ["x1", "x2"].forEach(function (end) { cursor.setAttribute(end, place(stops[index])); });
      svg.setAttribute("aria-valuenow", index + 1);
      svg.setAttribute("aria-valuetext", words);
      tip.textContent = words;
      var box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
      var x = place(stops[index]) * scale, y = Number(stops[index].getAttribute("cy")) * scale;
      var left = x + 14 + tip.offsetWidth > box.width ? Math.max(x - 14 - tip.offsetWidth, 0) : x + 14;
      var below = y + 18, above = y - 18 - tip.offsetHeight;
      tip.style.left = left + "px";
      tip.style.top = (below + tip.offsetHeight > box.height && above > 0 ? above : below) + "px";
    }
    function nearest(event) {
      show(closest(new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x));
    }
    var start = chosen ? closest(place(chosen)) : Math.floor(stops.length / 2);
    [["tabindex", 0], ["role", "slider"], ["aria-valuemin", 1], ["aria-valuemax", stops.length],
      ["aria-valuenow", start + 1], ["aria-valuetext", stops[start].getAttribute("data-readout")]
    ].forEach(function (pair) { svg.setAttribute(pair[0], pair[1]); });
    svg.addEventListener("pointermove", nearest);
    svg.addEventListener("pointerdown", nearest);
    svg.addEventListener("pointerleave", function (event) { if (event.pointerType === "mouse") show(-1); });
    svg.addEventListener("blur", function () { show(-1); });
    svg.addEventListener("keydown", function (event) {
      var to = { ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: at - 1, ArrowDown: at - 1, Home: 0, End: stops.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      show(at < 0 && event.key !== "Home" && event.key !== "End" ? start : Math.min(Math.max(to, 0), stops.length - 1));
    });
  }
  // The budget slider: every stop comes with its words, so nothing is computed here.
  function slide(box) {
    var stops = JSON.parse(box.getAttribute("data-stops")), input = box.querySelector("input");
    var charts = document.querySelectorAll("#frontier svg.frontier");
    function show() {
      var stop = stops[Number(input.value)];
      box.querySelectorAll("[data-show]").forEach(function (cell) { cell.textContent = stop[cell.getAttribute("data-show")]; });
      box.querySelectorAll("[data-level]").forEach(function (cell, k) { cell.textContent = stop.levels[k]; });
      box.querySelectorAll(".shares span").forEach(function (bar, k) { bar.style.flexGrow = stop.shares[k]; });
      input.setAttribute("aria-valuetext", stop.budget);
      charts.forEach(function (svg) {
        var line = svg.querySelector(".slide"), d = svg.dataset;
        var x = Number(d.left) + (stop.at - d.low) / (d.high - d.low) * (d.right - d.left);
        ["x1", "x2"].forEach(function (end) { line.setAttribute(end, x); });
        line.classList.add("on");
      });
    }
    input.addEventListener("input", show);
  }
  document.querySelectorAll(".whatif").forEach(slide);
  document.querySelectorAll("svg.frontier").forEach(follow);
  document.querySelectorAll(".hint").forEach(function (hint) { hint.hidden = false; });
})();
