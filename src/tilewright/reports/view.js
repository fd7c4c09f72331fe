(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const COLOURS = { correct: "#15803d", incorrect: "#c2410c", failed: "#a16207", rejected: "#a21caf", unjudged: "#6b7280" };
const rows = [];
let chosen = null;

// The climb: one problem, its turns from left to right, its speed-ups upwards
for (const [name, colour] of Object.entries(COLOURS)) {
  const mark = el("i"); mark.style.background = colour;
  $("legend").append(el("span", {}, mark, name));
}
const known = new Set(), seen = new Set();
const MOST_DRAWN = 1500;
const climb = () => {
  const own = rows.filter((row) => row.problem === $("problem").value).slice(-MOST_DRAWN);
  const last = Math.max(...own.map((row) => row.turn), 1), step = Math.max(Math.min(700 / last, 60), 12);
  const best = Math.max(...own.map((row) => row.speedup || 0), 2), low = -2, high = Math.log2(best) + 0.3;
  const x = (row) => 60 + row.turn * step, y = (row) => row.speedup ? 230 - 200 * (Math.max(Math.log2(row.speedup), low) - low) / (high - low) : 252 + 4 * (row.sample % 4);
  const width = 90 + last * step;
  const node = svg("svg", { viewBox: `0 0 ${width} 290`, width, height: 290, role: "img", "aria-label": "Speed-up of each turn; what was not correct lies below the line" });
  for (let power = low; power <= high; power++) {
    const at = 230 - 200 * (power - low) / (high - low);
    node.append(svg("line", { x1: 50, x2: width - 10, y1: at, y2: at, class: "grid" }), svg("text", { x: 44, y: at + 4, "text-anchor": "end" }, 2 ** power + "x"));
  }
  node.append(svg("text", { x: 60, y: 284 }, "turn 1"), svg("text", { x: width - 12, y: 284, "text-anchor": "end" }, "turn " + (last + 1)));
  const places = new Map(own.map((row) => [row.n, row]));
  for (const row of own) for (const parent of row.parents) {
    const from = places.get(parent);
    if (from) node.append(svg("line", { x1: x(from), y1: y(from), x2: x(row), y2: y(row), stroke: "currentColor", opacity: 0.25 }));
  }
  for (const row of own) {
    const dot = svg("circle", { cx: x(row), cy: y(row), r: row.marks.includes("best so far") ? 6 : 4, fill: COLOURS[row.verdict] || "#6b7280", "data-n": row.n, class: chosen === row.n ? "chosen" : "" });
    dot.append(svg("title", {}, `${row.id}: ${row.verdict} ${speed(row)}`));
    dot.addEventListener("click", () => open(row.n));
    node.append(dot);
  }
  $("tree").replaceChildren(node);
};

// The list
const PAGE = 200;
let shown = PAGE;
const list = () => {
  const mark = $("mark").value, verdict = $("verdict").value, text = $("find").value.toLowerCase();
  const found = rows.filter((row) => (!mark || row.marks.includes(mark)) && (!verdict || row.verdict === verdict) && (!text || `${row.id} ${row.reason || ""}`.toLowerCase().includes(text)));
  $("rows").tBodies[0].replaceChildren(...found.slice(0, shown).map((row) => {
    const button = el("button", { type: "button", class: "row" }, row.id);
    button.addEventListener("click", () => open(row.n));
    const why = [...row.marks, row.reason || ""].filter(Boolean).join("; ");
    return el("tr", chosen === row.n ? { class: "chosen" } : {}, el("td", {}, button), el("td", { class: "verdict " + row.verdict }, row.verdict), el("td", { class: "n" }, speed(row)), el("td", { class: "n" }, row.tokens ?? ""), el("td", {}, why));
  }));
  $("count").textContent = `${Math.min(shown, found.length)} of ${found.length}`;
  $("more").hidden = shown >= found.length;
};

// One turn
const source = (text) => el("pre", { class: "source", tabindex: 0 }, text);
const folded = (title, ...content) => el("details", {}, el("summary", {}, title), ...content);
const draw = (turn) => {
  const row = rows[turn.n], parts = [];
  parts.push(el("p", {}, el("b", { class: "verdict " + row.verdict }, row.verdict), " ", speed(row), row.reason ? " " + row.reason : "", row.marks.length ? ` (${row.marks.join(", ")})` : ""));
  const report = turn.report;
  if (report) {
    if (report.message) parts.push(source(report.message));
    for (const finding of report.findings) parts.push(el("p", {}, `${finding.code}: ${finding.summary}`), el("code", {}, JSON.stringify(finding.evidence)));
  }
  if (report && report.comparisons.length) {
    const before = new Map((turn.parent ? turn.parent.comparisons : []).map((item) => [item.case + item.baseline, item]));
    parts.push(el("h3", {}, "What was measured, and what changed"), table(["case", "baseline", "it took", "this took", "speed-up", "before"], report.comparisons.map((item) => {
      const then = before.get(item.case + item.baseline);
      return [item.case, item.baseline, item.reference_us.toFixed(2) + " us", item.candidate_us.toFixed(2) + " us", speed(item), then ? speed(then) : ""];
    })));
    for (const sentence of report.advice) parts.push(el("p", {}, sentence));
  }
  parts.push(el("h3", {}, "What the model is told of it"), source(turn.feedback || "nothing"));
  parts.push(el("h3", {}, "Code"), source(turn.code || "there is none"));
  if (turn.parent) {
    const lines = difference(turn.parent.code, turn.code).map(([kind, text]) => el("span", kind ? { class: kind } : {}, text + "\n"));
    parts.push(folded("Against the code of " + rows[turn.parent.n].id, el("pre", { class: "source", id: "changes", tabindex: 0 }, ...lines)));
  }
  if (turn.reasoning) parts.push(folded("What it thought aloud", source(turn.reasoning)));
  parts.push(folded("Reply" + (turn.model ? " of " + turn.model : ""), source(turn.reply)));
  const said = turn.prompt.map((message) => el("div", { class: "said" }, el("b", {}, message.role), source(message.text)));
  parts.push(folded(`Prompt (${turn.prompt.length} messages${turn.prompt_as_recorded ? "" : "; another version made it, so it may have read differently"})`, ...said));
  if (row.parents.length) {
    const back = el("button", { type: "button" }, "Go to its parent, " + rows[row.parents[0]].id);
    back.addEventListener("click", () => open(row.parents[0]));
    parts.push(el("p", {}, back));
  }
  $("h-one").textContent = row.id;
  $("detail").replaceChildren(...parts);
};
const open = async (n) => {
  chosen = n;
  $("one").hidden = false;
  if (rows[n].problem !== $("problem").value) $("problem").value = rows[n].problem;
  climb(); list();
  let turn = data.whole[n];
  if (!turn && data.live) {
    const answer = await fetch("turn.json?n=" + n);
    if (answer.ok) turn = await answer.json();
  }
  if (turn) draw(turn);
  else { $("h-one").textContent = rows[n].id; $("detail").replaceChildren(el("p", {}, "It is not in this file. All turns are shown by "), el("code", {}, "tilewright view " + data.about.folder)); }
  $("h-one").focus();
};

// New turns
const take = (more) => {
  for (const row of more) {
    rows.push(row);
    if (!known.has(row.problem)) { known.add(row.problem); $("problem").append(el("option", { value: row.problem }, row.problem)); }
    if (!seen.has(row.verdict)) { seen.add(row.verdict); $("verdict").append(el("option", { value: row.verdict }, row.verdict)); }
  }
  const tokens = rows.reduce((sum, row) => sum + (row.tokens || 0), 0), usd = rows.reduce((sum, row) => sum + (row.usd || 0), 0);
  $("about").textContent = `${data.about.problems} by ${data.about.name}, judged on ${data.about.device}; ${rows.length} turns, ${tokens} tokens${usd ? `, ${usd.toFixed(2)} USD` : ""}`;
  climb(); list();
};
const poll = async () => {
  try {
    const answer = await fetch("rows.json?after=" + rows.length);
    if (answer.ok) { const more = await answer.json(); if (more.length) take(more); }
  } catch { $("about").textContent += " (the server is gone)"; return; }
  setTimeout(poll, 2000);
};
$("problem").addEventListener("input", climb);
for (const id of ["mark", "verdict", "find"]) $(id).addEventListener("input", () => { shown = PAGE; list(); });
$("more").addEventListener("click", () => { shown += PAGE; list(); });
(async () => {
  if (data.live) await poll(); else take(data.rows);
  document.body.dataset.ready = "yes";
})();
})();
