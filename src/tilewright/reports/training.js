// Curves of a training: one chart for each group of metrics, against the optimizer step.
const CURVES = [
  ["Reward", "mean reward of a turn", (name) => name === "reward"],
  ["Correct", "share of judged turns", (name) => name === "correct"],
  ["Fast", "share of judged turns", (name) => /^fast@/.test(name)],
  ["Loss", "loss", (name) => name === "loss"],
  ["Entropy and KL", "nats per token", (name) => name === "entropy" || name === "kl"],
  ["Kept", "share of trained turns", (name) => name === "kept_mismatch" || name === "kept_profiling"],
  ["Time", "seconds per step", (name) => name.startsWith("seconds/")],
  ["Tokens", "trained tokens per second", (name) => name === "tokens_per_second"],
];
const IN_WORDS = { kept_mismatch: "kept by mismatch rejection", kept_profiling: "kept by profiling rejection", kl: "KL from the first model", tokens_per_second: "trained tokens per second", "seconds/log_probs": "log-probabilities", "seconds/estimator": "advantages" };
const inWords = (name) => IN_WORDS[name] || name.replace(/^seconds\//, "").replace(/^fast@(.*)$/, "correct and faster than $1x").replaceAll("_", " ");
const MOST_LINES = 6, MOST_TICKS = 5;
// Each line shows less of itself than the one below it, so that lines that coincide are all seen.
const DASHES_OF_LINES = ["none", "20 4", "15 9", "10 14", "6 18", "2 22"];
// What one computes from the others.
const derived = (figures) => {
  const seconds = Object.entries(figures).filter(([name]) => name.startsWith("seconds/")).reduce((sum, [, value]) => sum + (value || 0), 0);
  return seconds && figures.trained_tokens ? { ...figures, tokens_per_second: figures.trained_tokens / seconds } : figures;
};
const brief = (value) => (value === 0 ? "0" : Math.abs(value) >= 1000 || Math.abs(value) < 0.001 ? value.toExponential(1) : String(Number(value.toPrecision(3))));
// Multiples of 1, 2 or 5 times a power of ten, from the last at or below `low` to the first at or above `high`.
const roundTicks = (low, high, least = 0) => {
  const wanted = Math.max((high - low) / MOST_TICKS, least), power = 10 ** Math.floor(Math.log10(wanted)), step = power * ([1, 2, 5].find((factor) => factor * power >= wanted * 0.999) || 10);
  const first = Math.floor(low / step + 1e-6), last = Math.ceil(high / step - 1e-6);
  return Array.from({ length: last - first + 1 }, (_, place) => Number(((first + place) * step).toPrecision(12)));
};
const compact = new Intl.NumberFormat("en", { notation: "compact" });
const tickText = (value) => (value === 0 ? "0" : Math.abs(value) >= 10000 ? compact.format(value) : Math.abs(value) < 0.001 ? Number(value.toPrecision(3)).toExponential() : String(value));
const strokeOf = (place, several) => ({ stroke: COLOURS[place % COLOURS.length], "stroke-width": 2, "stroke-dasharray": several ? DASHES_OF_LINES[place] : "none" });
const keyOf = (line, place) => {
  const mark = svg("svg", { viewBox: "0 0 34 10", width: 34, height: 10, "aria-hidden": "true" });
  mark.append(svg("line", { x1: 1, x2: 33, y1: 5, y2: 5, ...strokeOf(place, true) }));
  return el("span", {}, mark, " " + line.name);
};
// Runs of steps that follow each other: nothing was measured between others, so no line joins them.
const joinedRuns = (points) => points.reduce((runs, point, place) => {
  if (place && points[place - 1][0] === point[0] - 1) runs[runs.length - 1].push(point); else runs.push([point]);
  return runs;
}, []);
const curve = (title, unit, lines, last) => {
  const values = lines.flatMap((line) => line.points.map(([, value]) => value)), least = Math.min(0, ...values), most = Math.max(...values);
  const ticks = roundTicks(least, most > least ? most : least + 1), low = ticks[0], high = ticks[ticks.length - 1], several = lines.length > 1;
  const x = (step) => 50 + 390 * step / Math.max(last, 1), y = (value) => 235 - 215 * (value - low) / (high - low);
  const steps = roundTicks(0, Math.max(last, 1), 1).filter((step) => step <= Math.max(last, 1));
  const node = frame(`${title} against the optimizer step`, steps.map((step) => [x(step), step]), ticks.map((value) => [y(value), tickText(value)]), "optimizer step", unit);
  lines.forEach((line, i) => {
    for (const run of joinedRuns(line.points)) if (run.length > 1) node.append(svg("polyline", { points: run.map(([step, value]) => `${x(step)},${y(value)}`).join(" "), fill: "none", ...strokeOf(i, several) }));
    for (const [step, value] of line.points) {
      const colour = COLOURS[i % COLOURS.length], dot = svg("circle", { "data-step": line.scored ? `held out after step ${step}` : `step ${step}`, cx: x(step), cy: y(value), r: line.scored ? 5 : several ? 2 + (lines.length - 1 - i) * 0.7 : 3, fill: line.scored ? "none" : colour, stroke: colour, "stroke-width": line.scored ? 2 : 0 });
      dot.append(svg("title", {}, `${line.name}, step ${step}: ${brief(value)}`));
      node.append(dot);
    }
  });
  return el("figure", {}, el("figcaption", {}, title), node, ...(several ? [el("p", { class: "legend" }, ...lines.map(keyOf))] : []));
};
const lineOf = (steps, kind, name) => ({
  name: kind === "held out" ? `${inWords(name)} (held out)` : inWords(name),
  scored: kind === "held out",
  points: steps.filter((item) => item.kind === kind && typeof derived(item.figures)[name] === "number").map((item) => [item.step, derived(item.figures)[name]]),
});
const trainingSentence = (steps) => {
  const own = steps.filter((item) => item.kind === "training"), first = own[0], now = own[own.length - 1];
  if (!now) return "No step has ended yet.";
  const change = (name) => (typeof now.figures[name] === "number" && typeof first.figures[name] === "number" ? `${name} ${brief(first.figures[name])} at step ${first.step}, ${brief(now.figures[name])} at step ${now.step}` : "");
  return `${own.length} step${own.length === 1 ? "" : "s"} of training: ` + [change("reward"), change("correct"), change("loss")].filter(Boolean).join("; ") + ".";
};
const trainingCharts = (steps, kind) => {
  const last = Math.max(...steps.map((item) => item.step)), names = [...new Set(steps.flatMap((item) => Object.keys(derived(item.figures))))].sort();
  return CURVES.flatMap(([title, unit, belongs]) => {
    const lines = ["training", "held out"].flatMap((part) => names.filter(belongs).map((name) => lineOf(steps, part, name))).filter((line) => line.points.length);
    // The loss on conversations is a mean of log-probabilities; that of a reward has no unit.
    return lines.length ? [curve(title, title === "Loss" && kind === "sft" ? "nats per token" : unit, lines.slice(0, MOST_LINES), last)] : [];
  });
};
