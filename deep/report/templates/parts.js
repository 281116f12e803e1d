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

const percent = (share) => (share === null ? "" : (100 * share).toFixed(1));
const chance = (p) => (p === null ? "" : p < 0.0005 ? "<0.1" : p >= 0.9995 ? ">99.9" : percent(p));

// A text with the passages marked; they may overlap.
function marked(text, passages) {
  const cuts = [...new Set([0, text.length, ...passages.flatMap((p) => [p.start, p.end])])].sort((a, b) => a - b);
  return cuts.slice(1).map((end, at) => {
    const start = cuts[at];
    const piece = text.slice(start, end);
    return passages.some((p) => p.start <= start && end <= p.end) ? make("mark", {}, piece) : piece;
  });
}

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

// The text of a passage, which an item holds once where it stands in the source or the claim.
function quoted(item, passage) {
  return passage.text ?? (passage.where === "claim" ? item.claim : item.source).slice(passage.start, passage.end);
}

function textBlock(item, where, title, passages) {
  const shown = passages.filter((p) => p.where === where);
  const extra = where === "source" ? { tabindex: "0", role: "region", "aria-label": `source of ${item.id}` } : {};
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
  const vote = said?.reason ? `no vote (${said.reason})` : VOTES[item.votes[judge]];
  return make(
    "tr",
    {},
    make("th", { scope: "row" }, make("bdi", {}, item.voters[judge])),
    make("td", {}, vote),
    make("td", {}, make("div", { class: "said", dir: "auto" }, said?.rationale ?? "")),
    make("td", {}, ...(told.length ? [make("ul", {}, ...told)] : [])),
    make("td", {}, ...(passages.some((p) => p.where) ? [mark] : [])),
  );
}

// An item with its P, its texts, and what each judge said, which is marked in the texts: all of them, or one that is
// chosen. `votes` is a character a judge: 1, 0 or -; `said` holds reason, rationale and passages by number of the judge.
function judged(item) {
  const box = make("div", {});
  const draw = (chosen) => {
    const judges = chosen === null ? Object.keys(item.said) : [chosen];
    const passages = judges.flatMap((judge) => item.said[judge]?.passages ?? []);
    const parts = item.p === null ? [] : [gauge(item.p, item.low, item.high, item.limit ?? undefined)];
    if (item.claim !== null) parts.push(...textBlock(item, "claim", "Claim", passages));
    if (item.source !== null) parts.push(...textBlock(item, "source", "Source", passages));
    const heads = ["judge", "vote", "rationale", "evidence", "in the text"];
    const rows = item.voters.map((_, judge) =>
      judgeRow(item, judge, String(judge) === chosen, () => {
        draw(String(judge) === chosen ? null : String(judge));
        box.querySelectorAll(":scope tbody tr")[judge].querySelector("button").focus();
      }),
    );
    const head = make("tr", {}, ...heads.map((name) => make("th", { scope: "col" }, name)));
    const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
    const wide = { class: "wide", tabindex: "0", role: "region", "aria-label": `votes on ${item.id}` };
    box.replaceChildren(...parts, make("h3", {}, "Votes"), make("div", wide, table));
  };
  draw(null);
  return box;
}
