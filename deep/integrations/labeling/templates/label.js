// The page on which people label. Until a person asks, the server sends it texts alone: no vote, no P, no other label.

const at = (id) => document.getElementById(id);
const WORDS = { 1: "consistent", 0: "not consistent", "-1": "cannot be decided", null: "skipped" };
const ANSWERS = { 1: "1", y: "1", 0: "0", n: "0", a: "undecided", s: "skip" };
const points = (share) => (100 * share).toFixed(1);
const several = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

let person = null;
let state = null;
let busy = false;
let marking = false;
let begun = null; // when the item was shown
const took = []; // seconds of each answer

// What this tab remembers of itself; a browser may refuse to.
const memory = {
  get(name) {
    try {
      return sessionStorage.getItem(`deep-label-${name}`);
    } catch {
      return null;
    }
  },
  set(name, value) {
    try {
      if (value) sessionStorage.setItem(`deep-label-${name}`, value);
      else sessionStorage.removeItem(`deep-label-${name}`);
    } catch {
      // It is for comfort alone.
    }
  },
};

async function call(path, fields = {}) {
  let response;
  try {
    response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ person, ...fields }),
    });
  } catch {
    throw new Error("The server does not answer, so this label is not saved. Start `deep label` again, then repeat the key here.");
  }
  const found = await response.json();
  if (!response.ok) throw Object.assign(new Error(found.error.message), { refused: response.status === 422 });
  return found;
}

// One thing after the other: a key that comes while another is being answered does nothing.
async function alone(work) {
  if (busy) return;
  busy = true;
  try {
    at("alert").textContent = "";
    await work();
  } catch (error) {
    if (error.refused && person !== null) await call("/state").then(show, () => {});
    at("alert").textContent = error.message;
  } finally {
    busy = false;
  }
}

// The source with its sentences, and in them the words that are marked.
function sentences(text, places, words) {
  const parts = [];
  let end = 0;
  const piece = (start, stop) => marked(text.slice(start, stop), hitsOf(text.slice(start, stop), words));
  for (const [start, stop] of places) {
    parts.push(...piece(end, start), make("span", { class: "sentence" }, ...piece(start, stop)));
    end = stop;
  }
  return [...parts, ...piece(end)];
}

const escaped = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

function hitsOf(text, words) {
  if (!words.length) return [];
  const found = text.matchAll(new RegExp(words.join("|"), "giu"));
  return [...found].filter((hit) => hit[0]).map((hit) => ({ start: hit.index, end: hit.index + hit[0].length }));
}

// Patterns of the claim's words that can be found: whole numbers, and words that begin with its words of four letters and more.
const wordsOf = (claim) => [
  ...[...new Set(claim.match(/\p{L}{4,}/gu) ?? [])].sort((a, b) => b.length - a.length).map((word) => `(?<!\\p{L})${word}`),
  ...new Set(claim.match(/\p{N}(?:[\p{N}.,]*\p{N})?/gu) ?? []),
].map((word) => (/^\p{N}/u.test(word) ? `(?<![\\p{L}\\p{N}])${escaped(word)}(?!\\p{N})` : word));

function draw() {
  const query = at("finder").hidden ? "" : at("find").value.trim();
  const words = query ? [escaped(query)] : marking ? wordsOf(state.item.claim) : [];
  at("source").replaceChildren(...sentences(state.item.source, state.item.sentences, words));
  const hits = at("source").querySelectorAll("mark").length;
  at("hits").textContent = query ? several(hits, "place") : "";
  where();
}

function where() {
  const box = at("source");
  const all = Math.max(1, Math.ceil(box.scrollHeight / box.clientHeight - 0.05));
  const now = Math.min(all, 1 + Math.round(box.scrollTop / box.clientHeight));
  at("where").textContent = all > 1 ? `screen ${now} of ${all}` : "";
}

const scroll = (by) => at("source").scrollBy({ top: by * 0.9 * at("source").clientHeight });

function find() {
  at("finder").hidden = false;
  at("find").select();
  at("find").focus();
}

let hit = -1;
function nextHit() {
  const hits = [...at("source").querySelectorAll("mark")];
  if (!hits.length) return;
  hit = (hit + 1) % hits.length;
  hits[hit].scrollIntoView({ block: "center" });
  at("hits").textContent = `${hit + 1} of ${several(hits.length, "place")}`;
}

function leaveFind() {
  at("finder").hidden = true;
  draw();
  at("claim-title").focus();
}

function step(by) {
  const all = [...at("source").querySelectorAll(".sentence")];
  if (!all.length) return;
  const now = all.findIndex((each) => each.classList.contains("current"));
  const next = now < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, now + by));
  if (now >= 0) all[now].classList.remove("current");
  all[next].classList.add("current");
  all[next].scrollIntoView({ block: "nearest" });
}

function progressText(p) {
  const waiting = p.waiting ? `; ${several(p.waiting, "item")} of your labels wait for a second person` : "";
  return `${p.complete} of ${several(p.items, "item")} done. You: ${p.labeled} labeled, ${p.skipped} skipped, ${p.left} left${minutes(p.left)}${waiting}.`;
}

// How long the rest takes, by the median of the answers of this tab.
function minutes(left) {
  if (took.length < 3 || !left) return "";
  const median = [...took].sort((a, b) => a - b)[Math.floor(took.length / 2)];
  return `, about ${several(Math.max(1, Math.round((median * left) / 60)), "minute")}`;
}

function expectedText({ now, then }) {
  const later = points(now) === points(then) ? "" : `; with all of them, by ${points(then)}`;
  return `With these labels, the expected mean error of P is ${points(now)} percentage points on average${later}.`;
}

function showItem(item, note) {
  at("finder").hidden = true;
  hit = -1;
  begun = Date.now();
  at("claim").textContent = item.claim;
  at("question").textContent = item.question ?? "";
  at("asked").hidden = !item.question;
  draw();
  at("source").scrollTop = 0;
  where();
  at("seen").hidden = !item.revealed;
  at("note").value = note ?? memory.get(`note-${person}-${item.item_id}`) ?? "";
}

function show(found, { note = null, said = "" } = {}) {
  state = found;
  const p = state.progress;
  at("people").hidden = true;
  at("who").hidden = at("state").hidden = false;
  at("person").textContent = state.person;
  at("work").hidden = state.item === null;
  at("done").hidden = state.item !== null;
  if (state.item) showItem(state.item, note);
  at("outcome").textContent = `You labeled ${p.labeled} and skipped ${p.skipped}.`;
  at("again").hidden = p.skipped === 0;
  at("bar").max = p.wanted;
  at("bar").value = p.given;
  at("progress").textContent = progressText(p);
  at("expected").textContent = state.item ? expectedText(state.expected) : "";
  at("alert").textContent = state.problem;
  document.querySelector("[data-key=u]").disabled = state.last === null;
  document.querySelector("[data-key=r]").disabled = state.last === null || state.last.label === null;
  at("status").textContent = said;
  at(state.item ? "claim-title" : "done-title").focus();
  if (!state.item) showEnd();
}

// What the labels say, in words, and the commands that use them.
async function showEnd() {
  at("end").replaceChildren();
  try {
    const found = await call("/enough");
    const copy = found.commands.map((command) => {
      const button = make("button", { type: "button", "aria-label": `copy ${command}` }, "copy");
      button.addEventListener("click", () => navigator.clipboard?.writeText(command).then(() => (button.textContent = "copied"), () => {}));
      return make("pre", {}, make("code", {}, ...wholeWords(command)), " ", button);
    });
    at("end").replaceChildren(...foundTexts(found), make("h3", {}, "What to run next"), ...copy);
  } catch (error) {
    at("alert").textContent = error.message;
  }
}

function answer(label) {
  if (!state?.item) return;
  const { item_id } = state.item;
  const seconds = (Date.now() - begun) / 1000;
  alone(async () => {
    const found = await call("/answer", { item_id, label, note: at("note").value });
    took.push(seconds);
    memory.set(`note-${person}-${item_id}`, "");
    show(found, { said: `${WORDS[found.last.label]}: kept.` });
  });
}

function undo() {
  if (!state?.last) return;
  const { label, note } = state.last;
  alone(async () => show(await call("/undo"), { note, said: `Taken back: it was "${WORDS[label]}".` }));
}

function open(dialog) {
  dialog.showModal();
  dialog.querySelector("h2").focus();
}

function reveal() {
  if (!state?.last || state.last.label === null) return;
  alone(async () => {
    const { item, people } = await call("/reveal", { item_id: state.last.item_id });
    const said = people.map((each) =>
      make("li", {}, make("bdi", {}, each.person), `: ${WORDS[each.label]}${each.after_reveal ? " (after a look at the votes)" : ""}`,
        ...(each.note ? [make("br"), make("bdi", { class: "said" }, each.note)] : [])),
    );
    const hint = "If you change your label now (undo), it will be marked for having seen the votes.";
    at("revealed").replaceChildren(make("h3", {}, "People"), make("ul", {}, ...said), make("p", {}, hint), judged(item));
    open(at("reveal"));
  });
}

function agreementTable({ items, measures }) {
  if (!measures.length) return make("p", {}, "No item has labels of two people yet.");
  const number = (value) => (value === null ? "undefined" : value.toFixed(2));
  const rows = measures.map((row) =>
    make("tr", {}, make("th", { scope: "row" }, make("bdi", {}, row.name)), make("td", { class: "number" }, number(row.value)),
      make("td", { class: "number" }, row.low === null ? "" : `${number(row.low)} to ${number(row.high)}`)),
  );
  const heads = ["agreement", "value", "95 % interval"].map((name) => make("th", { scope: "col" }, name));
  const caption = make("caption", {}, `On ${several(items, "item")} with labels of two people or more`);
  const table = make("table", {}, caption, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
  return make("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "agreement" }, table);
}

function verdict(found) {
  if (found === null) return "Not yet: no labels.";
  const needed = found.labels_needed["0.8"];
  if (found.flagged) return "Enough: they show that the model is wrong here.";
  if (found.enough) return "Enough: with this many labels, correcting P (`deep adapt`) helps more than a test.";
  const there = `there ${found.n_labels === 1 ? "is" : "are"} ${found.n_labels}`;
  if (needed === null) return `Not yet: a test of the model needs more labels than there are items; ${there}.`;
  return found.n_labels >= needed ? `Enough to test the model; ${there}.` : `Not yet: a test of the model needs ${needed} labels; ${there}.`;
}

function canaryText(found) {
  if (found === null) return [];
  const verdict = found.flagged ? "disagree with the model" : "do not disagree with the model";
  return [
    `${several(found.n_labels, "label")} ${verdict}: ${percent(found.observed)} % of them are consistent, ${percent(found.expected)} % were expected. If the model is right, labels this far from it occur in ${chance(found.p_value)} % of cases.`,
    ...found.advice,
  ];
}

function foundTexts(found) {
  const ties = found.ties ? [`On ${several(found.ties, "item")} people are tied, and get no label.`] : [];
  const expected = found.canary?.flagged ? [] : [expectedText(found.expected)]; // by the model, which is then wrong
  const texts = [verdict(found.canary), ...canaryText(found.canary), ...expected, ...ties];
  return [...texts.map((text) => make("p", {}, ...coded(text))), agreementTable(found.agreement)];
}

function enough() {
  alone(async () => {
    const found = await call("/enough");
    at("verdict").replaceChildren(...foundTexts(found));
    open(at("enough"));
  });
}

const again = () => alone(async () => show(await call("/again"), { said: "The skipped items are shown again." }));
const DEEDS = {
  u: undo, r: reveal, e: enough, "?": () => open(at("help")), g: again,
  j: () => step(1), k: () => step(-1), m: () => at("note").focus(),
  "/": find, " ": () => scroll(1), pagedown: () => scroll(1), pageup: () => scroll(-1),
  w: () => { marking = !marking; draw(); },
};
const OF_ITEM = ["j", "k", "m", "/", " ", "pagedown", "pageup", "w"];

function press(key) {
  if (key in ANSWERS) answer(ANSWERS[key]);
  else if (key in DEEDS && (state?.item || !OF_ITEM.includes(key))) DEEDS[key]();
  else return false;
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, textarea")) {
    if (event.key === "Escape" && event.target === at("note")) at("claim-title").focus();
    if (event.key === "Escape" && event.target === at("find")) leaveFind();
    return;
  }
  if (event.target.matches("button, summary") && [" ", "Enter"].includes(event.key)) return;
  const other = event.ctrlKey || event.altKey || event.metaKey || event.repeat || event.isComposing;
  if (other || !at("keys").checked || document.querySelector("dialog[open]") || at("state").hidden) return;
  if (press(event.key.toLowerCase())) event.preventDefault();
});
document.querySelectorAll("[data-key]").forEach((button) => button.addEventListener("click", () => press(button.dataset.key)));
document.querySelectorAll("dialog .close").forEach((button) => button.addEventListener("click", () => button.closest("dialog").close()));
at("note").addEventListener("input", () => memory.set(`note-${person}-${state.item.item_id}`, at("note").value));

function ask() {
  person = state = null;
  memory.set("person", "");
  for (const id of ["work", "done", "state", "who"]) at(id).hidden = true;
  at("people").hidden = false;
  at("status").textContent = "";
  at("name").focus();
}

function begin(name) {
  alone(async () => {
    const found = await call("/state", { person: name });
    person = found.person;
    memory.set("person", person);
    show(found);
  });
}

at("finder").addEventListener("submit", (event) => {
  event.preventDefault();
  nextHit();
});
at("find").addEventListener("input", () => {
  hit = -1;
  draw();
});
at("source").addEventListener("scroll", where);
at("change").addEventListener("click", ask);
at("people").addEventListener("submit", (event) => {
  event.preventDefault();
  begin(at("name").value);
});
alone(async () => {
  const found = await call("/start");
  at("dataset").textContent = found.dataset;
  at("names").replaceChildren(...found.people.map((name) => make("option", { value: name })));
  const known = memory.get("person") ?? found.person;
  ask();
  if (known) setTimeout(begin, 0, known);
});
