"use strict";
// What both pages are made of.
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
// Marks that turn the direction of what follows, beyond what they came in, are shown as what they are.
const plain = (text) => String(text).replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (mark) => `\\u${mark.charCodeAt(0).toString(16)}`);
const el = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") node.className = value; else node.setAttribute(key, value);
  }
  for (const child of children) node.append(child instanceof Node ? child : plain(child));
  return node;
};
const svg = (name, attributes = {}, text) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
};
const times = (value) => (value === undefined || value === null ? "" : value.toFixed(value < 10 ? 3 : 1) + "x");
// A speed-up with its interval, as scoring.report_text.speed_text: a test compares both.
const ratio = (value, scale) => value.toFixed(scale > 0.9 && scale < 1.1 ? 3 : value < 0.1 ? 1 - Math.floor(Math.log10(value)) : value < 100 ? 2 : 0);
const speed = (item) => {
  if (item.speedup === undefined || item.speedup === null) return "";
  if (item.low === undefined || item.low === null) return ratio(item.speedup, item.speedup) + "x, no interval";
  // Exact times, as those of a synthetic landscape, have no interval.
  if (item.low === item.high && item.low === item.speedup && item.speedup !== 1) return ratio(item.speedup, item.speedup) + "x";
  const fine = 1 + Math.max(Math.abs(item.low - 1), Math.abs(item.high - 1));
  const estimate = ratio(item.speedup, fine) + "x ", ends = `[${ratio(item.low, fine)}, ${ratio(item.high, fine)}]`;
  // What decides is scoring.intervals.decide: a wide interval has to exclude 1 by more.
  const wide = item.high / item.low >= (1 + Number("{{NOISY_HALF_WIDTH}}")) ** 2, stretch = wide ? Number("{{STRETCH}}") : 1;
  const middle = Math.log(item.speedup), faster = middle > stretch * (middle - Math.log(item.low)), slower = middle < -stretch * (Math.log(item.high) - middle);
  if (faster || slower) return estimate + ends;
  return item.low <= 1 && item.high >= 1 ? "no measurable difference " + ends : estimate + ends + ", {{NOT_CERTAIN}}";
};
const COLOURS = ["#0b6bcb", "#c2410c", "#15803d", "#a21caf", "#a16207", "#0e7490"];
const share = (value) => (value === null || value === undefined ? "" : (100 * value).toFixed(1) + " %");
// An empty plot: vertical lines at `xs`, horizontal ones at `ys`, each with its place and its text.
const frame = (label, xs, ys, xText, yText, width = 460, height = 280, right = 440) => {
  const node = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label }), floor = height - 45;
  node.append(svg("title", {}, label));
  for (const [x, text] of xs) { node.append(svg("line", { x1: x, x2: x, y1: 20, y2: floor, class: "grid" }), svg("text", { x, y: floor + 17, "text-anchor": "middle" }, text)); }
  for (const [y, text] of ys) { node.append(svg("line", { x1: 50, x2: right, y1: y, y2: y, class: "grid" }), svg("text", { x: 44, y: y + 4, "text-anchor": "end" }, text)); }
  node.append(svg("text", { x: (50 + right) / 2, y: height - 8, "text-anchor": "middle" }, xText), svg("text", { x: 50, y: 14 }, yText));
  return node;
};
// The parts of an id, between which a line may break.
const address = (text) => text.split(/(?<=[/:])/).flatMap((part) => [el("span", { class: "part" }, part), el("wbr")]);
// A time in microseconds, in the unit that leaves one to three digits before the point.
const scaled = (us) => (us < 1000 ? `${us.toPrecision(3)} us` : us < 1e6 ? `${(us / 1000).toPrecision(3)} ms` : `${(us / 1e6).toPrecision(3)} s`);
// Explanations of headings, by the text of the heading; a page fills them in.
const TERMS = {};
// The glossary at the end of a page: opened, it shows the terms that the page uses.
const usesTerm = (text, term) => {
  const word = term.replace(/ \(.*\)$/, "").replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace("fast_p", "fast_[p\\d.]+");
  return new RegExp(`(?<![\\w-])${word}(?:e?s)?(?![\\w-])`, "i").test(text);
};
for (const glossary of document.querySelectorAll("footer details")) glossary.addEventListener("toggle", () => {
  const text = ["header", "main"].map((name) => document.querySelector(name).innerText).join(" ");
  for (const term of glossary.querySelectorAll("dt")) term.hidden = term.nextElementSibling.hidden = !usesTerm(text, term.textContent);
});
const table = (head, rows, right = []) => {
  const made = el("table");
  made.append(el("thead", {}, el("tr", {}, ...head.map((name, i) => el("th", { ...(right.includes(i) ? { class: "n" } : {}), ...(TERMS[name] ? { title: TERMS[name], class: (right.includes(i) ? "n " : "") + "term" } : {}) }, name)))));
  const body = el("tbody");
  for (const row of rows) body.append(el("tr", {}, ...row.map((cell, i) => el("td", right.includes(i) ? { class: "n" } : {}, cell))));
  made.append(body);
  return el("div", { class: "wide" }, made);
};
// As a shell takes it.
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
// Two texts by their longest common lines.
const difference = (a, b) => {
  const left = a.split("\n").slice(0, 800), right = b.split("\n").slice(0, 800), n = left.length, m = right.length;
  const best = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--) for (let j = m - 1; j >= 0; j--) best[i][j] = left[i] === right[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  const made = [];
  let i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && left[i] === right[j]) { made.push(["", "  " + left[i]]); i++; j++; }
    else if (j >= m || (i < n && best[i + 1][j] >= best[i][j + 1])) made.push(["del", "- " + left[i++]]);
    else made.push(["add", "+ " + right[j++]]);
  }
  return made;
};
