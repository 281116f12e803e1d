"use strict";

// What all pages share. Every text of others becomes a text of the page, never markup.

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

// A sentence of deep's own, in which what stands between backticks is code; no line ends between a number and its %.
const coded = (text) => text.replace(/(\d) %/g, "$1\u00a0%").split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part));

// A command, of which no word is broken at a hyphen: none but one that is longer than the line.
const wholeWords = (command) => command.split(/( )/).map((word) => (word === " " ? word : make("span", { class: "word" }, word)));

// An id, which is broken at a hyphen only where it is long.
const idText = (id) => make("bdi", id.length > 16 ? {} : { class: "whole" }, id);

const percent = (share) => (share === null ? "" : (100 * share).toFixed(1));
const chance = (p) => (p === null ? "" : p < 0.0005 ? "<0.1" : p >= 0.9995 ? ">99.9" : percent(p));

// A text with the passages marked; they may overlap. Evidence against is told apart from evidence for by line and color.
function marked(text, passages) {
  const cuts = [...new Set([0, text.length, ...passages.flatMap((p) => [p.start, p.end])])].sort((a, b) => a - b);
  return cuts.slice(1).map((end, at) => {
    const start = cuts[at];
    const piece = text.slice(start, end);
    const over = passages.filter((p) => p.start <= start && end <= p.end);
    const sides = [...new Set(over.map((p) => p.side))].sort().join(" ");
    return over.length ? make("mark", { class: sides, title: SIDES[sides] ?? "for and against" }, piece) : piece;
  });
}

const SIDES = { for: "of a judge that says consistent", against: "of a judge that says inconsistent", neither: "of a judge without a vote" };
const sideOf = (vote) => ({ 1: "for", 0: "against" })[vote] ?? "neither";

function drawn(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// P on a line from 0 to 1, with its interval where there is one, and the limit from which on a claim is called
// consistent: a picture that also says its numbers.
function gauge(p, low = null, high = null, limit = 0.5) {
  const interval = low === null ? "" : `, 90 % interval ${chance(low)} to ${chance(high)} %`;
  const words = `P(consistent) ${chance(p)} %${interval}`;
  const at = (share) => 8 + 300 * share;
  const line = drawn("rect", { class: "track", x: 8, y: 12, width: 300, height: 8, rx: 4 });
  const band = low === null ? [] : [drawn("rect", { class: "band", x: at(low), y: 10, width: Math.max(1, 300 * (high - low)), height: 12, rx: 4 })];
  const middle = drawn("line", { class: "middle", x1: at(limit), x2: at(limit), y1: 8, y2: 24 });
  const hand = drawn("rect", { class: "hand", x: at(p) - 3, y: 4, width: 6, height: 24, rx: 3 });
  const picture = drawn("svg", { viewBox: "0 0 316 32", width: 316, height: 32, role: "img", "aria-label": words }, line, ...band, middle, hand);
  return make("figure", { class: "gauge" }, picture, make("figcaption", { "aria-hidden": "true" }, words));
}

const VOTES = { 1: "consistent", 0: "inconsistent", "-": "no vote" };
const CALLED = ["inconsistent", "consistent"];

// The state of an item: consistent, inconsistent, or undecided with its leaning where the interval holds the threshold.
const stateOf = (decided, sure) => (decided === null ? "no vote" : sure ? CALLED[decided] : "undecided");
const stateWords = (decided, sure) =>
  decided === null ? "no judge voted" : sure ? CALLED[decided] : `undecided, leaning ${CALLED[decided]}`;

function verdictLine(item) {
  const interval = item.low === null ? "" : ` (${chance(item.low)} to ${chance(item.high)})`;
  const words = stateWords(item.decided, item.sure);
  return make("p", { class: `called ${stateOf(item.decided, item.sure)}` }, make("strong", {}, `${chance(item.p)} %`), `${interval}: ${words}`);
}

// The text of a passage, which an item holds once where it stands in the source or the claim.
function quoted(item, passage) {
  return passage.text ?? (passage.where === "claim" ? item.claim : item.source).slice(passage.start, passage.end);
}

function textBlock(item, where, title, passages) {
  const shown = passages.filter((p) => p.where === where);
  const extra = where === "source" ? { tabindex: "0", role: "group", "aria-label": `source of ${item.id}` } : {};
  return [make("h3", {}, title), make("div", { class: `text ${where}`, dir: "auto", ...extra }, ...marked(item[where], shown))];
}

function judgeRow(item, judge, pressed, choose) {
  const said = item.said[judge];
  const passages = said?.passages ?? [];
  const told = passages.map((p) =>
    make("li", {}, make("bdi", {}, `${p.verdict ? `${p.verdict}: ` : ""}${quoted(item, p)}`, p.about ? ` (about: ${p.about})` : "")),
  );
  const mark = make("button", { type: "button", "aria-pressed": String(pressed), onclick: choose }, "mark");
  mark.setAttribute("aria-label", `mark the evidence of ${item.voters[judge]}`);
  const vote = said?.reason ? `no vote (${said.reason})` : said?.grade ?? VOTES[item.votes[judge]];
  return make(
    "tr",
    { class: sideOf(item.votes[judge]) },
    make("th", { scope: "row" }, make("bdi", { title: item.voters[judge] }, item.short?.[judge] ?? item.voters[judge])),
    make("td", { class: "vote" }, vote),
    make("td", {}, make("div", { class: "said", dir: "auto" }, said?.rationale ?? "")),
    make("td", {}, ...(told.length ? [make("ul", {}, ...told)] : [])),
    make("td", {}, ...(passages.some((p) => p.where) ? [mark] : [])),
  );
}

// The prompts, replies and repairs of the judges, where the page holds them: below the votes, where there is room.
function transcripts(item) {
  const said = Object.keys(item.said).filter((judge) => item.said[judge].transcript);
  return said.map((judge) => {
    const turns = item.said[judge].transcript.flatMap(([role, text]) => [make("dt", {}, role), make("dd", { class: "said", dir: "auto" }, text)]);
    return folded(`Prompt and reply of ${item.short[judge]}`, make("dl", {}, ...turns));
  });
}

const SHOWN_JUDGES = 15;

function judgeTable(item, rows) {
  const told = Object.values(item.said).some((said) => said.rationale || said.passages?.length);
  const heads = ["judge", "vote", "rationale", "evidence", "in the text"].slice(0, told ? 5 : 2);
  rows.forEach((row) => [...row.children].slice(heads.length).forEach((cell) => cell.remove()));
  const head = make("tr", {}, ...heads.map((name) => make("th", { scope: "col" }, name)));
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  return make("div", { class: "wide votes", tabindex: "0", role: "group", "aria-label": `votes on ${item.id}` }, table);
}

// Names without the hash of their version, where each is still the name of one judge.
function shortNames(names) {
  const plain = names.map((name) => name.replace(/@[0-9a-f]{6,}(?=\/|$)/, ""));
  return plain.map((name, at) => (plain.filter((other) => other === name).length === 1 ? name : names[at]));
}

// An item with its P, its texts, and what each judge said, which is marked in the texts: all of them, or one that is
// chosen. `votes` is a character a judge: 1, 0 or -; `said` holds reason, grade, rationale and passages by number of the judge.
function judged(item) {
  const box = make("div", {});
  const every = item.voters.map((_, judge) => judge);
  const cast = every.filter((judge) => item.votes[judge] !== "-");
  const silent = every.filter((judge) => item.votes[judge] === "-");
  const passagesOf = (judge) => (item.said[judge]?.passages ?? []).map((p) => ({ ...p, side: sideOf(item.votes[judge]) }));
  item.short = shortNames(item.voters);
  const draw = (chosen) => {
    const passages = (chosen === null ? every : [chosen]).flatMap(passagesOf);
    const parts = item.p === null ? [] : [verdictLine(item), gauge(item.p, item.low, item.high, item.limit ?? undefined)];
    if (item.question) parts.push(...textBlock(item, "question", "Question", []));
    if (item.claim !== null) parts.push(...textBlock(item, "claim", "Claim", passages));
    if (item.source !== null) parts.push(...textBlock(item, "source", "Source", passages));
    const row = (judge) =>
      judgeRow(item, judge, judge === chosen, () => {
        draw(judge === chosen ? null : judge);
        box.querySelector(`button[aria-label="${CSS.escape(`mark the evidence of ${item.voters[judge]}`)}"]`)?.focus();
      });
    const votes = cast.length ? [judgeTable(item, cast.slice(0, SHOWN_JUDGES).map(row))] : [make("p", {}, "No judge voted.")];
    if (cast.length > SHOWN_JUDGES) votes.push(folded(`Show all ${cast.length} votes`, judgeTable(item, cast.slice(SHOWN_JUDGES).map(row))));
    if (silent.length) votes.push(folded(`${silent.length} ${silent.length === 1 ? "judge" : "judges"} gave no vote`, judgeTable(item, silent.map(row))));
    box.replaceChildren(...parts, make("h3", {}, "Votes"), ...votes, ...transcripts(item));
  };
  draw(null);
  return box;
}

function folded(title, ...children) {
  return make("details", {}, make("summary", {}, title), ...children);
}
