// A run while it is made.

import { server } from "./api.js";
import { make, put, refill, say } from "./dom.js";
import { follow, hasEnded } from "./jobs.js";
import { refusalBox } from "./messages.js";
import { progressPart } from "./progress.js";
import { runAddress } from "./runs.js";

const TOLD = [
  "Models learn how customers respond to each level, and how sure that is.",
  "The plan spends the budget where it brings the most.",
  "What it brings is estimated from rows that no model has seen, and compared with the same level for everyone.",
];

/** "#/job/ID", or "#/table/ID/run/JOB", from which one can go back to the table. */
export async function show(page, [kind, id, , jobId]) {
  const table = kind === "table" ? id : null;
  const job = await server.job(table ? jobId : id);
  const way = table ? `#/table/${encodeURIComponent(table)}` : "#/";
  let stop = () => {};
  const back = () => make("p", { class: "row-of-buttons" },
    table ? make("a", { class: "button main", href: `${way}/checkup` }, "Back to the checkup") : make("a", { class: "button main", href: "#/" }, "To the start"),
    table ? make("a", { class: "button", href: way }, "Back to the columns") : null);
  const end = (now) => {
    if (now.state === "done" && now.result?.run) {
      say("The run is done.");
      location.replace(runAddress(now.result.run)); // going back does not lead to a run that has ended
    } else if (now.state === "failed") {
      refill(page, make("h1", {}, "The run could not be finished"), make("p", { class: "lead" }, "Nothing was left half written. What you said about the table is still there."), refusalBox(now.error ?? { message: "It stopped without a reason." }), back());
    } else {
      refill(page, make("h1", {}, "The run was cancelled"), make("p", { class: "lead" }, "Nothing was left half written. What you said about the table is still there."), back());
      say("The run was cancelled.");
    }
    document.querySelector("main").focus({ preventScroll: true });
  };
  const fail = (error) => refill(page, make("h1", {}, "The run cannot be followed"), refusalBox(error, () => location.reload()), back());
  if (hasEnded(job)) {
    end(job);
  } else {
    const bar = progressPart(job, () => server.cancel(job.id).catch(fail));
    put(page, make("h1", {}, "Learning who responds to what"), make("p", { class: "lead" }, "You can leave this page: the run goes on, and is listed at the start when it is done."), bar.element,
      make("ol", { class: "told" }, TOLD.map((words) => make("li", {}, words))));
    stop = follow(job.id, (now) => (hasEnded(now) ? end(now) : bar.show(now)), fail);
  }
  return { title: "Run", step: 3, table: table ? encodeURIComponent(table) : null, leave: stop };
}
