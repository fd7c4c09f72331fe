// One turn of a run: what was asked, where it comes from, what came of it.
const source = (text) => el("pre", { class: "source", tabindex: 0 }, text);
// Text for a reader, in contrast to code: long lines wrap.
const said = (text) => { const made = source(text); made.classList.add("prose"); return made; };
// The model of a recording whose replies a person wrote.
const BY_HAND = "by hand";
const folded = (title, ...content) => el("details", {}, el("summary", {}, title), ...content);
const MOST_CHILDREN = 20, MOST_ANCESTORS = 8;
// `rows` maps numbers of turns to their rows, `children` to the numbers of turns that build on them.
const turnParts = (turn, rows, children, trajectory) => {
  const row = rows.get(turn.n);
  const standing = (other) => el("span", { class: "verdict " + other.verdict }, other.verdict + (other.speedup ? " " + times(other.speedup) : ""));
  const link = (n) => {
    const other = rows.get(n);
    if (!other) return el("span", {}, `turn ${n + 1} of the log, which is not in this file`);
    const more = [other.operator, other.role === "measure" ? "trial" : ""].filter(Boolean).join(", ");
    return el("span", {}, el("a", { href: "#turn-" + n }, other.id), " ", standing(other), more ? ` (${more})` : "");
  };
  const linked = (named) => (named.n === null ? el("span", {}, `${named.id}, which is not in the log`) : link(named.n));
  const inline = (nodes) => nodes.flatMap((node, k) => (k ? [", ", node] : [node]));
  const few = (numbers) => {
    const fastest = [...numbers].sort((a, b) => (rows.get(b).speedup || 0) - (rows.get(a).speedup || 0)).slice(0, MOST_CHILDREN);
    return [...fastest.map((n) => el("li", {}, link(n))), ...(numbers.length > MOST_CHILDREN ? [el("li", {}, `and ${numbers.length - MOST_CHILDREN} more, none of them faster`)] : [])];
  };

  const facts = () => {
    const found = [["trajectory", trajectory(row)], ["turn", String(row.turn + 1)], ["role", turn.role], ["form of the prompt", turn.role === "measure" ? "" : turn.form], ["operator", turn.operator], ["model of the role", turn.policy], ["tokens", row.tokens === undefined ? "" : String(row.tokens)]];
    const known = turn.estimate;
    if (known) found.push(["estimate of its code", `${known.verdict}${known.speedup ? ", " + speed(known) : ""}, ${known.trials} trial${known.trials > 1 ? "s" : ""}`]);
    if (turn.unjudged_trials) found.push(["trials without a verdict", String(turn.unjudged_trials)]);
    const cells = found.filter(([, text]) => text).flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]);
    for (const named of turn.repeats) cells.push(el("dt", {}, "same code as"), el("dd", {}, linked(named)));
    if (row.leader !== undefined && row.leader !== row.n) cells.push(el("dt", {}, "new leader"), el("dd", {}, link(row.leader)));
    return el("dl", { class: "facts" }, ...cells);
  };

  // Ancestors by the first parent, oldest first; then this turn; then what builds on it.
  const lineage = () => {
    const line = [], seen = new Set([turn.n]);
    let at = row;
    while (at && at.parents.length && !seen.has(at.parents[0])) { seen.add(at.parents[0]); line.unshift(at.parents[0]); at = rows.get(at.parents[0]); }
    const own = children.get(turn.n) || [], trials = own.filter((n) => rows.get(n).role === "measure"), made = own.filter((n) => rows.get(n).role !== "measure");
    const cut = line.length > MOST_ANCESTORS ? [line[0], null, ...line.slice(-MOST_ANCESTORS + 1)] : line;
    const items = cut.map((n) => el("li", {}, n === null ? `${line.length - MOST_ANCESTORS} more between them` : link(n)));
    const here = el("li", { "aria-current": "true" }, el("b", {}, row.id), " ", standing(row));
    if (trials.length) here.append(el("p", {}, "Trials of its code:"), el("ul", {}, ...few(trials)));
    if (made.length) here.append(el("p", {}, "Children:"), el("ul", {}, ...few(made)));
    const parts = [el("h3", {}, "Lineage"), el("ol", { class: "lineage" }, ...items, here)];
    if (turn.parents.length > 1) parts.push(el("p", {}, "It has several parents: ", ...inline(turn.parents.map(linked))));
    else if (!line.length) parts.push(el("p", {}, turn.parents.length ? el("span", {}, "Its parent: ", linked(turn.parents[0])) : "It has no parent."));
    if (!own.length) parts.push(el("p", {}, "No turn builds on it."));
    return parts;
  };

  const choice = (found) => {
    const rules = Object.keys(found.probabilities), names = { sum: "by whole text", token: "by mean per token", word: "by mean per word" };
    const cells = found.choices.map((text, place) => [place + 1, text, ...rules.map((rule) => share(found.probabilities[rule][place])), place === found.taken ? "taken" : ""]);
    const notes = [];
    if (found.unclear) notes.push(el("p", {}, "Two replies named no choice, so that the first one was taken."));
    if (!rules.length) notes.push(el("p", {}, "The model gave no log-probabilities."));
    return [el("h3", {}, "Choice"), table(["number", "answer", ...rules.map((rule) => "probability " + names[rule]), "choice"], cells, rules.map((_, k) => 2 + k)), ...notes];
  };

  const measured = (report) => {
    const before = new Map((turn.parent ? turn.parent.comparisons : []).map((item) => [item.case + item.baseline, item]));
    const cells = report.comparisons.map((item) => {
      const then = before.get(item.case + item.baseline);
      return [item.case, item.baseline, scaled(item.reference_us), scaled(item.candidate_us), speed(item), then ? speed(then) : ""];
    });
    return [el("h3", {}, "What was measured, and what changed"), table(["case", "baseline", "time of baseline", "time of this turn", "speed-up", "speed-up of parent"], cells, [2, 3, 4, 5]), ...report.advice.map((sentence) => el("p", {}, sentence))];
  };

  const asked = () => {
    const parts = [];
    if (turn.instruction) parts.push(el("h3", {}, "Instruction"), source(turn.instruction));
    if (turn.shown.length) parts.push(el("h3", {}, "Turns that its prompt shows"), el("ul", {}, ...turn.shown.map((named) => el("li", {}, linked(named)))));
    if (turn.documents.length) parts.push(el("h3", {}, "Documents that its prompt shows"), ...turn.documents.map((item) => folded(item.title, source(item.text || "The run folder has no unchanged copy of it."))));
    return parts;
  };

  const parts = [el("p", {}, el("b", { class: "verdict " + row.verdict }, row.verdict), " ", speed(row), row.reason && !turn.refused ? " " + row.reason : "", row.marks.length ? ` (${row.marks.join(", ")})` : "")];
  if (turn.refused) parts.push(el("p", { class: "note" }, "Refused: " + turn.refused));
  parts.push(facts());
  const report = turn.report;
  if (report) {
    if (report.message) parts.push(source(report.message));
    for (const finding of report.findings) parts.push(el("p", {}, `${finding.code}: ${finding.summary}`), el("code", {}, JSON.stringify(finding.evidence)));
  }
  if (turn.choice) parts.push(...choice(turn.choice));
  parts.push(...lineage(), ...asked());
  if (report && report.comparisons.length) parts.push(...measured(report));
  if (turn.role === "say") parts.push(el("h3", {}, "Words of the model"), source(turn.reply));
  else if (turn.role !== "choose") parts.push(el("h3", {}, "What the model is told of it"), said(turn.feedback || "nothing"), el("h3", {}, "Code"), source(turn.code || "there is none"));
  if (turn.parent && turn.code) {
    const lines = difference(turn.parent.code, turn.code).map(([kind, text]) => el("span", kind ? { class: kind } : {}, text + "\n"));
    parts.push(folded("Against the code of " + rows.get(turn.parent.n).id, el("pre", { class: "source", id: "changes", tabindex: 0 }, ...lines)));
  }
  if (turn.reasoning) parts.push(folded("What it thought aloud", source(turn.reasoning)));
  if (turn.reply) parts.push(folded(turn.model === BY_HAND ? "Reply, written by hand" : "Reply" + (turn.model ? " of " + turn.model : ""), source(turn.reply)));
  if (turn.prompt.length || !turn.prompt_as_recorded) {
    const messages = turn.prompt.map((message) => el("div", { class: "said" }, el("b", {}, message.role), source(message.text)));
    parts.push(folded(`Prompt (${turn.prompt.length} messages${turn.prompt_as_recorded ? "" : "; another version made it, so it may have read differently"})`, ...messages));
  }
  return parts;
};
