// The report of a run, in a frame of its own that can reach nothing else.

import { report, server } from "./api.js";
import { make, put } from "./dom.js";
import { refusalBox } from "./messages.js";

export async function show(page, [, name]) {
  const run = await server.runOf(name);
  if (!run.files.includes("report.html")) {
    put(page, make("h1", {}, name), make("p", { class: "lead" }, "This run has no report. It may have been made in steps: `largesse report` writes one."),
      run.problems?.length ? refusalBox({ message: "This run is not complete", problems: run.problems }) : null);
    return { title: name, run: name, tab: "Report" };
  }
  put(page, make("h1", { class: "unseen" }, `Report of ${name}`),
    make("iframe", { class: "report", title: `Report of ${name}`, src: report(name), sandbox: "allow-scripts allow-popups allow-downloads" }));
  return { title: name, run: name, tab: "Report", wide: "filled" };
}
