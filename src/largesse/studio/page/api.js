// The studio's server: every request, and what goes wrong with it.

export class Refusal extends Error {
  constructor(status, message, problems) {
    super(message);
    this.status = status;
    this.problems = problems ?? [];
  }
}

const SILENT = new Refusal(0, "The studio does not answer.", [
  { what: "The program that this page belongs to may have been stopped.", hint: "Look at the terminal. Start it again with: largesse studio" },
]);
const NO_KEY = new Refusal(401, "This page has lost its key.", [
  { what: "Every start of the studio has a key of its own.", hint: "Open the address that `largesse studio` printed when it started." },
]);

function refusal(status, text) {
  if (status === 401) return NO_KEY;
  try {
    const { error } = JSON.parse(text);
    return new Refusal(status, error.message, error.problems);
  } catch {
    return new Refusal(status, "The studio could not do this.", [{ what: `It answered with status ${status}.`, hint: "Look at the terminal where it runs." }]);
  }
}

async function ask(method, path, body, signal) {
  const headers = { "X-Largesse": "studio" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    throw error.name === "AbortError" ? error : SILENT;
  }
  const text = await answer.text();
  if (!answer.ok) throw refusal(answer.status, text);
  return text ? JSON.parse(text) : null;
}

const safe = encodeURIComponent;
const post = (path, body, signal) => ask("POST", path, body, signal);

export const server = {
  state: () => ask("GET", "/api/state"),
  pick: (what) => post("/api/tables/pick", what),
  table: (id) => ask("GET", `/api/tables/${safe(id)}`),
  look: (id, roles, signal) => post(`/api/tables/${safe(id)}/look`, { roles }, signal),
  campaign: (draft, signal) => post("/api/campaign", draft, signal),
  doctor: (draft) => post("/api/doctor", draft),
  run: (name, draft) => post("/api/runs", { name, draft }),
  job: (id) => ask("GET", `/api/jobs/${safe(id)}`),
  cancel: (id) => ask("DELETE", `/api/jobs/${safe(id)}`),
  runs: () => ask("GET", "/api/runs"),
  rename: (name, as) => ask("PATCH", `/api/runs/${safe(name)}`, { name: as }),
  remove: (name) => ask("DELETE", `/api/runs/${safe(name)}`),
  runOf: (name) => ask("GET", `/api/runs/${safe(name)}`),
  whatIf: (name, asked) => post(`/api/runs/${safe(name)}/what-if`, asked),
  keep: (name, id, as) => post(`/api/runs/${safe(name)}/what-if/${safe(id)}/keep`, { name: as }),
};

export const report = (name) => `/runs/${safe(name)}/report.html`;
export const fileOf = (name, file) => `/api/runs/${safe(name)}/files/${safe(file)}`;
export const whatIfFile = (name, id, file) => `/api/runs/${safe(name)}/what-if/${safe(id)}/${safe(file)}`;

/** Send a file, and say how much of it has arrived. Returns {done: a promise of the table, stop()}. */
export function upload(file, onShare) {
  const request = new XMLHttpRequest();
  const done = new Promise((resolve, reject) => {
    request.upload.addEventListener("progress", (event) => onShare(event.lengthComputable ? event.loaded / event.total : 0));
    request.addEventListener("load", () => {
      if (request.status < 300) resolve(JSON.parse(request.responseText));
      else reject(refusal(request.status, request.responseText));
    });
    request.addEventListener("error", () => reject(SILENT));
    request.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError")));
  });
  request.open("POST", `/api/tables?name=${safe(file.name)}`);
  request.setRequestHeader("X-Largesse", "studio");
  request.setRequestHeader("Content-Type", "application/octet-stream");
  request.send(file);
  return { done, stop: () => request.abort() };
}
