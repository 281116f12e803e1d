// The item browser. It reads the JSON in the page and asks for nothing else.

const data = JSON.parse(document.getElementById("items-data").textContent);
const STEP = 50;
const PRINTED = 10; // rows on paper, as the style sheet has it
const LABELS = { 1: "consistent", 0: "inconsistent", "-1": "none" };

const claimOf = (i) => (data.claim ? data.claim[i] : null);
const questionOf = (i) => data.question?.[i] ?? null;
const sourceOf = (i) => (data.source && data.source[i] !== null ? data.sources[data.source[i]] : null);
const gapOf = (i) => (data.label[i] < 0 ? -1 : Math.abs(data.p[i] - data.label[i]));
const cast = (i) => [...data.votes[i]].filter((vote) => vote !== "-").length;
const yes = (i) => [...data.votes[i]].filter((vote) => vote === "1").length;

const unsure = (i) => Math.abs(data.p[i] - data.limit[i]);

// The columns: a head, the text of a cell, and what it is sorted by; those without a text only sort.
const COLUMNS = {
  item: { head: "item", sort: (i) => data.id[i] },
  claim: { head: "claim", text: (i) => claimOf(i) ?? "", hidden: !data.claim },
  p: { head: "P, %", text: (i) => chance(data.p[i]), sort: (i) => data.p[i], number: true, up: true },
  decided: { head: "called", text: (i) => stateOf(data.decided[i], data.sure[i]) },
  dataset: { head: "dataset", text: (i) => data.datasets[data.dataset[i]], hidden: data.datasets?.length === 1 },
  label: { head: "label", text: (i) => LABELS[data.label[i]], hidden: !data.label?.some((label) => label >= 0) },
  votes: { head: "votes for it", text: (i) => `${yes(i)} of ${cast(i)}`, sort: yes, number: true },
  split: { sort: (i) => data.split[i], hidden: true },
  gap: { sort: gapOf, hidden: true },
  unsure: { sort: unsure, hidden: true },
};

const VIEWS = {
  "lowest P": { sort: "p", down: false },
  "judges disagree most": { sort: "split", down: true },
  "Largest difference between P and label: likely label errors": { sort: "gap", down: true },
  "P is least sure": { sort: "unsure", down: false },
};

const state = { query: "", dataset: "", label: "", decided: "", judge: "", vote: "", from: 0, to: 100, sort: "p", down: false, shown: STEP };
const haystack = [];

function textOf(i) {
  haystack[i] ??= [data.id[i], data.datasets[data.dataset[i]], questionOf(i), claimOf(i), sourceOf(i)].join("\n").toLowerCase();
  return haystack[i];
}

function fits(i) {
  return (
    (state.dataset === "" || data.dataset[i] === Number(state.dataset)) &&
    (state.label === "" || data.label[i] === Number(state.label)) &&
    (state.decided === "" || stateOf(data.decided[i], data.sure[i]) === state.decided) &&
    (state.judge === "" || state.vote === "" || data.votes[i][Number(state.judge)] === state.vote) &&
    100 * data.p[i] >= state.from &&
    100 * data.p[i] <= state.to &&
    (state.query === "" || textOf(i).includes(state.query))
  );
}

function found() {
  const key = COLUMNS[state.sort].sort ?? COLUMNS[state.sort].text;
  const keys = data.id.map((_, i) => key(i));
  const compare = (a, b) => (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0);
  const rows = data.id.map((_, i) => i).filter(fits);
  return rows.sort((a, b) => (state.down ? compare(b, a) : compare(a, b)) || a - b);
}

function detail(i) {
  return judged({
    id: data.id[i], question: questionOf(i), claim: claimOf(i), source: sourceOf(i), p: data.p[i], low: data.low[i], high: data.high[i],
    decided: data.decided[i], sure: Boolean(data.sure[i]), limit: data.limit[i], voters: data.voters, votes: data.votes[i], said: data.said?.[i] ?? {},
  });
}

// A row of the list; the item opens in the reader beside it.
function itemRow(i, columns, open) {
  const button = make("button", { type: "button", "aria-controls": "reader", onclick: () => open(i) }, idText(data.id[i]));
  const cells = columns.slice(1).map(([name, column]) => {
    const bar = name === "p" ? [make("span", { class: "bar" }, make("span", { style: `width: ${100 * data.p[i]}%` }))] : [];
    return make("td", { class: column.number ? `number ${name}` : name }, ...bar, make("bdi", {}, column.text(i)));
  });
  return make("tr", { "data-item": String(i) }, make("th", { scope: "row" }, button), ...cells);
}

function browser(root) {
  const columns = Object.entries(COLUMNS).filter(([, column]) => !column.hidden);
  const said = make("span");
  const status = make("p", { role: "status" }, said);
  const body = make("tbody");
  const reader = make("section", { id: "reader", class: "reader", "aria-label": "the item", tabindex: "-1" });
  const heads = columns.map(([name, column]) => {
    const sort = () => update({ sort: name, down: state.sort === name ? !state.down : Boolean(column.number) && !column.up });
    const attributes = { scope: "col", class: column.number ? "number" : "" };
    return make("th", { ...attributes, "data-paper": column.head }, make("button", { type: "button", onclick: sort }, column.head));
  });
  const more = make("button", { type: "button", class: "more", onclick: () => update({ shown: state.shown + STEP }) }, `Show ${STEP} more`);
  const views = Object.entries(VIEWS).map(([name, view]) => {
    const press = () => update(view);
    return [make("button", { type: "button", onclick: press }, name), view];
  });

  // Opened by hand, it is shown where the list leaves no room for it.
  function open(i, { scroll = true } = {}) {
    body.querySelectorAll("[aria-current]").forEach((row) => row.removeAttribute("aria-current"));
    body.querySelector(`[data-item="${i}"]`)?.setAttribute("aria-current", "true");
    const where = `${data.id[i]} of ${data.datasets[data.dataset[i]]}${data.label[i] < 0 ? "" : `, labeled ${LABELS[data.label[i]]}`}`;
    reader.replaceChildren(make("h3", {}, make("bdi", {}, where)), detail(i));
    if (scroll && matchMedia("(max-width: 60rem)").matches) reader.scrollIntoView();
  }

  function moved(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const rows = [...body.children];
    const to = rows[rows.indexOf(event.target.closest("tr")) + step];
    if (!step || !to) return;
    event.preventDefault();
    to.querySelector("button").focus();
    open(Number(to.dataset.item), { scroll: false });
  }
  body.addEventListener("keydown", moved);

  function update(change) {
    Object.assign(state, { shown: STEP }, change);
    const rows = found();
    const visible = rows.slice(0, state.shown);
    body.replaceChildren(...visible.map((i) => itemRow(i, columns, open)));
    if (visible.length) open(visible[0], { scroll: false });
    else reader.replaceChildren();
    said.textContent = `${rows.length.toLocaleString("en")} of ${data.id.length.toLocaleString("en")} items; ${visible.length} shown.`;
    const left = Math.max(0, rows.length - PRINTED);
    status.dataset.paper = `${left ? `${left.toLocaleString("en")} more items are in the file, with` : "In the file:"} the texts and votes of each.`;
    more.hidden = visible.length === rows.length;
    columns.forEach(([name], at) => {
      const order = state.sort === name ? (state.down ? "descending" : "ascending") : "none";
      heads[at].setAttribute("aria-sort", order);
    });
    views.forEach(([button, view]) => {
      button.setAttribute("aria-pressed", String(state.sort === view.sort && state.down === view.down));
    });
  }

  const field = (name, label, input) => make("div", {}, make("label", { for: `by-${name}` }, label), input);
  const choice = (name, label, options) => {
    const change = (event) => update({ [name]: event.target.value });
    const all = [["", "all"], ...options].map(([value, text]) => make("option", { value }, text));
    return field(name, label, make("select", { id: `by-${name}`, onchange: change }, ...all));
  };
  const numbered = (names) => names.map((name, at) => [String(at), name]);
  const bound = (name, label, standard) => {
    const change = (event) => update({ [name]: event.target.value === "" ? standard : Number(event.target.value) });
    return field(name, label, make("input", { type: "number", min: 0, max: 100, step: "any", id: `by-${name}`, oninput: change }));
  };
  const type = (event) => update({ query: event.target.value.toLowerCase() });
  const search = make("input", { type: "search", id: "by-query", oninput: type });
  const form = make(
    "form",
    { "aria-label": "filter the items", onsubmit: (event) => event.preventDefault() },
    field("query", "search", search),
    choice("dataset", "dataset", numbered(data.datasets)),
    choice("label", "label", Object.entries(LABELS)),
    choice("decided", "called", ["consistent", "inconsistent", "undecided", "no vote"].map((name) => [name, name])),
    bound("from", "P, % from", 0),
    bound("to", "to", 100),
    choice("judge", "judge", numbered(data.voters)),
    choice("vote", "that judge's vote", Object.entries(VOTES)),
    ...views.map(([button]) => button),
  );
  const caption = make("caption", { "data-paper": "Items" }, make("span", {}, "Items. Click a head to sort, an item to open; arrow keys move"));
  const table = make("table", { class: "items" }, caption, make("thead", {}, make("tr", {}, ...heads)), body);
  const wide = make("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "items" }, table);
  root.append(form, status, make("div", { class: "split" }, make("div", {}, wide, more), reader));
  update({});
  // A bar of the histogram of P shows its items here, and several where the pointer is drawn over them.
  const plane = document.querySelector("#verdict [id$='-plane']");
  const bars = Number(plane?.closest("[data-bars]").dataset.bars);
  const barAt = (event) => {
    const { left, width } = plane.getBoundingClientRect();
    return Math.min(bars - 1, Math.max(0, Math.floor((bars * (event.clientX - left)) / width)));
  };
  const picture = plane?.closest("svg");
  let first = null;
  picture?.closest("figure").querySelector("figcaption").append(make("span", { class: "hint" }, ". Click a bar to list its claims."));
  picture?.addEventListener("pointerdown", (event) => (first = barAt(event)));
  picture?.addEventListener("pointerup", (event) => {
    if (first === null) return;
    const [low, high] = [first, barAt(event)].sort((a, b) => a - b);
    const range = { from: (100 * low) / bars, to: (100 * (high + 1)) / bars };
    first = null;
    for (const [name, value] of Object.entries(range)) document.getElementById(`by-${name}`).value = value;
    update(range);
    root.scrollIntoView();
  });
  // The lowest of the verdict open here.
  document.querySelectorAll("a[data-item]").forEach((link) =>
    link.addEventListener("click", () => {
      const at = data.id.findIndex((id, i) => id === link.dataset.item && data.datasets[data.dataset[i]] === link.dataset.dataset);
      if (at >= 0) open(at);
    }),
  );
}

const root = document.getElementById("browser");
if (root && data.id) browser(root);
