(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const MOST_OPEN = 20;
Object.assign(TERMS, data.terms);
for (const head of document.querySelectorAll("#rows th")) if (TERMS[head.textContent]) { head.title = TERMS[head.textContent]; head.classList.add("term"); }
const fastOne = (numbers) => (numbers.fast_p || []).find((row) => row.p === 1) || {};
// Whose it is, where there are several.
const whose = (run, text) => (data.runs.length > 1 ? run.name + ": " : "") + text;
const series = [];
data.runs.forEach((run, number) => {
  for (const protocol of run.protocols) {
    const numbers = run.summary.protocols[protocol];
    if (numbers) series.push({ run, number, protocol, numbers, name: (data.runs.length > 1 ? run.name + ", " : "") + protocol });
  }
});
const legend = () => el("p", { class: "legend" }, ...series.map((item, i) => {
  const mark = el("i"); mark.style.background = COLOURS[i % COLOURS.length];
  return el("span", {}, mark, item.name);
}));
const first = data.runs[0];
for (const run of data.runs) $("sentence").append(el("p", {}, whose(run, [run.steps.length ? trainingSentence(run.steps) : "", run.headline].filter(Boolean).join(" "))));
const dates = data.runs.map((run) => run.begun).filter(Boolean);
$("about").textContent = `${first.problems}${first.device ? " on " + first.device : ""}, tilewright ${first.evaluator}` +
  (dates.length ? `, begun ${[...new Set(dates)].join(" and ")}` : "") + `; this page again: ${data.command}` +
  (data.left_out ? `; ${data.left_out} turns are counted and not listed` : "") +
  data.runs.filter((run) => run.left).map((run) => `; ${run.left} of ${run.name} are not judged yet: tilewright bench --resume ${quoted(run.path)}`).join("");

// The training
for (const run of data.runs.filter((item) => item.steps.length)) {
  $("training").hidden = false;
  $("training").append(...(data.runs.length > 1 ? [el("p", {}, run.name)] : []), el("div", { class: "plots" }, ...trainingCharts(run.steps, run.kind)));
}

// Results
const problems = (number) => `${number} problem${number === 1 ? "" : "s"}`;
const lacking = series.some((item) => item.numbers.unanswered) ? ["without a candidate"] : [];
$("headline").append(table(
  ["run", "judged", "unjudged", ...lacking, "shares of", "correct", "fast_1", "95 %", "fast_1, sure", "geometric mean", "AMSR", "rejected"],
  series.map((item) => {
    const n = item.numbers, one = fastOne(n), counted = [n.judged, n.verdicts.unjudged || 0, ...lacking.map(() => n.unanswered)];
    if (!n.problems) return [item.name, ...counted, "", "", "", "", "", "", "", ""];
    return [item.name, ...counted, problems(n.problems), share(n.correct_share), share(one.fast_p),
      one.low === null || one.low === undefined ? "" : `${share(one.low)} to ${share(one.high)}`.replace(/ /g, "\u00a0"), share(one.believed), times(n.geometric_mean), n.amsr === null ? "" : n.amsr.toFixed(3), share(n.rejected)];
  }), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]));
if (data.runs.some((run) => run.summary.earlier_turns)) $("headline").append(el("p", {}, "These numbers count the last turn of each trajectory; the list of candidates has all turns."));
$("headline").append(el("p", {}, "Shares and means are over problems: each problem counts once, with the share or mean of its own candidates." + (lacking.length ? " A problem without a candidate counts as 0." : "")));

const passed = series.filter((item) => item.numbers.problems);
const ends = (found, unit) => (found ? `${found[0].toFixed(3)}${unit} to ${found[1].toFixed(3)}${unit}` : "").replace(/ /g, "\u00a0");
const atK = (found) => Object.entries(found).map(([k, v]) => `${k}: ${share(v)}`).join(", ");
if (passed.length) $("headline").append(el("p", {}, "Means with their 95 % intervals, and the shares of problems that one of k samples solves:"), table(["run", "geometric mean, 95 %", "AMSR, 95 %", "pass@k", "fast_1@k", "mean speed-up, failures as 0"],
  passed.map(({ name, numbers: n }) => [name, ends(n.geometric_mean_95, "x"), ends(n.amsr_95, ""), atK(n.pass_at), atK(n.fast_at), times(n.mean_with_zeros)]), [5]));
// What a grouping explains of correctness, in one sentence.
const explains = (what, parts, apart) => el("p", {}, `Knowing the ${what} explains ${parts.map(([part, name]) => `${share(part)} (${name})`).join(", ")} of the deviance of correctness (0 %: ${apart}; 100 %: the ${what} alone decides).`);
if (data.explained_by_run) $("headline").append(explains("run", Object.entries(data.explained_by_run).map(([name, part]) => [part, name]), "runs do not differ"));
for (const run of data.runs.filter((item) => item.curves.length > 1)) {
  const names = [...new Set(run.curves.flatMap((row) => Object.keys(row.best_fast_p)))];
  const text = whose(run, "turn by turn, and the best of each history up to it" + (run.comparison ? ", of all strategies together" : ""));
  const made = table(["turn", "judged", "correct", ...names.map((p) => `fast_${p}`), ...names.map((p) => `best fast_${p}`)],
    run.curves.map((row) => [row.turn, row.judged, share(row.correct), ...names.map((p) => share(row.fast_p[p])), ...names.map((p) => share(row.best_fast_p[p]))]), names.flatMap((_, i) => [3 + i, 3 + names.length + i]).concat([1, 2]));
  // A search has hundreds of turns; nobody scrolls past them to what follows.
  if (run.curves.length > MOST_OPEN) $("headline").append(el("details", {}, el("summary", {}, text), made));
  else $("headline").append(el("p", {}, text), made);
}
const scored = data.runs.filter((run) => run.summary.drkernel);
if (scored.length) $("headline").append(el("p", {}, "By the rules of Dr. Kernel (arXiv 2602.05885): the tolerance is 0.01, a decoy is incorrect, and fast@p counts speed-ups of at least p."),
  table(["run", "of each trajectory", "shares of", ...Object.keys(scored[0].summary.drkernel.last)], scored.flatMap((run) => [["last", "last turn"], ["best", "best of history"]].map(([key, title]) => [run.name, title, run.summary.drkernel.trajectories, ...Object.values(run.summary.drkernel[key]).map(share)])), [2, 3, 4, 5, 6, 7]));

// As published
const published = series.flatMap((item) => Object.entries(item.numbers.published || {}).map(([set, n]) => [set, item.run.name, n.tasks, share(n.call_accuracy), share(n.execute_accuracy), n.timed, n.abnormal, times(n.speedup_global), times(n.speedup_per_task)]));
if (published.length) $("published").append(table(["benchmark", "run", "tasks", "call accuracy", "execute accuracy", "timed", "abnormal", "speed-up, all together", "mean of tasks"], published, [2, 3, 4, 5, 6, 7, 8]),
  el("p", {}, "By the rules that these benchmarks publish; the speed-up is a ratio of sums."));
else $("published").hidden = true;

// Curves
const fastPlot = () => {
  const x = (p) => 50 + 195 * p, y = (value) => 235 - 215 * value;
  const node = frame("Share of all candidates that are correct and faster than p", [0, 0.5, 1, 1.5, 2].map((p) => [x(p), p]), [0, 0.25, 0.5, 0.75, 1].map((v) => [y(v), 100 * v + " %"]), "p", "fast_p, with 95 % intervals");
  series.forEach((item, i) => {
    const rows = item.numbers.fast_p || [], colour = COLOURS[i % COLOURS.length];
    if (!rows.length) return;
    const known = rows.filter((r) => r.low !== null);
    const band = known.map((r) => `${x(r.p)},${y(r.high)}`).concat([...known].reverse().map((r) => `${x(r.p)},${y(r.low)}`)).join(" ");
    node.append(svg("polygon", { points: band, fill: colour, opacity: 0.15 }), svg("polyline", { points: rows.map((r) => `${x(r.p)},${y(r.fast_p)}`).join(" "), fill: "none", stroke: colour, "stroke-width": 2 }));
    for (const r of rows) { const dot = svg("circle", { cx: x(r.p), cy: y(r.fast_p), r: 3.5, fill: colour }); dot.append(svg("title", {}, `${item.name}: fast_${r.p} ${share(r.fast_p)}` + (r.low === null ? "" : ` [${share(r.low)}, ${share(r.high)}]`))); node.append(dot); }
  });
  return node;
};
const judgements = (item) => item.run.rows.flatMap((row) => row.judgements.filter((j) => j.protocol === item.protocol).map((j) => [row, j]));
const speedPlot = () => {
  const low = Math.log2(0.125), x = (v) => 50 + 390 * (Math.min(Math.max(Math.log2(v), low), 3.32) - low) / (3.32 - low), y = (value) => 235 - 215 * value;
  const node = frame("Distribution of the speed-ups of correct candidates", [0.125, 0.25, 0.5, 1, 2, 4, 8].map((v) => [x(v), v]), [0, 0.25, 0.5, 0.75, 1].map((v) => [y(v), 100 * v + " %"]), "speed-up", "share of correct candidates up to this speed-up");
  series.forEach((item, i) => {
    const values = judgements(item).map(([, j]) => j.speedup).filter((v) => v !== undefined).sort((a, b) => a - b);
    const ends = ["low", "high"].map((end) => judgements(item).map(([, j]) => j[end]).filter((v) => v !== undefined).sort((a, b) => a - b).map((v, k, all) => `${x(v)},${y((k + 1) / all.length)}`));
    node.append(svg("polygon", { points: ends[0].concat(ends[1].reverse()).join(" "), fill: COLOURS[i % COLOURS.length], opacity: 0.15 }));
    // Steps from 0 on, so that a single candidate shows.
    const steps = values.flatMap((v, k) => [`${x(v)},${y(k / values.length)}`, `${x(v)},${y((k + 1) / values.length)}`]);
    if (values.length) node.append(svg("polyline", { points: [`50,${y(0)}`, ...steps, `440,${y(1)}`].join(" "), fill: "none", stroke: COLOURS[i % COLOURS.length], "stroke-width": 2 }));
  });
  return node;
};
// A training on texts has no candidate.
for (const name of ["headline", "curves", "kinds", "candidates", "where"]) $(name).hidden = !series.length && !data.runs.some((run) => run.rows.length);
// A single candidate has no share and no distribution.
const single = data.runs.length === 1 && first.kind === "eval";
if (single) for (const name of ["headline", "curves", "kinds"]) $(name).hidden = true;
$("curves").append(legend(), el("div", { class: "plots" }, fastPlot(), speedPlot()));

// Groups, kinds, flips
const grouped = series.filter((item) => item.numbers.groups);
if (grouped.length) {
  const names = [...new Set(grouped.flatMap((item) => Object.keys(item.numbers.groups)))].sort();
  const rows = names.flatMap((name) => grouped.filter((item) => (item.numbers.groups[name] || {}).problems).map((item) => {
    const n = item.numbers.groups[name];
    return [name, item.name, problems(n.problems), share(n.correct_share), share(fastOne(n).fast_p), times(n.geometric_mean)];
  }));
  $("groups").append(table(["group", "run", "shares of", "correct", "fast_1", "geometric mean"], rows, [2, 3, 4, 5]),
    explains("group", grouped.map((item) => [item.numbers.explained_by_group, item.name]), "groups do not differ"));
} else $("groups").hidden = true;
const counts = (found) => Object.entries(found).sort((a, b) => b[1] - a[1]).map(([name, count]) => `${count} ${name}`).join(", ") || "none";
$("kinds").append(table(["run", "verdicts", "kinds of failure", "findings", "labels", "weak problems left out"],
  series.map((item) => [item.name, counts(item.numbers.verdicts), counts(item.numbers.kinds), counts(item.numbers.findings), counts(item.numbers.labels),
    item.numbers.weak_left_out + (item.protocol === "strict" && item.run.problems_not_linted ? ` (${item.run.problems_not_linted} problems were never linted)` : "")])));
const flips = data.runs.flatMap((run) => run.summary.flips.map((flip) => ({ ...flip, ask: whose(run, flip.ask) }))), kinds = data.runs.flatMap((run) => run.summary.flip_kinds.map((kind) => [run.name, kind]));
const says = (verdicts) => Object.entries(verdicts).map(([name, verdict]) => `${name}: ${verdict}`).join(", ");
const more = kinds.reduce((sum, [, kind]) => sum + kind.count, 0) - flips.length;
const defect = kinds.some(([, kind]) => kind.cause) ? ["by which defect"] : [];
if (flips.length) $("flips").append(
  table(["run", "verdicts", ...defect, "candidates"], kinds.map(([name, kind]) => [name, says(kind.verdicts), ...defect.map(() => kind.cause), kind.count]), [2 + defect.length]),
  table(["candidate", "verdicts", ...defect, "why"], flips.map((flip) => [flip.ask, says(flip.verdicts), ...defect.map(() => flip.cause), flip.why])),
  ...(more ? [el("p", {}, `${more} more are in report.csv.`)] : []));
else $("flips").hidden = true;

// Roofline
const points = data.runs.flatMap((run) => Object.entries(run.whole).flatMap(([key, whole]) => whole.lights.map((light) => ({ key: whose(run, key), ...light }))));
if (points.length) {
  // Points whose operations are unknown stand on a place of their own, to the left.
  const unknown = points.some((p) => !p.intensity), from = unknown ? 150 : 50, at = (power) => from + (430 - from) * (power + 2) / 6;
  const x = (p) => (p.intensity ? at(Math.min(Math.max(Math.log10(p.intensity), -2), 4)) : 85), y = (p) => 235 - 215 * Math.min(p.share, 1.2) / 1.2;
  const node = frame("Roofline fraction against operations per byte", [...(unknown ? [[85, "not counted"]] : []), ...[[-2, "0.01"], [0, "1"], [2, "100"], [4, "10,000"]].map(([power, text]) => [at(power), text])], [0, 0.4, 0.8, 1.2].map((v) => [235 - 215 * v / 1.2, 100 * v + " %"]), "operations per necessary byte", "share of what this device was seen to do at most");
  for (const p of points) { const dot = svg("circle", { cx: x(p), cy: y(p), r: 4, fill: p.limit === "memory" ? COLOURS[0] : COLOURS[1], opacity: 0.7 }); dot.append(svg("title", {}, `${p.key}, ${p.case}: ${share(p.share)}, limited by ${p.limit}`)); node.append(dot); }
  $("roofline").append(el("p", {}, "Blue is limited by memory, orange by computing; ceilings were measured on the device."), node);
} else $("roofline").hidden = true;

// Candidates
const lines = data.runs.flatMap((run, number) => run.rows.flatMap((row) => row.judgements.map((item) => ({ run, number, row, item }))));
const verdicts = [...new Set(lines.map((line) => line.item.verdict))].sort();
for (const name of verdicts) $("verdict").append(el("option", { value: name }, name));
const PAGE = 200;
let shown = PAGE, chosen = lines;
const suspicion = (line) => (line.item.verdict === "rejected" ? 4 : 0) + (line.item.findings || []).length + (line.item.speedup > 10 ? 2 : 0);
const paint = (text) => {
  const made = document.createDocumentFragment();
  const pattern = /(#[^\n]*|\/\/[^\n]*)|("""[\s\S]*?"""|'[^'\n]*'|"[^"\n]*")|\b(def|class|return|import|from|for|in|if|else|while|with|as|template|__global__|void|float|int|const|auto|extern)\b/g;
  let last = 0;
  for (const match of text.matchAll(pattern)) {
    made.append(text.slice(last, match.index));
    made.append(el("span", { class: match[1] ? "c" : match[2] ? "s" : "k" }, match[0]));
    last = match.index + match[0].length;
  }
  made.append(text.slice(last));
  return made;
};
const detail = (line) => {
  const whole = line.run.whole[`${line.row.ask}/${line.item.protocol}`];
  const cell = el("td", { colspan: 5, class: "detail" });
  if (!line.item.report) { cell.append(el("p", {}, "It has no report. " + (line.item.reason || ""))); return cell; }
  const path = quoted(`${line.run.path}/${line.item.report}`);
  if (!whole) { cell.append(el("p", {}, "Its report is not in this page; make it with --all-candidates, or run: "), el("code", {}, `tilewright explain ${path}`), el("p", {}, "Again, with the same inputs: "), el("code", {}, `tilewright eval --from-report ${path}`)); return cell; }
  if (whole.message && whole.message !== line.item.reason) cell.append(el("pre", { class: "source", tabindex: 0 }, whole.message));
  if (whole.failing) cell.append(el("p", {}, "First wrong input sample: " + whole.failing));
  if (whole.comparisons.length) cell.append(table(["case", "baseline", "time of baseline", "time of candidate", "speed-up"], whole.comparisons.map((c) => [c.case, c.baseline, scaled(c.reference_us), scaled(c.candidate_us), speed({ speedup: c.speedup, low: c.low === null ? undefined : c.low, high: c.high })])));
  for (const finding of whole.findings) cell.append(el("p", {}, `${finding.code}: ${finding.summary}`), el("code", {}, JSON.stringify(finding.evidence)));
  for (const sentence of whole.advice) cell.append(el("p", {}, sentence));
  const source = el("pre", { class: "source", tabindex: 0 }); source.append(paint(whole.source));
  cell.append(el("p", {}, whole.files.join(", ") + ":"), source);
  if (whole.cut) cell.append(el("p", {}, "The rest of the source is in its report."));
  for (const [what, words] of [["All that is known: ", "explain"], ["Again, with the same inputs: ", "eval --from-report"]]) cell.append(el("p", {}, what, el("code", {}, `tilewright ${words} ${path}`)));
  return cell;
};
const linkOf = (line) => `${line.number}/${line.row.ask}/${line.item.protocol}`;
const draw = () => {
  const wanted = $("verdict").value, text = $("find").value.toLowerCase(), order = $("order").value;
  chosen = lines.filter((line) => (!wanted || line.item.verdict === wanted) && (!text || `${whose(line.run, line.row.ask)} ${line.row.about} ${line.row.trajectory} ${line.item.reason || ""} ${line.row.note}`.toLowerCase().includes(text)));
  if (order === "odd") chosen.sort((a, b) => suspicion(b) - suspicion(a));
  if (order === "slow") chosen.sort((a, b) => (a.item.speedup ?? Infinity) - (b.item.speedup ?? Infinity));
  if (order === "fast") chosen.sort((a, b) => (b.item.speedup ?? 0) - (a.item.speedup ?? 0));
  const body = $("rows").tBodies[0];
  body.replaceChildren(...chosen.slice(0, shown).map((line) => {
    const button = el("button", { type: "button", class: "row", "aria-expanded": "false" }, ...address(whose(line.run, line.row.ask)));
    const marks = [...(line.item.labels || []), ...(line.item.findings || [])].join(", ");
    const why = [line.item.verdict === "correct" ? "" : line.item.reason || "", marks].filter(Boolean).join("; ");
    const row = el("tr", { id: linkOf(line) }, el("td", {}, button, ...(line.row.about ? [el("span", { class: "title" }, line.row.about)] : []), ...(line.row.trajectory ? [el("p", { class: "of" }, line.row.trajectory)] : [])), el("td", {}, line.item.protocol), el("td", { class: "verdict " + line.item.verdict }, line.item.verdict), el("td", { class: "n" }, speed(line.item)), el("td", { class: "why" }, why, ...(line.row.note ? [el("p", { class: "note" }, "A person says: " + line.row.note)] : [])));
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-expanded") === "true";
      button.setAttribute("aria-expanded", String(!open));
      if (open) row.nextSibling.remove(); else row.after(el("tr", {}, detail(line)));
      history.replaceState(null, "", open ? location.pathname : "#" + encodeURIComponent(row.id));
    });
    return row;
  }));
  $("count").textContent = `${Math.min(shown, chosen.length)} of ${chosen.length}`;
  $("more").hidden = shown >= chosen.length;
};
// The keys j and k open the next and the previous candidate and close the one before.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input, select, textarea")) return;
  const change = { j: 1, k: -1 }[event.key], buttons = [...$("rows").querySelectorAll("button.row")];
  if (!change || !buttons.length) return;
  const open = buttons.findLastIndex((button) => button.getAttribute("aria-expanded") === "true"), next = buttons[open < 0 ? 0 : open + change];
  if (!next) return;
  for (const button of buttons) if (button.getAttribute("aria-expanded") === "true") button.click();
  next.click();
  next.focus();
});
for (const id of ["verdict", "find", "order"]) $(id).addEventListener("input", () => { shown = PAGE; draw(); });
$("more").addEventListener("click", () => { shown += PAGE; draw(); });
draw();
// A link to a candidate opens it, also below the rows that are shown at first.
const follow = () => {
  const place = chosen.findIndex((line) => "#" + encodeURIComponent(linkOf(line)) === location.hash);
  if (place >= shown) { shown = place + 1; draw(); }
  const button = place < 0 ? null : $("rows").querySelectorAll("button.row")[place];
  if (button && button.getAttribute("aria-expanded") === "false") { button.click(); button.scrollIntoView(); }
};
window.addEventListener("hashchange", follow);
if (single && !location.hash) $("rows").querySelector("button.row").click();
follow();

// Difference of two sources
const sources = data.runs.flatMap((run) => {
  const problems = new Map(run.rows.map((row) => [row.ask, row.problem]));
  return Object.entries(run.whole).map(([key, whole]) => { const ask = key.slice(0, key.lastIndexOf("/")); return { name: whose(run, key), source: whole.source, ask: whose(run, ask), problem: problems.get(ask) }; });
});
// The first two candidates of one problem, or else the first two candidates.
const firstPair = () => {
  const other = (one, alike) => sources.findIndex((two) => two.ask !== one.ask && alike(two));
  const left = sources.findIndex((one) => other(one, (two) => two.problem === one.problem) >= 0);
  return left >= 0 ? [left, other(sources[left], (two) => two.problem === sources[left].problem)] : [0, Math.max(other(sources[0], () => true), 1)];
};
if (sources.length > 1) {
  const pair = firstPair();
  ["left", "right"].forEach((id, side) => { sources.forEach(({ name }, k) => $(id).append(el("option", { value: k }, name))); $(id).value = pair[side]; });
  const compare = () => $("difference").replaceChildren(...difference(sources[$("left").value].source, sources[$("right").value].source).map(([kind, text]) => el("span", kind ? { class: kind } : {}, text + "\n")));
  for (const id of ["left", "right"]) $(id).addEventListener("input", compare);
  compare();
} else $("diff").hidden = true;

// Where
$("where").append(table(["run", "folder", "device", "tilewright", "hardware and versions", "reports seen"], data.runs.flatMap((run) => (run.machines.length ? run.machines : [["", 0]]).map(([text, count]) => [run.name, run.folder, run.device, run.evaluator, text, count])), [5]));
document.body.dataset.ready = "yes";
})();
