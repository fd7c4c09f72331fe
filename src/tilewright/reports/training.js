// Curves of a training: one chart for each group of metrics, against the optimizer step.
const CURVES = [
  ["Reward", "mean reward of a turn", (name) => name === "reward"],
  ["Correct", "share of judged turns", (name) => name === "correct"],
  ["Fast", "share of judged turns", (name) => /^fast@/.test(name)],
  ["Loss", "loss", (name) => name === "loss"],
  ["Entropy and KL", "nats per token", (name) => name === "entropy" || name === "kl"],
  ["Kept", "share of trained turns", (name) => name === "kept_mismatch" || name === "kept_profiling"],
  ["Time", "seconds per phase", (name) => name.startsWith("seconds/")],
  ["Tokens", "trained tokens per second", (name) => name === "tokens_per_second"],
];
const MOST_LINES = 6;
// What one computes from the others.
const derived = (figures) => {
  const seconds = Object.entries(figures).filter(([name]) => name.startsWith("seconds/")).reduce((sum, [, value]) => sum + (value || 0), 0);
  return seconds && figures.trained_tokens ? { ...figures, tokens_per_second: figures.trained_tokens / seconds } : figures;
};
const brief = (value) => (value === 0 ? "0" : Math.abs(value) >= 1000 || Math.abs(value) < 0.001 ? value.toExponential(1) : String(Number(value.toPrecision(3))));
const curve = (title, unit, lines, last) => {
  const values = lines.flatMap((line) => line.points.map(([, value]) => value)), low = Math.min(0, ...values), high = Math.max(...values, low + 1e-9);
  const x = (step) => 50 + 390 * step / Math.max(last, 1), y = (value) => 235 - 215 * (value - low) / (high - low);
  const ticks = [...new Set([0, 0.25, 0.5, 0.75, 1].map((part) => Math.round(part * last)))];
  const node = frame(`${title} against the optimizer step`, ticks.map((step) => [x(step), step]), [0, 0.5, 1].map((part) => [235 - 215 * part, brief(low + part * (high - low))]), "optimizer step", unit);
  lines.forEach((line, i) => {
    const colour = COLOURS_OF_LINES[i % COLOURS_OF_LINES.length];
    // Only steps that follow each other are joined: nothing was measured between others.
    line.points.forEach(([step, value], place) => {
      const [before, earlier] = line.points[place - 1] || [];
      if (before === step - 1) node.append(svg("line", { x1: x(before), y1: y(earlier), x2: x(step), y2: y(value), stroke: colour, "stroke-width": 2 }));
    });
    for (const [step, value] of line.points) {
      const dot = svg("circle", { cx: x(step), cy: y(value), r: line.scored ? 5 : 3, fill: line.scored ? "none" : colour, stroke: colour, "stroke-width": 2 });
      dot.append(svg("title", {}, `${line.name}, step ${step}: ${brief(value)}`));
      node.append(dot);
    }
  });
  const legend = el("p", { class: "legend" }, ...lines.map((line, i) => { const mark = el("i"); mark.style.background = COLOURS_OF_LINES[i % COLOURS_OF_LINES.length]; return el("span", {}, mark, line.name); }));
  return el("figure", {}, el("figcaption", {}, title), node, legend);
};
const COLOURS_OF_LINES = ["#0b6bcb", "#c2410c", "#15803d", "#a21caf", "#a16207", "#0e7490"];
const lineOf = (steps, kind, name) => ({
  name: kind === "held out" ? `${name} (held out)` : name,
  scored: kind === "held out",
  points: steps.filter((item) => item.kind === kind && typeof derived(item.figures)[name] === "number").map((item) => [item.step, derived(item.figures)[name]]),
});
const trainingSentence = (steps) => {
  const own = steps.filter((item) => item.kind === "training"), first = own[0], now = own[own.length - 1];
  if (!now) return "No step has ended yet.";
  const change = (name) => (typeof now.figures[name] === "number" && typeof first.figures[name] === "number" ? `${name} ${brief(first.figures[name])} at step ${first.step}, ${brief(now.figures[name])} at step ${now.step}` : "");
  return `${own.length} step${own.length === 1 ? "" : "s"} of training: ` + [change("reward"), change("correct"), change("loss")].filter(Boolean).join("; ") + ".";
};
const trainingCharts = (steps) => {
  const last = Math.max(...steps.map((item) => item.step)), names = [...new Set(steps.flatMap((item) => Object.keys(derived(item.figures))))].sort();
  return CURVES.flatMap(([title, unit, belongs]) => {
    const lines = ["training", "held out"].flatMap((kind) => names.filter(belongs).map((name) => lineOf(steps, kind, name))).filter((line) => line.points.length);
    return lines.length ? [curve(title, unit, lines.slice(0, MOST_LINES), last)] : [];
  });
};
