// The speed-ups of a search against its turns. Turns without a speed stand on a strip of their own.
const CHART = { width: 1120, left: 70, top: 26, floor: 250, strip: 268, base: 304, height: 346 };
const MIN_TURN_WIDTH = 6, MOST_STEP_LINES = 6, MOST_POWERS = 9;
const LAST_TRIAL = "final trial";
// Turns that a search chooses from: the trials at its end select nothing.
const selectable = (row) => row.speedup && row.verdict === "correct" && !row.marks.includes(LAST_TRIAL);
const bestOf = (rows) => rows.filter(selectable).reduce((best, row) => (best && best.speedup >= row.speedup ? best : row), null);
const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
// The headline of the turns of one problem: the best, its repeated measurement, and what the turns became.
// `winner`: the measurement of the best candidate after the search, if there was one.
const searchSentence = (rows, winner) => {
  const tried = rows.filter((row) => row.role !== "measure" && !row.marks.includes(LAST_TRIAL)), best = bestOf(rows);
  const again = best ? rows.filter((row) => row.marks.includes(LAST_TRIAL) && row.speedup && row.parents.includes(best.n)).pop() : null;
  const verdicts = new Map();
  for (const row of tried) verdicts.set(row.verdict, (verdicts.get(row.verdict) || 0) + 1);
  const became = [...verdicts].map(([name, number]) => `${number} ${name}`).join(", ");
  const repeated = again || winner;
  const measured = repeated ? `; measured once more: ${repeated.speedup ? speed(repeated) : repeated.verdict}` : "";
  const first = best ? `The best of ${counted(tried.length, "turn")} is turn ${best.turn + 1}: ${speed(best)}${measured}.` : `None of ${counted(tried.length, "turn")} is correct and timed.`;
  return `${first} Verdicts: ${became}.`;
};
const searchCost = (rows) => {
  let tokens = 0, usd = 0, seconds = 0;
  for (const row of rows) { tokens += row.tokens || 0; usd += row.usd || 0; seconds += row.seconds || 0; }
  return [counted(tokens, "token"), usd ? `${usd.toFixed(2)} USD` : "", seconds ? `${scaled(seconds * 1e6)} of evaluation` : ""].filter(Boolean).join(", ");
};
// Where a turn and a speed-up are drawn. Both ends of every interval lie inside the plot.
const searchScale = (rows, last) => {
  const values = rows.filter((row) => row.speedup).flatMap((row) => [row.speedup, row.low || row.speedup, row.high || row.speedup]).map(Math.log2);
  const low = Math.floor(values.reduce((least, value) => Math.min(least, value), -1)), high = Math.ceil(values.reduce((most, value) => Math.max(most, value), 1) + 0.05);
  const width = Math.max(CHART.width, CHART.left + 40 + (last + 1) * MIN_TURN_WIDTH), step = (width - CHART.left - 40) / (last + 1);
  return {
    low, high, width, step,
    x: (turn) => CHART.left + (turn + 0.5) * step,
    y: (value) => CHART.floor - (CHART.floor - CHART.top) * (Math.log2(value) - low) / (high - low),
  };
};
const axes = (node, scale, last) => {
  const right = scale.width - 30, every = Math.ceil((scale.high - scale.low + 1) / MOST_POWERS);
  for (let power = scale.low; power <= scale.high; power += every) {
    const at = scale.y(2 ** power);
    node.append(svg("line", { x1: CHART.left, x2: right, y1: at, y2: at, class: power === 0 ? "axis one" : "grid" }), svg("text", { x: CHART.left - 8, y: at + 4, "text-anchor": "end" }, `${2 ** power}x`));
  }
  node.append(svg("rect", { x: CHART.left, y: CHART.strip, width: right - CHART.left, height: CHART.base - CHART.strip, class: "strip" }), svg("text", { x: CHART.left - 8, y: (CHART.strip + CHART.base) / 2 + 4, "text-anchor": "end" }, "no speed"));
  const stride = Math.max(1, Math.ceil((last + 1) / (scale.width / 60)));
  for (let turn = 0; turn <= last; turn += stride) node.append(svg("text", { x: scale.x(turn), y: CHART.base + 16, "text-anchor": "middle" }, turn + 1));
  node.append(svg("text", { x: CHART.left, y: 15 }, "speed-up, logarithmic; bars are 95 % intervals"), svg("text", { x: (CHART.left + right) / 2, y: CHART.height - 6, "text-anchor": "middle" }, "turn of the trajectory"));
};
// The largest speed-up so far of one trajectory, as steps, with the interval of the turn that set it.
const bestSoFar = (rows, scale, last) => {
  const parts = [], ordered = rows.filter(selectable).sort((a, b) => a.turn - b.turn), leaders = [];
  for (const row of ordered) if (!leaders.length || row.speedup > leaders[leaders.length - 1].speedup) leaders.push(row);
  const points = [];
  leaders.forEach((row, place) => {
    const from = scale.x(row.turn), to = place + 1 < leaders.length ? scale.x(leaders[place + 1].turn) : scale.x(last);
    if (row.low && row.high) parts.push(svg("rect", { x: from, y: scale.y(row.high), width: Math.max(to - from, 0), height: scale.y(row.low) - scale.y(row.high), class: "band" }));
    points.push(`${from},${scale.y(row.speedup)}`, `${to},${scale.y(row.speedup)}`);
  });
  if (points.length) parts.push(svg("polyline", { points: points.join(" "), class: "best" }));
  return parts;
};
// `rows`: the turns that are drawn, of one problem; `all`: also those that are not, for the steps.
const searchChart = (rows, all, chosen, joined, shape, open, winner) => {
  const last = rows.reduce((most, row) => Math.max(most, row.turn), 0), scale = searchScale(winner ? [...rows, winner] : rows, last);
  const node = svg("svg", { viewBox: `0 0 ${scale.width} ${CHART.height}`, role: "img", "aria-label": "Speed-up of each turn with its interval; turns without a speed stand below. The list of turns has the same content." });
  if (scale.width > CHART.width) node.setAttribute("width", scale.width);
  axes(node, scale, last);
  const samples = [...new Set(all.map((row) => row.sample))];
  if (samples.length <= MOST_STEP_LINES) for (const sample of samples) node.append(...bestSoFar(all.filter((row) => row.sample === sample), scale, last));
  const place = (row) => [scale.x(row.turn), row.speedup ? scale.y(row.speedup) : CHART.strip + 12 + 4 * (row.sample % 4)];
  const timed = new Map(rows.filter((row) => row.speedup).map((row) => [row.n, row]));
  // Only turns that have a speed are joined to their parents.
  if (joined) for (const row of timed.values()) for (const parent of row.parents) {
    const from = timed.get(parent);
    if (from) node.append(svg("line", { x1: place(from)[0], y1: place(from)[1], x2: place(row)[0], y2: place(row)[1], class: "lineage" }));
  }
  if (winner && winner.speedup) {
    const x = scale.x(last) + Math.min(scale.step / 2, 24), y = scale.y(winner.speedup);
    if (winner.low && winner.high) node.append(svg("line", { x1: x, x2: x, y1: scale.y(winner.high), y2: scale.y(winner.low), class: "interval" }));
    const ring = svg("circle", { cx: x, cy: y, r: 7, class: "again" });
    ring.append(svg("title", {}, `the best candidate, measured once more: ${speed(winner)}`));
    node.append(ring);
  }
  for (const row of rows) {
    const [x, y] = place(row), large = row.marks.includes("best so far") || row.marks.includes("new leader");
    if (row.speedup && row.low && row.high) node.append(svg("line", { x1: x, x2: x, y1: scale.y(row.low), y2: scale.y(row.high), class: "interval" }));
    if (row.marks.includes(LAST_TRIAL)) node.append(svg("circle", { cx: x, cy: y, r: 9, class: "again" }));
    const dot = shape(row.verdict, x, y, large ? 6 : 4, { "data-n": row.n, class: "dot" + (chosen === row.n ? " chosen" : "") });
    dot.append(svg("title", {}, `turn ${row.turn + 1}, ${row.id}: ${row.verdict} ${speed(row)} ${row.marks.join(", ")}`));
    dot.addEventListener("click", () => open(row.n));
    node.append(dot);
  }
  return node;
};
