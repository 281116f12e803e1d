// The page of a served model. It asks its own server alone, and shows every text of others as text.

const AT_ONCE = 25;
const STEP = 100;
const WAITS = 5;
const get = (id) => document.getElementById(id);
let about = null;

class Refusal extends Error {
  constructor(message, wait = 0) {
    super(message);
    this.wait = wait;
  }
}

// The server's answer as JSON. What it refuses is an error whose message is in words.
async function ask(path, body, signal) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let response, answer;
  try {
    response = await fetch(path, { ...options, signal });
    answer = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(response ? "The server's answer is not JSON." : "The server does not answer. Is it still running?");
  }
  if (response.ok) return answer;
  const { message = `The server refused with status ${response.status}.` } = answer.error ?? {};
  const wait = [429, 503].includes(response.status) ? Number(response.headers.get("retry-after") ?? 1) || 1 : 0;
  throw new Refusal(message, wait);
}

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

// As `ask`, and again after a while where the server is busy.
async function askPatiently(path, body, signal) {
  for (let tried = 0; ; tried += 1) {
    try {
      return await ask(path, body, signal);
    } catch (error) {
      if (!error.wait || tried === WAITS) throw error;
      await pause(Math.min(error.wait, 10));
      signal?.throwIfAborted();
    }
  }
}

// The server counts characters, scripts count units of UTF-16.
function unitsOf(text) {
  const at = [];
  let unit = 0;
  for (const character of text) {
    at.push(unit);
    unit += character.length;
  }
  at.push(unit);
  return at;
}

function located(passage, units) {
  const known = passage.where !== null && passage.start !== null;
  if (!known) return { text: passage.text, verdict: passage.verdict, about: passage.about };
  const at = units[passage.where];
  return { where: passage.where, start: at[passage.start], end: at[passage.end], verdict: passage.verdict, about: passage.about };
}

const reasonOf = (judge) => ({
  ...(judge.reason ? { reason: judge.reason } : {}),
  ...(judge.rationale ? { rationale: judge.rationale } : {}),
});

// A result as all pages show an item, the judges that voted first.
function itemOf(pair, result) {
  const units = { source: unitsOf(pair.source), claim: unitsOf(pair.claim) };
  const judges = [...cast(result), ...result.judges.filter((judge) => judge.vote === null)];
  const said = judges.map((judge) => ({ ...reasonOf(judge), passages: judge.evidence.map((p) => located(p, units)) }));
  return {
    id: pair.id ?? "this pair", question: pair.question ?? null, claim: pair.claim, source: pair.source, p: result.p_consistent, low: result.p_low, high: result.p_high,
    limit: result.threshold, decided: result.decision, sure: result.sure === 1,
    voters: judges.map((judge) => judge.judge),
    votes: judges.map((judge) => judge.vote ?? "-").join(""),
    said: Object.fromEntries(Object.entries(said)),
  };
}

const calledOf = (result) => stateOf(result.decision, result.sure === 1);
const votesOf = (result) => result.judges.map((judge) => judge.vote);
const priceOf = (result) => (result.cost === null ? "cost not known" : result.cost > 0 ? `cost: $${result.cost.toFixed(4)}` : "");

function ruleLine(result) {
  const price = priceOf(result);
  return make("p", {}, `From ${chance(result.threshold)} % on, a claim is called consistent${price ? `; ${price}` : ""}.`);
}

const SAID = ["suspect", "share", "trust", "then"];

// What can be told of whether votes are like those that the model was fitted on. Results of a file are scored anew with
// it: together they tell the share of consistent claims, which one claim alone does not.
async function watched(list, votes, results = null) {
  try {
    const found = await askPatiently("page/watch", { votes });
    if (results && file.results !== results) return;
    if (results) get("file-sum").replaceChildren(...found.verdict.map((said, at) => make("p", { class: SAID[at] }, ...coded(said))));
    results?.forEach((result, at) => Object.assign(result, found.scores[at]));
    list.replaceChildren(...found.says.map((sentence) => make("li", {}, make("bdi", {}, ...coded(sentence)))));
  } catch (error) {
    list.replaceChildren(make("li", {}, error.message));
  }
}

function detail(pair, result) {
  const watch = make("ul", {});
  watched(watch, [votesOf(result)]);
  return [judged(itemOf(pair, result)), ruleLine(result), make("h3", {}, "Does this look like what the model was fitted on?"), watch];
}

async function checkPair(event) {
  event?.preventDefault();
  const asked = get("question").value;
  const pair = { source: get("source").value, claim: get("claim").value, ...(asked.trim() ? { question: asked } : {}) };
  const button = get("pair").querySelector("button");
  get("pair-error").textContent = "";
  const empty = ["source", "claim"].find((name) => !pair[name].trim());
  if (empty) {
    get("pair-error").textContent = `The ${empty} must be filled in.`;
    get(empty).focus();
    return;
  }
  button.disabled = true;
  get("pair-status").className = "";
  get("pair-status").textContent = "Asking the judges ...";
  try {
    const result = await askPatiently("v1/check", pair);
    get("result").replaceChildren(...detail(pair, result));
    get("pair-status").className = "heard";
    get("pair-status").textContent = `P(consistent) ${chance(result.p_consistent)} %: ${stateWords(result.decision, result.sure === 1)}.`;
  } catch (error) {
    get("result").replaceChildren();
    get("pair-status").textContent = "";
    get("pair-error").textContent = error.message;
  }
  button.disabled = false;
}

// A file of claims: read by the server, checked a few at a time, shown as they come. Where the budget ends, what some
// judges say of the last ones is left out: the table holds whole answers, and those that are paid cost nothing again.
const file = { name: "", pairs: [], results: [], shown: STEP, down: null, stop: null, asked: null };

async function openFile(chosen) {
  const asked = (file.asked = {});
  get("file-error").textContent = "";
  get("file-status").textContent = `Reading ${chosen.name} ...`;
  let pairs;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await chosen.arrayBuffer());
    ({ pairs } = await askPatiently("page/file", { name: chosen.name, text }));
  } catch (error) {
    if (file.asked !== asked) return;
    get("file-status").textContent = file.results.length ? `Still shown below: ${file.name}.` : "";
    get("file-error").textContent = error instanceof TypeError ? `${chosen.name} must be UTF-8 text. Save it as UTF-8.` : error.message;
    return;
  }
  if (file.asked !== asked) return;
  file.stop?.abort();
  Object.assign(file, { name: chosen.name, pairs, results: [], shown: STEP, down: null });
  for (const id of ["table", "file-watch", "file-sum"]) get(id).replaceChildren();
  buttons({});
  await checkFile();
}

async function checkFile() {
  const { pairs, results } = file;
  const stop = new AbortController();
  file.stop = stop;
  get("file-error").textContent = "";
  let failed = null;
  try {
    while (results.length < pairs.length) {
      said(`Checked ${results.length.toLocaleString("en")} of ${pairs.length.toLocaleString("en")} claims of ${file.name}.`);
      buttons({ stop: true });
      const found = await askPatiently("v1/check", pairs.slice(results.length, results.length + AT_ONCE), stop.signal);
      if (file.results !== results) return;
      results.push(...found.results);
      drawTable();
    }
  } catch (error) {
    failed = error;
  }
  if (file.results === results && results.length > 1) await watched(get("file-watch"), results.map(votesOf), results);
  if (file.results !== results) return;
  const n = pairs.length.toLocaleString("en");
  said(`${failed ? `Checked ${results.length.toLocaleString("en")} of` : "All"} ${n} claims of ${file.name}${failed ? "" : " are checked"}${costs(results)}.`);
  get("file-error").textContent = !failed || failed.name === "AbortError" ? "" : failed.message;
  buttons({ again: failed !== null, download: results.length > 0 });
  if (!failed) file.down = false;
  get("table").replaceChildren();
  if (results.length) drawTable();
}

function costs(results) {
  if (results.some((result) => result.cost === null)) return "; the cost is not known";
  const sum = results.reduce((total, result) => total + result.cost, 0);
  return sum > 0 ? `; cost: $${sum.toFixed(4)}` : "";
}

function said(words) {
  get("file-status").textContent = words;
  Object.assign(get("progress"), { max: Math.max(file.pairs.length, 1), value: file.results.length });
}

function buttons({ stop = false, again = false, download = false }) {
  const focused = document.activeElement;
  get("progress").hidden = !stop;
  get("stop").hidden = !stop;
  get("again").hidden = !again;
  get("download").hidden = !download;
  if (focused?.hidden) (again ? get("again") : download ? get("download") : get("file")).focus();
}

const idOf = (i) => file.pairs[i].id ?? String(i + 1);
const cast = (result) => result.judges.filter((judge) => judge.vote !== null);
const yes = (result) => cast(result).filter((judge) => judge.vote === 1).length;
const interval = (result) => (result.p_low === null ? "" : `${chance(result.p_low)} to ${chance(result.p_high)}`);

const CELLS = [
  ["claim", (i) => file.pairs[i].claim, "claim"],
  ["P, %", (i) => chance(file.results[i].p_consistent), "number"],
  ["90 % interval", (i) => interval(file.results[i]), "number"],
  ["called", (i) => calledOf(file.results[i]), "decided"],
  ["votes for it", (i) => `${yes(file.results[i])} of ${cast(file.results[i]).length}`, "number"],
];

function ordered() {
  const rows = file.results.map((_, i) => i);
  if (file.down === null) return rows;
  const p = (i) => file.results[i].p_consistent;
  return rows.sort((a, b) => (file.down ? p(b) - p(a) : p(a) - p(b)) || a - b);
}

function sorted() {
  file.down = file.down === null ? false : file.down ? null : true;
  get("table").replaceChildren();
  drawTable();
  get("table").querySelector("thead button").focus();
}

function tableRow(i) {
  const id = `claim-${i}`;
  const below = make("tr", { id, hidden: "" }, make("td", { colspan: CELLS.length + 1 }));
  const button = make("button", { type: "button", "aria-expanded": "false", "aria-controls": id }, idText(idOf(i)));
  button.addEventListener("click", () => {
    below.hidden = !below.hidden;
    button.setAttribute("aria-expanded", String(!below.hidden));
    if (!below.hidden && !below.firstChild.firstChild) below.firstChild.append(...detail({ ...file.pairs[i], id: idOf(i) }, file.results[i]));
  });
  const cells = CELLS.map(([, text, kind]) => make("td", { class: kind }, make("bdi", {}, text(i))));
  return [make("tr", {}, make("th", { scope: "row" }, button), ...cells), below];
}

// Rows that are open stay so while others come.
function drawTable() {
  const rows = ordered();
  const drawn = get("table").querySelector("tbody");
  if (drawn && file.down === null) {
    drawn.append(...rows.slice(drawn.children.length / 2, file.shown).flatMap(tableRow));
    return showMore(rows);
  }
  const heads = CELLS.map(([name, , kind]) => {
    if (name !== "P, %") return make("th", { scope: "col", class: kind }, name);
    const order = file.down === null ? "none" : file.down ? "descending" : "ascending";
    return make("th", { scope: "col", class: kind, "aria-sort": order, "data-paper": name }, make("button", { type: "button", onclick: sorted }, name));
  });
  const head = make("tr", {}, make("th", { scope: "col" }, "item"), ...heads);
  const caption = make("caption", {}, "Claims; an item opens, P sorts");
  const body = make("tbody", {}, ...rows.slice(0, file.shown).flatMap(tableRow));
  const table = make("table", { class: "items" }, caption, make("thead", {}, head), body);
  const more = make("button", { type: "button", class: "more" }, `Show ${STEP} more`);
  more.addEventListener("click", () => {
    file.shown += STEP;
    get("table").replaceChildren();
    drawTable();
    get("table").querySelector("tbody tr:nth-last-child(2) button")?.focus();
  });
  get("table").replaceChildren(make("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "claims" }, table), more);
  showMore(rows);
}

function showMore(rows) {
  get("table").querySelector(".more").hidden = rows.length <= file.shown;
}

// A cell of CSV. A spreadsheet takes text that begins so for a formula, unless an apostrophe stands before it; what has
// apostrophes there already gets one more, so that deep reads every text as it was (_plain_cells.py says the same).
const FORMULA = /^'*(?:[\t\r\n]|[\s\p{C}\p{M}\p{Z}\u115f\u1160\u2800\u3164\uffa0]*[=+\-@\uff1d\uff0b\uff0d\uff20])/u;
const NUMBER = /^(?:-|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)$/; // or a dash alone
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = FORMULA.test(value) && !NUMBER.test(value) ? `'${value}` : value;
  return /[",\r\n;]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// The table of all claims: of each the columns that the server describes, and the votes.
function csvOf(pairs, results) {
  const columns = Object.keys(about.columns);
  const judges = results[0].judges.map((judge) => judge.judge);
  const asked = pairs.some((pair) => pair.question);
  const head = ["example_id", ...(asked ? ["question"] : []), "claim", ...columns, ...judges];
  const rows = results.map((result, i) => [
    idOf(i), ...(asked ? [pairs[i].question] : []), pairs[i].claim, ...columns.map((name) => result[name]), ...votesOf(result),
  ]);
  return [head, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

async function download() {
  try {
    about ??= await askPatiently("v1/model");
  } catch (error) {
    get("file-error").textContent = error.message;
    return;
  }
  const address = URL.createObjectURL(new Blob(["\ufeff", csvOf(file.pairs, file.results)], { type: "text/csv" }));
  const link = make("a", { href: address, download: `${file.name.replace(/\.\w+$/, "")}.scored.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

function shareOf(prior) {
  const range = prior.low === undefined || prior.low === null ? "" : `, 90 % interval ${chance(prior.low)} to ${chance(prior.high)} %`;
  return `${chance(prior.estimate)} % consistent${range}: ${prior.of}`;
}

function leftOut(scores) {
  if (scores?.balanced_accuracy === undefined) return "";
  const floor = scores.ece_floor === undefined ? "" : ` (noise floor ${percent(scores.ece_floor)})`;
  return `mean balanced accuracy ${percent(scores.balanced_accuracy)} %, ECE ${percent(scores.ece)} %${floor}`;
}

function describe() {
  const datasets = Object.entries(about.training_datasets).map(([name, values]) => {
    const rows = values.n === undefined ? "" : `: ${values.n.toLocaleString("en")} rows, ${percent(values.prior)} % consistent`;
    return `${name}${rows}`;
  });
  const judges = about.judges.map(({ judge, kind, llm }) => `${judge}${kind ? ` (${kind}${llm ? `, asks ${llm}` : ""})` : ""}`);
  const list = (texts) => make("ul", {}, ...texts.map((text) => make("li", {}, make("bdi", {}, text))));
  const rows = [
    ["fitted on", list(datasets)],
    ["method", about.method],
    ["on data left out", leftOut(about.left_out)],
    ["share expected", shareOf(about.prior)],
    ["called consistent", `from ${chance(about.decision.threshold)} % on`], ["rule", about.decision.rule.replace(/^rule: /, "")],
    [`${about.judges.length} judges`, list(judges)],
    ["notes", list([...(about.notes ?? []), ...(about.prior.warning ? [about.prior.warning] : [])])],
    ["made", `${about.created} by deep ${about.versions.fitted_with?.deep ?? ""}`],
  ];
  const told = rows.filter(([, value]) => value && value.childElementCount !== 0).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  get("model").replaceChildren(make("dl", { class: "model" }, ...told));
  get("about").textContent = `${about.judges.length} judges vote, and a model fitted on ${datasets.length === 1 ? `the dataset ${datasets[0]}` : `${datasets.length} datasets`} says how likely it is.`;
}

async function start() {
  try {
    about = await askPatiently("v1/model");
    describe();
  } catch (error) {
    get("model").replaceChildren(make("p", { class: "error" }, error.message));
  }
}

get("pair").addEventListener("submit", checkPair);
get("pair").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) checkPair(event);
});
get("file").addEventListener("change", (event) => {
  if (event.target.files.length) openFile(event.target.files[0]);
});
get("stop").addEventListener("click", () => file.stop.abort());
get("again").addEventListener("click", checkFile);
get("download").addEventListener("click", download);
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
    event.preventDefault();
    document.body.classList.toggle("over", kind === "dragover");
    if (kind === "drop" && event.dataTransfer.files.length) openFile(event.dataTransfer.files[0]);
  });
}
start();
