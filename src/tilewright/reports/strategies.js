// The comparison of strategies: a row for each, regret, paired differences.
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const DASHES = ["", "7 3", "2 3", "9 3 2 3"];
// Colour and dashes repeat after 6 and 4, so that twelve lines differ, and neighbours by both.
const line = (place) => ({ stroke: COLOURS[place % COLOURS.length], "stroke-dasharray": DASHES[place % DASHES.length] });
const sample = (place) => {
  const made = svg("svg", { viewBox: "0 0 34 10", width: 34, height: 10, "aria-hidden": "true" });
  made.append(svg("line", { x1: 1, x2: 33, y1: 5, y2: 5, "stroke-width": 2.5, ...line(place) }));
  return made;
};
const numbered = (found) => found.columns.map((_, place) => place).slice(1);

// Headings that say what they mean: to a mouse, to a screen reader, and as a list for everybody.
const explained = (made, columns) => {
  made.classList.add("columns");
  made.querySelectorAll("th").forEach((head, place) => { if (columns[place][1]) head.title = columns[place][1]; });
  const terms = columns.filter(([, meaning]) => meaning).flatMap(([title, meaning]) => [el("dt", {}, title), el("dd", {}, meaning)]);
  return [made, el("details", {}, el("summary", {}, "What the columns mean"), el("dl", {}, ...terms))];
};

// Regret: the best known speed-up over the best so far, as a factor on a logarithmic axis
const FACTORS = [0.5, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000];
const WIDTH = 720, HEIGHT = 340, RIGHT = 560, FLOOR = HEIGHT - 45;
const factor = (log) => Math.exp(log).toFixed(Math.exp(log) < 10 ? 2 : 0) + "x";
const apart = (places, least) => {
  // Labels at the ends of the lines, moved down where they would overlap, and up from the floor.
  const order = places.map((y, k) => [y, k]).sort((a, b) => a[0] - b[0]), found = [...places];
  order.forEach(([y, k], i) => { found[k] = i ? Math.max(y, found[order[i - 1][1]] + least) : y; });
  let limit = FLOOR;
  for (const [, k] of [...order].reverse()) { found[k] = Math.min(found[k], limit); limit = found[k] - least; }
  return found;
};
const regretPlot = (curves) => {
  const logs = curves.flatMap(([, values]) => values), last = Math.max(...curves.map(([, values]) => values.length), 2);
  let top = Math.log(1.05), bottom = 0;
  for (const value of logs) { top = Math.max(top, value); bottom = Math.min(bottom, value); }
  const x = (number) => 50 + (RIGHT - 50) * (number - 1) / (last - 1), y = (log) => 20 + (FLOOR - 20) * (top - log) / (top - bottom);
  const step = [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 5000].find((size) => last / size <= 10) || last;
  const multiples = Array.from({ length: Math.floor(last / step) }, (_, k) => (k + 1) * step).filter((n) => x(n) - x(1) > 20), xs = [1, ...multiples], ys = [];
  for (const value of FACTORS) {
    const at = y(Math.log(value));
    if (at >= 19 && at <= FLOOR + 1 && ys.every(([other]) => Math.abs(other - at) >= 18)) ys.push([at, value + "x"]);
  }
  const node = frame("Mean regret of each strategy by judged candidates; the table below has the same numbers", xs.map((n) => [x(n), n]), ys, "judged candidates", "regret: best known speed-up over the best so far (lower is better)", WIDTH, HEIGHT, RIGHT);
  const ends = apart(curves.map(([, values]) => y(values[values.length - 1])), 15);
  curves.forEach(([name, values], place) => {
    const group = svg("g", { class: "curve", "data-strategy": name }), end = values.length;
    group.append(svg("title", {}, `${name}: ${factor(values[0])} after 1, ${factor(values[end - 1])} after ${end} judged candidates`));
    group.append(svg("polyline", { points: values.map((value, k) => `${x(k + 1)},${y(value)}`).join(" "), fill: "none", "stroke-width": 2, "stroke-linejoin": "round", ...line(place) }));
    if (end === 1) group.append(svg("circle", { cx: x(1), cy: y(values[0]), r: 3.5, fill: COLOURS[place % COLOURS.length] }));
    group.append(svg("line", { x1: x(end) + 2, y1: y(values[end - 1]), x2: RIGHT + 12, y2: ends[place], stroke: "currentColor", opacity: 0.25 }), svg("text", { x: RIGHT + 16, y: ends[place] + 4 }, name.length > 20 ? name.slice(0, 19) + "\u2026" : name));
    node.append(group);
  });
  return node;
};
// A button for each line: it stands out while the button is pressed, pointed at or focused.
const keys = (curves, node) => {
  const pressed = new Set();
  const show = (pointed) => {
    const chosen = new Set([...pressed, ...(pointed === undefined ? [] : [pointed])]);
    node.querySelectorAll("g.curve").forEach((group, place) => group.classList.toggle("faint", chosen.size > 0 && !chosen.has(place)));
  };
  return el("p", { class: "legend keys", role: "group", "aria-label": "Strategies in the plot" }, ...curves.map(([name, values], place) => {
    const button = el("button", { type: "button", "aria-pressed": "false" }, sample(place), ` ${name} ${factor(values[values.length - 1])}`);
    button.addEventListener("click", () => {
      if (pressed.has(place)) pressed.delete(place); else pressed.add(place);
      button.setAttribute("aria-pressed", String(pressed.has(place)));
      show();
    });
    for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => show(place));
    for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => show());
    return button;
  }));
};
const regretTable = (found) => el("details", {}, el("summary", {}, "Regret as a table"), el("p", {}, "Columns: judged candidates. Empty: no trajectory of the strategy judged as many."),
  table(found.regret_heads, found.regret_texts, found.regret_heads.map((_, place) => place).slice(1)));

// Paired differences, of all pairs or of those with one strategy
const differences = (found) => {
  const choice = el("select"), count = el("span", { role: "status" }), place = el("div");
  choice.append(el("option", { value: "" }, "every strategy"));
  for (const row of found.rows) choice.append(el("option", { value: row.strategy }, row.strategy));
  const draw = () => {
    const rows = found.difference_texts.filter((row) => !choice.value || row[0] === choice.value || row[1] === choice.value);
    place.replaceChildren(table(found.difference_heads, rows, [2, 3]));
    count.textContent = `${rows.length} of ${found.difference_texts.length} pairs`;
  };
  choice.addEventListener("input", draw);
  draw();
  const listed = [el("div", { class: "filters" }, el("label", {}, "Pairs with ", choice), count), place];
  const folded = found.difference_texts.length > 15 ? [el("details", { class: "pairs" }, el("summary", {}, `All ${found.difference_texts.length} pairs with their intervals`), ...listed)] : listed;
  return [el("h3", {}, "Paired differences"), el("p", {}, "Two strategies are compared in pairs of equal problem and seed: the mean ratio of their re-measured speed-ups. " + found.chance), table(found.standing_heads, found.standings), ...folded];
};

const compared = data.runs.filter((run) => run.comparison);
for (const run of compared) {
  const found = run.comparison, curves = Object.entries(found.curves).filter(([, values]) => values.length);
  if (compared.length > 1) $("strategies").append(el("h3", {}, run.name));
  $("strategies").append(el("p", {}, found.basis),
    ...explained(table(found.columns.map(([title]) => title), found.row_texts, numbered(found)), found.columns));
  if (curves.length) {
    const node = regretPlot(curves);
    $("strategies").append(el("h3", {}, "Regret"), keys(curves, node), el("div", { class: "wide plot" }, node), regretTable(found));
    if (curves.some(([, values]) => values.some((value) => value < 0))) $("strategies").append(el("p", {}, "Below 1x a search claimed more than any final trial confirmed: the curves show the trials that selected."));
  }
  $("strategies").append(...differences(found));
}
$("strategies").hidden = !compared.length;
})();
