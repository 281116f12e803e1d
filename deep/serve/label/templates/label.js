// The page on which people label. Until a person asks, the server sends it texts alone: no vote, no P, no other label.

const at = (id) => document.getElementById(id);
const WORDS = { 1: "consistent", 0: "not consistent", "-1": "cannot be decided", null: "skipped" };
const ANSWERS = { 1: "1", y: "1", 0: "0", n: "0", a: "undecided", s: "skip" };
const points = (share) => (100 * share).toFixed(1);
const several = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

let person = null;
let state = null;
let busy = false;

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
    throw new Error("The server does not answer, so this is not kept. Start `deep label` again, then repeat the key here.");
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

function sentences(text, places) {
  const parts = [];
  let end = 0;
  for (const [start, stop] of places) {
    parts.push(text.slice(end, start), make("span", { class: "sentence" }, text.slice(start, stop)));
    end = stop;
  }
  return [...parts, text.slice(end)];
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
  const waiting = p.waiting ? `; ${several(p.waiting, "item")} of yours wait for a second person` : "";
  return `${p.complete} of ${several(p.items, "item")} done. You: ${p.labeled} labeled, ${p.skipped} skipped, ${p.left} left${waiting}.`;
}

function expectedText({ now, then }) {
  return `P is expected to be off by ${points(now)} points on average with these labels, by ${points(then)} with all of them.`;
}

function showItem(item, note) {
  at("source").replaceChildren(...sentences(item.source, item.sentences));
  at("source").scrollTop = 0;
  at("claim").textContent = item.claim;
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
  at("expected").textContent = expectedText(state.expected);
  at("alert").textContent = state.problem;
  document.querySelector("[data-key=u]").disabled = state.last === null;
  document.querySelector("[data-key=r]").disabled = state.last === null || state.last.label === null;
  at("status").textContent = said;
  at(state.item ? "claim-title" : "done-title").focus();
}

function answer(label) {
  if (!state?.item) return;
  const { item_id } = state.item;
  alone(async () => {
    const found = await call("/answer", { item_id, label, note: at("note").value });
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
    const hint = "If you change your label now (undo), it is marked as given after this look.";
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
  return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "agreement" }, table);
}

function verdict(found) {
  if (found === null) return "Not yet: there is no label.";
  const needed = found.labels_needed["0.8"];
  if (found.enough) return "Enough: so many labels correct P (`deep adapt`), which is worth more than a test.";
  const there = `there ${found.n_labels === 1 ? "is" : "are"} ${found.n_labels}`;
  if (needed === null) return `Not yet: more labels than there are items would be needed to test the model; ${there}.`;
  return found.n_labels >= needed ? `Enough to test the model with; ${there}.` : `Not yet: a test of the model needs ${needed} labels; ${there}.`;
}

function canaryText(found) {
  if (found === null) return [];
  const verdict = found.flagged ? "disagree with the model" : "do not disagree with the model";
  return [
    `${several(found.n_labels, "label")} ${verdict} (canary, p = ${found.p_value.toPrecision(2)}).`,
    `${percent(found.observed)} % of them are consistent, ${percent(found.expected)} % were expected.`,
    ...found.advice,
  ];
}

function enough() {
  alone(async () => {
    const found = await call("/enough");
    const ties = found.ties ? [`On ${several(found.ties, "item")} people are tied; a tie is no label.`] : [];
    const texts = [verdict(found.canary), expectedText(found.expected), ...canaryText(found.canary), ...ties];
    at("verdict").replaceChildren(...texts.map((text) => make("p", {}, text)), agreementTable(found.agreement));
    open(at("enough"));
  });
}

const again = () => alone(async () => show(await call("/again"), { said: "The skipped items come again." }));
const DEEDS = {
  u: undo, r: reveal, e: enough, "?": () => open(at("help")), g: again,
  j: () => step(1), k: () => step(-1), m: () => at("note").focus(),
};

function press(key) {
  if (key in ANSWERS) answer(ANSWERS[key]);
  else if (key in DEEDS) DEEDS[key]();
  else return false;
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, textarea")) {
    if (event.key === "Escape" && event.target === at("note")) at("claim-title").focus();
    return;
  }
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
