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

// P on a line from 0 to 1, with its interval where there is one: a picture that also says its numbers.
function gauge(p, low = null, high = null) {
  const interval = low === null ? "" : `, 90 % interval ${chance(low)} to ${chance(high)} %`;
  const words = `P(consistent) ${chance(p)} %${interval}`;
  const at = (share) => 8 + 300 * share;
  const line = drawn("rect", { class: "track", x: 8, y: 12, width: 300, height: 8, rx: 4 });
  const band = low === null ? [] : [drawn("rect", { class: "band", x: at(low), y: 10, width: Math.max(1, 300 * (high - low)), height: 12, rx: 4 })];
  const middle = drawn("line", { class: "middle", x1: at(0.5), x2: at(0.5), y1: 8, y2: 24 });
  const hand = drawn("rect", { class: "hand", x: at(p) - 3, y: 4, width: 6, height: 24, rx: 3 });
  const picture = drawn("svg", { viewBox: "0 0 316 32", width: 316, height: 32, role: "img", "aria-label": words }, line, ...band, middle, hand);
  return make("figure", { class: "gauge" }, picture, make("figcaption", { "aria-hidden": "true" }, words));
}
