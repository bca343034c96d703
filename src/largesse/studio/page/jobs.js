// Following a job until it ends.

import { server } from "./api.js";

const EVERY = 700; // milliseconds between two questions, where the server's events do not come through
const ENDED = ["done", "failed", "cancelled"];

export const hasEnded = (job) => ENDED.includes(job.state);

/** Call `onJob` with every state of a job, the last one included. Returns a function that stops listening. */
export function follow(id, onJob, onError) {
  let stopped = false;
  const events = new EventSource(`/api/jobs/${encodeURIComponent(id)}/events`);
  const stop = () => {
    stopped = true;
    events.close();
  };
  const hear = (job) => {
    if (stopped) return;
    if (hasEnded(job)) stop();
    onJob(job);
  };
  const poll = async () => {
    while (!stopped) {
      try {
        hear(await server.job(id));
      } catch (error) {
        if (!stopped) onError(error);
        return stop();
      }
      await new Promise((resolve) => { setTimeout(resolve, EVERY); });
    }
  };
  events.addEventListener("message", (event) => hear(JSON.parse(event.data)));
  events.addEventListener("error", () => {
    events.close();
    if (!stopped) poll();
  });
  return stop;
}
