(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const COLOURS = { correct: "#15803d", incorrect: "#c2410c", failed: "#a16207", rejected: "#a21caf", unjudged: "#6b7280", draft: "#0e7490", say: "#6b7280", choose: "#6b7280" };
// A shape for each verdict, so that colour is not needed to tell them apart.
const SHAPES = {
  correct: (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
  incorrect: (r) => `M0,${-r}L${r},${r}L${-r},${r}Z`,
  failed: (r) => `M${-r},${-r}H${r}V${r}H${-r}Z`,
  rejected: (r) => `M0,${-1.4 * r}L${1.4 * r},0L0,${1.4 * r}L${-1.4 * r},0Z`,
  draft: (r) => `M${-r},${-r}L${r},0L${-r},${r}Z`,
};
const other = (r) => `M${-r},0H${r}M0,${-r}V${r}`;
const shape = (verdict, x, y, r, more = {}) => svg("path", { d: (SHAPES[verdict] || other)(r), transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`, fill: COLOURS[verdict] || "#6b7280", ...(SHAPES[verdict] ? {} : { stroke: "#6b7280", "stroke-width": 2 }), ...more });
const rows = [], byNumber = new Map(), children = new Map();
let chosen = null;

const { strategies, samples } = data.about;
const trajectory = (row) => {
  const place = Math.floor(row.sample / samples);
  if (strategies.length > 1 && place < strategies.length) return `${strategies[place]}, seed ${row.sample % samples}`;
  return strategies.length === 1 && samples > 1 ? `seed ${row.sample}` : String(row.sample);
};
const ofTrajectory = (row) => $("trajectory").value === "" || row.sample === Number($("trajectory").value);

// The climb: one problem, its turns from left to right, its speed-ups upwards
for (const [name, colour] of Object.entries(COLOURS).slice(0, 6)) {
  const mark = svg("svg", { viewBox: "-7 -7 14 14", width: 14, height: 14, "aria-hidden": "true" });
  mark.append(shape(name, 0, 0, 5));
  $("legend").append(el("span", {}, mark, name === "unjudged" ? " no verdict" : " " + name));
}
const known = new Set(), seen = new Set(), drawnSamples = new Set();
const MOST_DRAWN = 1500, MOST_JOINED = 500;
const TURNING = ["best so far", "new leader", "leader lost", "first correct", "hack"];
// All turns if they fit; else an even selection of those that changed the course of a search.
const drawn = (all) => {
  if (all.length <= MOST_DRAWN) return all;
  const turning = all.filter((row) => row.n === chosen || TURNING.some((mark) => row.marks.includes(mark)));
  const kept = turning.length ? turning : all, stride = Math.ceil(kept.length / MOST_DRAWN);
  return kept.filter((row, place) => row.n === chosen || place % stride === 0);
};
const climb = () => {
  const all = rows.filter((row) => row.problem === $("problem").value && ofTrajectory(row)), own = drawn(all);
  $("drawn").textContent = all.length > own.length ? `Of ${all.length} turns the plot shows ${own.length} that changed the course of their trajectory. Choose one trajectory to see all of its turns.` : "";
  let last = 1, best = 2;
  for (const row of own) { last = Math.max(last, row.turn); best = Math.max(best, row.speedup || 0); }
  const step = Math.max(Math.min(1000 / last, 60), 5), low = -2, high = Math.log2(best) + 0.3;
  const x = (row) => 60 + row.turn * step, y = (row) => row.speedup ? 230 - 200 * (Math.max(Math.log2(row.speedup), low) - low) / (high - low) : 252 + 4 * (row.sample % 4);
  const width = 90 + last * step;
  const node = svg("svg", { viewBox: `0 0 ${width} 290`, width, height: 290, role: "img", "aria-label": "Speed-up of each turn; turns without one lie below the line. The list of turns has the same content." });
  for (let power = low; power <= high; power++) {
    const at = 230 - 200 * (power - low) / (high - low);
    node.append(svg("line", { x1: 50, x2: width - 10, y1: at, y2: at, class: "grid" }), svg("text", { x: 44, y: at + 4, "text-anchor": "end" }, 2 ** power + "x"));
  }
  node.append(svg("text", { x: 60, y: 284 }, "turn 1"), svg("text", { x: width - 12, y: 284, "text-anchor": "end" }, "turn " + (last + 1)));
  const places = new Map(own.map((row) => [row.n, row]));
  // So many lines would hide what they join.
  if (own.length <= MOST_JOINED) for (const row of own) for (const parent of row.parents) {
    const from = places.get(parent);
    if (from) node.append(svg("line", { x1: x(from), y1: y(from), x2: x(row), y2: y(row), stroke: "currentColor", opacity: 0.25 }));
  }
  for (const row of own) {
    const large = row.marks.includes("best so far") || row.marks.includes("new leader");
    const dot = shape(row.verdict, x(row), y(row), large ? 6 : 4, { "data-n": row.n, class: "dot" + (chosen === row.n ? " chosen" : "") });
    dot.append(svg("title", {}, `${row.id}: ${row.verdict} ${speed(row)} ${row.marks.join(", ")}`));
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
  const found = rows.filter((row) => ofTrajectory(row) && (!mark || row.marks.includes(mark)) && (!verdict || row.verdict === verdict) && (!text || `${row.id} ${row.operator || ""} ${row.reason || ""}`.toLowerCase().includes(text)));
  $("rows").tBodies[0].replaceChildren(...found.slice(0, shown).map((row) => {
    const button = el("button", { type: "button", class: "row" }, ...address(row.id));
    button.addEventListener("click", () => open(row.n));
    const why = [...row.marks, row.reason || ""].filter(Boolean).join("; ");
    const by = [row.operator, row.role === "measure" ? "trial" : ""].filter(Boolean).join(", ");
    const whose = strategies.length > 1 ? [el("p", { class: "of" }, trajectory(row))] : [];
    return el("tr", chosen === row.n ? { class: "chosen" } : {}, el("td", {}, button, ...whose), el("td", { class: "verdict " + row.verdict }, row.verdict), el("td", { class: "n" }, speed(row)), el("td", {}, by), el("td", { class: "n" }, row.tokens ?? ""), el("td", {}, why));
  }));
  $("count").textContent = `${Math.min(shown, found.length)} of ${found.length}`;
  $("more").hidden = shown >= found.length;
};

// One turn
const draw = (turn) => {
  $("h-one").textContent = byNumber.get(turn.n).id;
  $("detail").replaceChildren(...turnParts(turn, byNumber, children, trajectory));
};
const open = async (n) => {
  const row = byNumber.get(n);
  if (!row) return;
  chosen = n;
  $("one").hidden = false;
  $("problem").value = row.problem;
  if (!ofTrajectory(row)) $("trajectory").value = row.sample;
  climb(); list();
  if (location.hash !== "#turn-" + n) history.pushState(null, "", "#turn-" + n);
  let turn = data.whole[n];
  if (!turn && data.live) {
    const answer = await fetch("turn.json?n=" + n);
    if (answer.ok) turn = await answer.json();
  }
  if (chosen !== n) return;
  if (turn) draw(turn);
  else { $("h-one").textContent = row.id; $("detail").replaceChildren(el("p", {}, "It is not in this file. All turns are shown by "), el("code", {}, "tilewright view " + data.about.folder)); }
  $("h-one").focus();
};
// A link to a turn, also the one in the address of the page, or one step back in its history.
const follow = () => {
  const found = /^#turn-(\d+)$/.exec(location.hash);
  if (found && Number(found[1]) !== chosen) open(Number(found[1]));
};
window.addEventListener("hashchange", follow);
window.addEventListener("popstate", follow);

// The archive, of the chosen trajectory
const byId = new Map();
const archive = () => {
  const cells = data.about.cells || [], own = cells.filter((cell) => ofTrajectory(cell));
  $("archive").hidden = !cells.length;
  $("cells").tBodies[0].replaceChildren(...own.slice(0, PAGE).map((cell) => {
    const row = byId.get(cell.id), name = row ? el("button", { type: "button", class: "row" }, ...address(cell.id)) : cell.id;
    if (row) name.addEventListener("click", () => open(row.n));
    return el("tr", {}, el("td", {}, trajectory(cell)), el("td", {}, cell.place), el("td", {}, name), el("td", { class: "n" }, row ? speed(row) : ""));
  }));
  $("kept").textContent = `${Math.min(PAGE, own.length)} of ${own.length}` + (own.length > PAGE ? "; choose a trajectory to see its own" : "");
};

// New turns
const take = (more) => {
  for (const row of more) {
    rows.push(row);
    byNumber.set(row.n, row);
    byId.set(row.id, row);
    for (const parent of row.parents) {
      if (!children.has(parent)) children.set(parent, []);
      children.get(parent).push(row.n);
    }
    if (!known.has(row.problem)) { known.add(row.problem); $("problem").append(el("option", { value: row.problem }, row.problem)); }
    if (!seen.has(row.verdict)) { seen.add(row.verdict); $("verdict").append(el("option", { value: row.verdict }, row.verdict)); }
    drawnSamples.add(row.sample);
  }
  const options = $("trajectory").options;
  if (drawnSamples.size !== options.length - 1) {
    const kept = $("trajectory").value, named = [...drawnSamples].sort((a, b) => a - b).map((sample) => el("option", { value: sample }, trajectory({ sample })));
    $("trajectory").replaceChildren(options[0], ...named);
    $("trajectory").value = kept;
  }
  $("whose").hidden = drawnSamples.size < 2;
  let tokens = 0, usd = 0;
  for (const row of rows) { tokens += row.tokens || 0; usd += row.usd || 0; }
  $("about").textContent = `${data.about.problems} by ${data.about.name}, judged on ${data.about.device}; ${rows.length} turns${data.about.left_out ? ` and ${data.about.left_out} that are not in this file` : ""}, ${tokens} tokens${usd ? `, ${usd.toFixed(2)} USD` : ""}`;
  climb(); list(); archive();
};
let version = -1;
const train = (steps) => {
  $("training").hidden = !steps.length;
  if (!steps.length) return;
  $("trained").textContent = trainingSentence(steps);
  $("curves").replaceChildren(...trainingCharts(steps));
};
const poll = async () => {
  try {
    const answer = await fetch("rows.json?after=" + rows.length);
    if (answer.ok) { const more = await answer.json(); if (more.length) take(more); }
    const found = await (await fetch("steps.json?known=" + version)).json();
    if (found.steps) { version = found.version; train(found.steps); }
  } catch { $("about").textContent += " (the server is gone)"; return; }
  setTimeout(poll, 2000);
};
for (const id of ["problem", "trajectory"]) $(id).addEventListener("input", climb);
$("trajectory").addEventListener("input", archive);
for (const id of ["trajectory", "mark", "verdict", "find"]) $(id).addEventListener("input", () => { shown = PAGE; list(); });
$("more").addEventListener("click", () => { shown += PAGE; list(); });
(async () => {
  train(data.steps);
  if (data.live) await poll(); else take(data.rows);
  follow();
  document.body.dataset.ready = "yes";
})();
})();
