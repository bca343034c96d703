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
  // The budget slider: every stop comes with its words and counts, so only shares are computed here.
  function percent(share) {
    var size = 100 * share, few = size >= 10 || size === 0 ? 0 : Math.min(Math.max(1 - Math.floor(Math.log10(size) + 1e-6), 0), 9);
    return size.toFixed(few) + "\u202f%";
  }
  function add(total, number) { return total + number; }
  function explained(groups) { // share of the levels' variance that lies between groups
    var every = groups[0].map(function (_, k) { return groups.map(function (group) { return group[k]; }).reduce(add); });
    function level(counts) { return counts.map(function (n, k) { return n * k; }).reduce(add) / (counts.reduce(add) || 1); }
    var n = every.reduce(add), mean = level(every);
    var whole = every.map(function (count, k) { return count * (k - mean) * (k - mean); }).reduce(add);
    var between = groups.map(function (group) { return group.reduce(add) * Math.pow(level(group) - mean, 2); }).reduce(add);
    return n && whole > 0 ? between / whole : 0;
  }
  function readBars(figure, names) {
    var costs = figure.dataset.costs.split("\n").map(function (line) { return line.split("\t"); });
    var strips = Array.prototype.map.call(figure.querySelectorAll("svg[data-counts]"), function (svg, g) {
      return {
        svg: svg, label: svg.closest(".row").querySelector(".label").firstChild.textContent, costs: costs[g],
        number: svg.closest(".row").querySelector(".number"), rects: svg.querySelectorAll("rect:not(.empty)"), texts: svg.querySelectorAll("text"),
        counts: svg.dataset.counts.split(";").map(function (stop) { return stop.split(",").map(Number); })
      };
    });
    return function (at) {
      strips.forEach(function (strip) {
        var counts = strip.counts[at], whole = counts.reduce(add) || 1, left = 0;
        var words = counts.map(function (count, k) {
          var share = count / whole, says = names[k] + " " + percent(share), text = strip.texts[k];
          strip.rects[k].setAttribute("x", (100 * left).toFixed(3) + "%");
          strip.rects[k].setAttribute("width", (100 * share).toFixed(3) + "%");
          strip.rects[k].firstChild.textContent = names[k] + ": " + percent(share);
          text.setAttribute("x", (100 * (left + share / 2)).toFixed(3) + "%");
          text.textContent = percent(share);
          text.style.visibility = share < 0.13 ? "hidden" : "visible";
          left += share;
          return says;
        });
        strip.svg.setAttribute("aria-label", strip.label + ": " + words.join(", "));
        strip.svg.firstChild.textContent = strip.label + ": " + words.join(", ");
        strip.number.textContent = strip.costs[at];
      });
      figure.querySelector(".explains").textContent = percent(explained(strips.map(function (strip) { return strip.counts[at]; })));
    };
  }
  function readChart(svg) {
    var line = svg.querySelector(".slide"), bar = svg.querySelector(".slide-bar"), dot = svg.querySelector(".slide-dot"), d = svg.dataset;
    function up(value) { return Number(d.bottom) - (value - d.floor) / (d.ceiling - d.floor) * (d.bottom - d.top); }
    return function (stop) {
      var x = Number(d.left) + (stop.at - d.low) / (d.high - d.low) * (d.right - d.left), known = stop.y[0] !== null, sure = stop.y[1] !== null && stop.y[2] !== null;
      [line, bar].forEach(function (one) { one.setAttribute("x1", x); one.setAttribute("x2", x); });
      dot.setAttribute("cx", x);
      if (known) dot.setAttribute("cy", up(stop.y[0]));
      if (sure) { bar.setAttribute("y1", up(stop.y[1])); bar.setAttribute("y2", up(stop.y[2])); }
      line.classList.add("on");
      dot.classList.toggle("on", known);
      bar.classList.toggle("on", known && sure);
    };
  }
  function slide(box) {
    var stops = JSON.parse(box.getAttribute("data-stops")), inputs = document.querySelectorAll("input.budget");
    var words = document.querySelectorAll("[data-show]"), levels = box.querySelectorAll("[data-level]"), spans = box.querySelectorAll(".shares span");
    var charts = Array.prototype.map.call(document.querySelectorAll("#budget_frontier svg.frontier"), readChart);
    var names = document.querySelector("[data-names]"), back = box.querySelector(".back"), start = inputs[0].value;
    var bars = names ? Array.prototype.map.call(document.querySelectorAll("figure[data-costs]"), function (figure) {
      return { figure: figure, move: readBars(figure, JSON.parse(names.dataset.names)), seen: true, at: Number(start) };
    }) : [];
    var late, now = Number(start);
    function follow(bar) { if (bar.at !== now) bar.move(bar.at = now); }
    // While the slider moves, only bars in sight follow; the others come after it, or before they are seen or printed.
    if (window.IntersectionObserver) {
      var watcher = new IntersectionObserver(function (entries) {
        entries.forEach(function (entry) {
          var bar = bars.filter(function (one) { return one.figure === entry.target; })[0];
          bar.seen = entry.isIntersecting;
          if (bar.seen) follow(bar);
        });
      }, { rootMargin: "300px" });
      bars.forEach(function (bar) { watcher.observe(bar.figure); });
    }
    window.addEventListener("beforeprint", function () { bars.forEach(follow); });
    function show(at) {
      var stop = stops[at];
      words.forEach(function (cell) { cell.textContent = stop[cell.getAttribute("data-show")]; });
      levels.forEach(function (cell, k) { cell.textContent = stop.levels[k]; });
      spans.forEach(function (bar, k) { bar.style.flexGrow = stop.shares[k]; });
      charts.forEach(function (move) { move(stop); });
      now = at;
      bars.forEach(function (bar) { if (bar.seen) follow(bar); });
      clearTimeout(late);
      late = setTimeout(function () { bars.forEach(follow); }, 100);
      inputs.forEach(function (input) { input.value = at; input.setAttribute("aria-valuetext", stop.say); });
      back.hidden = String(at) === start;
      document.body.classList.toggle("moved", !back.hidden); // paper says then which budget it shows
    }
    inputs.forEach(function (input) { input.addEventListener("input", function () { show(Number(input.value)); }); });
    back.querySelector("button").addEventListener("click", function () { show(Number(start)); inputs[0].focus(); });
  }
  // A link to a section opens it; a button opens or closes all of them.
  function unfold() {
    var target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    var folded = target && (target.querySelector(":scope > details.fold") || target.closest("details.fold"));
    if (!folded) return;
    folded.open = true;
    target.scrollIntoView();
  }
  function openAll(place) {
    var button = place.querySelector("button"), folds = Array.prototype.slice.call(document.querySelectorAll("details.fold"));
    function rest() { return folds.filter(function (one) { return !one.open; }); }
    function name() { button.textContent = rest().length ? "Open all sections" : "Close all sections"; }
    button.addEventListener("click", function () {
      var open = rest().length > 0;
      folds.forEach(function (one) { one.open = open; });
    });
    folds.forEach(function (one) { one.addEventListener("toggle", name); });
    place.hidden = false;
  }
  document.querySelectorAll(".whatif").forEach(slide);
  document.querySelectorAll("svg.frontier").forEach(follow);
  document.querySelectorAll(".hint").forEach(function (hint) { hint.hidden = false; });
  document.querySelectorAll(".open-all").forEach(openAll);
  window.addEventListener("hashchange", unfold);
  document.addEventListener("click", function (event) { // also a link to where the page is already
    if (event.target.closest("a[href^='#']")) setTimeout(unfold);
  });
  unfold();
})();
