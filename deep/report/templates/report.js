// The item browser. It reads the JSON in the page and asks for nothing else.

const data = JSON.parse(document.getElementById("items-data").textContent);
const STEP = 50;
const LABELS = { 1: "consistent", 0: "inconsistent", "-1": "none" };

const claimOf = (i) => (data.claim ? data.claim[i] : null);
const sourceOf = (i) => (data.source && data.source[i] !== null ? data.sources[data.source[i]] : null);
const gapOf = (i) => (data.label[i] < 0 ? -1 : Math.abs(data.p[i] - data.label[i]));
const cast = (i) => [...data.votes[i]].filter((vote) => vote !== "-").length;
const yes = (i) => [...data.votes[i]].filter((vote) => vote === "1").length;

// The columns: a head, the text of a cell, and what it is sorted by.
const COLUMNS = {
  item: { head: "item", sort: (i) => data.id[i] },
  dataset: { head: "dataset", text: (i) => data.datasets[data.dataset[i]] },
  claim: { head: "claim", text: (i) => claimOf(i) ?? "", hidden: !data.claim },
  p: { head: "P, %", text: (i) => chance(data.p[i]), sort: (i) => data.p[i], number: true },
  interval: {
    head: "90 % interval",
    text: (i) => (data.low[i] === null ? "" : `${chance(data.low[i])} to ${chance(data.high[i])}`),
    sort: (i) => data.high[i] - data.low[i],
    number: true,
  },
  decided: { head: "called", text: (i) => LABELS[data.decided[i]] },
  label: { head: "label", text: (i) => LABELS[data.label[i]] },
  votes: { head: "votes for it", text: (i) => `${yes(i)} of ${cast(i)}`, sort: yes, number: true },
  split: { head: "judges disagree, %", text: (i) => percent(data.split[i]), sort: (i) => data.split[i], number: true },
  gap: {
    head: "P and label apart, %",
    text: (i) => (data.label[i] < 0 ? "" : percent(gapOf(i))),
    sort: gapOf,
    number: true,
  },
};

const VIEWS = {
  "judges disagree most": { sort: "split", down: true },
  "P and label disagree most: likely label errors": { sort: "gap", down: true },
  "P is least sure": { sort: "unsure", down: false },
};
const unsure = (i) => Math.abs(data.p[i] - 0.5);

const state = { query: "", dataset: "", label: "", decided: "", judge: "", vote: "", sort: "split", down: true, shown: STEP };
const haystack = [];

function textOf(i) {
  haystack[i] ??= [data.id[i], data.datasets[data.dataset[i]], claimOf(i), sourceOf(i)].join("\n").toLowerCase();
  return haystack[i];
}

function fits(i) {
  return (
    (state.dataset === "" || data.dataset[i] === Number(state.dataset)) &&
    (state.label === "" || data.label[i] === Number(state.label)) &&
    (state.decided === "" || data.decided[i] === Number(state.decided)) &&
    (state.judge === "" || state.vote === "" || data.votes[i][Number(state.judge)] === state.vote) &&
    (state.query === "" || textOf(i).includes(state.query))
  );
}

function found() {
  const column = COLUMNS[state.sort];
  const key = column ? (column.sort ?? column.text) : unsure;
  const keys = data.id.map((_, i) => key(i));
  const compare = (a, b) => (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0);
  const rows = data.id.map((_, i) => i).filter(fits);
  return rows.sort((a, b) => (state.down ? compare(b, a) : compare(a, b)) || a - b);
}

function detail(i) {
  return judged({
    id: data.id[i], claim: claimOf(i), source: sourceOf(i), p: data.p[i], low: data.low[i], high: data.high[i],
    voters: data.voters, votes: data.votes[i], said: data.said?.[i] ?? {},
  });
}

function itemRows(i, columns) {
  const id = `item-${i}`;
  const below = make("tr", { id, hidden: "" }, make("td", { colspan: columns.length }));
  const button = make("button", { type: "button", "aria-expanded": "false", "aria-controls": id }, make("bdi", {}, data.id[i]));
  button.addEventListener("click", () => {
    below.hidden = !below.hidden;
    button.setAttribute("aria-expanded", String(!below.hidden));
    if (!below.hidden && !below.firstChild.firstChild) below.firstChild.append(detail(i));
  });
  const cells = columns.slice(1).map(([name, column]) =>
    make("td", { class: column.number ? "number" : name }, make("bdi", {}, column.text(i))),
  );
  return [make("tr", {}, make("th", { scope: "row" }, button), ...cells), below];
}

function browser(root) {
  const columns = Object.entries(COLUMNS).filter(([, column]) => !column.hidden);
  const status = make("p", { role: "status" });
  const body = make("tbody");
  const heads = columns.map(([name, column]) => {
    const sort = () => update({ sort: name, down: state.sort === name ? !state.down : Boolean(column.number) });
    const attributes = { scope: "col", class: column.number ? "number" : "" };
    return make("th", attributes, make("button", { type: "button", onclick: sort }, column.head));
  });
  const more = make("button", { type: "button", class: "more", onclick: () => update({ shown: state.shown + STEP }) }, `Show ${STEP} more`);
  const views = Object.entries(VIEWS).map(([name, view]) => {
    const press = () => update(view);
    return [make("button", { type: "button", onclick: press }, name), view];
  });

  function update(change) {
    Object.assign(state, { shown: STEP }, change);
    const rows = found();
    const visible = rows.slice(0, state.shown);
    body.replaceChildren(...visible.flatMap((i) => itemRows(i, columns)));
    status.textContent = `${rows.length.toLocaleString("en")} of ${data.id.length.toLocaleString("en")} items; ${visible.length} shown.`;
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
  const type = (event) => update({ query: event.target.value.toLowerCase() });
  const search = make("input", { type: "search", id: "by-query", oninput: type });
  const form = make(
    "form",
    { "aria-label": "filter the items", onsubmit: (event) => event.preventDefault() },
    field("query", "search", search),
    choice("dataset", "dataset", numbered(data.datasets)),
    choice("label", "label", Object.entries(LABELS)),
    choice("decided", "called", [["1", LABELS[1]], ["0", LABELS[0]]]),
    choice("judge", "judge", numbered(data.voters)),
    choice("vote", "that judge's vote", Object.entries(VOTES)),
    ...views.map(([button]) => button),
  );
  const caption = make("caption", {}, "Items; a head sorts, an item opens");
  const table = make("table", { class: "items" }, caption, make("thead", {}, make("tr", {}, ...heads)), body);
  const wide = make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "items" }, table);
  root.append(form, status, wide, more);
  update({});
}

const root = document.getElementById("browser");
if (root && data.id) browser(root);

// Paper shows what is folded.
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((fold) => { fold.open = true; }));
