(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const LEGEND = ["correct", "incorrect", "failed", "rejected", "unjudged", "draft"];
// A shape for each verdict, so that colour is not needed to tell them apart.
const SHAPES = {
  correct: (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
  incorrect: (r) => `M0,${-r}L${r},${r}L${-r},${r}Z`,
  failed: (r) => `M${-r},${-r}H${r}V${r}H${-r}Z`,
  rejected: (r) => `M0,${-1.4 * r}L${1.4 * r},0L0,${1.4 * r}L${-1.4 * r},0Z`,
  draft: (r) => `M${-r},${-r}L${r},0L${-r},${r}Z`,
};
const other = (r) => `M${-r},0H${r}M0,${-r}V${r}`;
const shape = (verdict, x, y, r, more = {}) => svg("path", { d: (SHAPES[verdict] || other)(r), transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`, ...more, class: `mark ${verdict}${SHAPES[verdict] ? "" : " open"} ${more.class || ""}` });
const rows = [], byNumber = new Map(), children = new Map();
let chosen = null;

const { strategies, samples } = data.about;
const trajectory = (row) => {
  const place = Math.floor(row.sample / samples);
  if (strategies.length > 1 && place < strategies.length) return `${strategies[place]}, seed ${row.sample % samples}`;
  return strategies.length === 1 && samples > 1 ? `seed ${row.sample}` : String(row.sample);
};
const ofTrajectory = (row) => $("trajectory").value === "" || row.sample === Number($("trajectory").value);

for (const name of LEGEND) {
  const mark = svg("svg", { viewBox: "-7 -7 14 14", width: 14, height: 14, "aria-hidden": "true" });
  mark.append(shape(name, 0, 0, 5));
  $("legend").append(el("span", {}, mark, name === "unjudged" ? " no verdict" : " " + name));
}
$("legend").append(el("span", {}, el("i", { class: "best" }), "best so far, with its interval"), el("span", {}, el("i", { class: "again" }), "measured once more"));
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
const trains = data.about.kind === "train" || data.about.kind === "sft";
// The step that sampled a turn. In ids the first one is 0; everywhere else it is 1.
const stepOf = (row) => {
  const found = trains && /^(step|score)(\d+)\//.exec(row.id);
  return !found ? "" : found[1] === "step" ? `step ${Number(found[2]) + 1}` : `held out after step ${Number(found[2])}`;
};
const climb = () => {
  // Turns of a training are samples of a changing model, and none of them is its result.
  if (trains) return;
  const all = rows.filter((row) => row.problem === $("problem").value && ofTrajectory(row)), own = drawn(all);
  $("drawn").textContent = all.length > own.length ? `Of ${all.length} turns the plot shows ${own.length} that changed the course of their trajectory. Choose one trajectory to see all of its turns.` : "";
  const winner = data.about.winners[$("problem").value];
  $("tree").replaceChildren(searchChart(own, all, chosen, own.length <= MOST_JOINED, shape, open, winner));
  $("sentence").textContent = searchSentence(all, winner);
};

// The list
const PAGE = 200;
let shown = PAGE, listed = [];
const turnName = (row) => [row.step, `turn ${row.turn + 1}`].filter(Boolean).join(", ");
const titleOf = (row) => (known.size > 1 && data.about.titles[row.problem] ? [el("span", { class: "title" }, data.about.titles[row.problem])] : []);
const list = () => {
  const step = $("step").value, mark = $("mark").value, verdict = $("verdict").value, text = $("find").value.toLowerCase();
  const found = rows.filter((row) => ofTrajectory(row) && (!step || row.step === step) && (!mark || row.marks.includes(mark)) && (!verdict || row.verdict === verdict) && (!text || `${row.id} ${row.operator || ""} ${row.reason || ""}`.toLowerCase().includes(text)));
  listed = found.slice(0, shown);
  const lines = new Map(listed.map((row) => {
    const button = el("button", { type: "button", class: "row", "aria-expanded": String(chosen === row.n) }, turnName(row));
    button.addEventListener("click", () => (chosen === row.n ? close() : open(row.n)));
    const why = [...(trains ? [] : row.marks), row.reason || ""].filter(Boolean).join("; ");
    const by = [row.operator, row.role === "measure" ? "trial" : ""].filter(Boolean).join(", ");
    const whose = strategies.length > 1 ? [el("p", { class: "of" }, trajectory(row))] : [];
    const cost = [[row.tokens === undefined ? "" : String(row.tokens), "tokens"], [row.seconds ? scaled(row.seconds * 1e6) : "", "of evaluation"]];
    return [row.n, el("tr", chosen === row.n ? { class: "chosen" } : {}, el("td", {}, button, el("span", { class: "title" }, ...address(row.id)), ...titleOf(row), ...whose), el("td", { class: "verdict " + row.verdict }, row.verdict), el("td", { class: "n" }, speed(row)), el("td", {}, by), ...cost.map(([text, unit]) => el("td", { class: "n", "data-unit": unit }, ...(text ? [text] : []))), el("td", { class: "why" }, why))];
  }));
  // The detail stands under its row, or below the chart where the list does not show the row.
  const under = lines.get(chosen), one = $("one");
  if (under) { const cell = el("td", { colspan: 7, class: "detail" }); cell.append(one); $("rows").tBodies[0].replaceChildren(...[...lines.values()].flatMap((line) => (line === under ? [line, el("tr", { class: "opened" }, cell)] : [line]))); }
  else { $("beside").append(one); $("rows").tBodies[0].replaceChildren(...lines.values()); }
  $("count").textContent = `${Math.min(shown, found.length)} of ${found.length}`;
  $("more").hidden = shown >= found.length;
};

// One turn
const draw = (turn) => {
  $("detail").replaceChildren(...turnParts(turn, byNumber, children, trajectory));
};
const open = async (n) => {
  const row = byNumber.get(n);
  if (!row) return;
  chosen = n;
  $("one").hidden = false;
  $("h-one").textContent = `${turnName(row)}, ${row.id}`;
  $("detail").replaceChildren();
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
  else { $("detail").replaceChildren(el("p", {}, "It is not in this file. All turns are shown by "), el("code", {}, "tilewright view " + data.about.folder)); }
  $("h-one").focus();
};
const close = () => {
  chosen = null;
  $("one").hidden = true;
  history.pushState(null, "", location.pathname);
  climb(); list();
};
// The turn before or after the open one, in the order of the list.
const stepTo = (change) => {
  const place = listed.findIndex((row) => row.n === chosen), next = listed[place < 0 ? 0 : place + change];
  if (next) open(next.n);
};
$("previous").addEventListener("click", () => stepTo(-1));
$("next").addEventListener("click", () => stepTo(1));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input, select, textarea")) return;
  if (event.key === "j") stepTo(1);
  if (event.key === "k") stepTo(-1);
  if (event.key === "Escape" && chosen !== null) close();
});
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
    row.step = stepOf(row);
    rows.push(row);
    byNumber.set(row.n, row);
    byId.set(row.id, row);
    for (const parent of row.parents) {
      if (!children.has(parent)) children.set(parent, []);
      children.get(parent).push(row.n);
    }
    if (!known.has(row.problem)) { known.add(row.problem); $("problem").append(el("option", { value: row.problem }, [row.problem, data.about.titles[row.problem]].filter(Boolean).join(": "))); }
    if (row.step && !seen.has(row.step)) { seen.add(row.step); $("step").append(el("option", { value: row.step }, row.step)); }
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
  const judged = data.about.device ? `, judged on ${data.about.device} by tilewright ${data.about.evaluator}` : `, tilewright ${data.about.evaluator}`;
  const took = data.about.kind === "sft" ? "" : `; ${counted(rows.length, "turn")}${data.about.left_out ? ` and ${data.about.left_out} that are not in this file` : ""}, ${searchCost(rows)}`;
  $("about").textContent = `${data.about.problems} by ${data.about.name}${judged}${took}${data.about.begun ? `; begun ${data.about.begun}` : ""}. To show it again: tilewright view ${quoted(data.about.folder)}`;
  climb(); list(); archive();
};
let version = -1;
const train = (steps) => {
  $("training").hidden = !steps.length;
  if (!steps.length) return;
  $("trained").textContent = trainingSentence(steps);
  $("curves").replaceChildren(...trainingCharts(steps, data.about.kind));
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
// A point of a curve shows the turns of its step.
$("curves").addEventListener("click", (event) => {
  const point = event.target.closest("circle[data-step]");
  if (!point || !seen.has(point.dataset.step)) return;
  $("step").value = point.dataset.step;
  shown = PAGE; list();
  $("turns").scrollIntoView();
});
for (const id of ["trajectory", "step", "mark", "verdict", "find"]) $(id).addEventListener("input", () => { shown = PAGE; list(); });
$("more").addEventListener("click", () => { shown += PAGE; list(); });
(async () => {
  $("climb").hidden = $("marked").hidden = trains;
  $("stepped").hidden = data.about.kind !== "train";
  for (const node of [$("turns"), document.querySelector(".skip")]) node.hidden = data.about.kind === "sft";
  train(data.steps);
  if (data.live) await poll(); else take(data.rows);
  follow();
  document.body.dataset.ready = "yes";
})();
})();
