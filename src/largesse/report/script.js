// Hover, tap or use the arrow keys on the frontier to read another budget; without this the page loses nothing.
(function () {
  var readout = document.querySelector(".readout");
  if (!readout) return;
  var first = readout.textContent;
  document.querySelectorAll("svg.frontier").forEach(function (svg) {
    var stops = Array.prototype.slice.call(svg.querySelectorAll(".stop"));
    var cursor = svg.querySelector(".cursor");
    var at = -1;
    if (!stops.length) return;
    function place(stop) { return Number(stop.getAttribute("cx")); }
    function show(index) {
      stops.forEach(function (stop, i) { stop.classList.toggle("on", i === index); });
      at = index;
      cursor.classList.toggle("on", index >= 0);
      if (index >= 0) ["x1", "x2"].forEach(function (end) { cursor.setAttribute(end, place(stops[index])); });
      readout.textContent = index < 0 ? first : stops[index].getAttribute("data-readout");
    }
    function nearest(event) {
      var x = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
      var best = 0;
      stops.forEach(function (stop, i) { if (Math.abs(place(stop) - x) < Math.abs(place(stops[best]) - x)) best = i; });
      show(best);
    }
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("pointermove", nearest);
    svg.addEventListener("pointerdown", nearest);
    svg.addEventListener("pointerleave", function (event) { if (event.pointerType === "mouse") show(-1); });
    svg.addEventListener("blur", function () { show(-1); });
    svg.addEventListener("keydown", function (event) {
      var step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      show(Math.min(Math.max(at + step, 0), stops.length - 1));
    });
  });
  document.querySelectorAll(".hint").forEach(function (hint) { hint.hidden = false; });
})();
