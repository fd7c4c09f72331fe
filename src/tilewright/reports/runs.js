(() => {
const KINDS = ["correct", "incorrect", "failed", "rejected", "unjudged"], PAGE = 100;
const data = JSON.parse($("data").textContent), runs = new Map(), kinds = new Set();
const many = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
let shown = PAGE, complete = !data.live;
const ago = (at) => {
  const s = Math.max(Date.now() / 1000 - at, 0);
  return s < 90 ? `${Math.round(s)} s ago` : s < 5400 ? `${Math.round(s / 60)} min ago` : s < 129600 ? `${Math.round(s / 3600)} h ago` : new Date(at * 1000).toISOString().slice(0, 10);
};
const best = (run) => run.step !== null ? `step ${run.step}` + (run.reward === null ? "" : `, reward ${run.reward.toFixed(2)}`) : speed(run);
const split = (run) => {
  const total = KINDS.reduce((sum, kind) => sum + (run.verdicts[kind] || 0), 0);
  if (!total) return "";
  const text = KINDS.filter((kind) => run.verdicts[kind]).map((kind) => `${run.verdicts[kind]} ${kind}`).join(", ");
  return el("span", { title: text }, el("span", { class: "split", role: "img", "aria-label": text }, ...KINDS.filter((kind) => run.verdicts[kind]).map((kind) => el("i", { class: kind, style: `width:${100 * run.verdicts[kind] / total}%` }))), ` ${run.verdicts.correct || 0} of ${total} correct`);
};
const cells = (run) => {
  // The page of a run of eval has its one candidate; the terminal explains more.
  const explained = run.kind === "eval" ? [el("span", { class: "title" }, `tilewright explain ${quoted(`${data.folder}/${run.name}`)}`)] : [];
  const name = data.live ? el("a", { href: `runs/${encodeURIComponent(run.name)}/` }, run.name) : run.name;
  const parts = [run.problems, run.by].filter(Boolean).join(", by ");
  return el("tr", {}, el("td", {}, name, el("span", { class: "title" }, [run.kind, run.device].filter(Boolean).join(", ")), ...explained),
    el("td", { class: `state ${run.state === "running" ? "running" : ""}` }, run.state),
    el("td", {}, parts), el("td", { class: "n" }, run.turns), el("td", {}, split(run)),
    el("td", {}, best(run), ...(run.best_problem && run.best_problem !== run.problems ? [el("span", { class: "title" }, run.best_problem)] : [])),
    el("td", { class: "n" }, run.tokens ? run.tokens.toLocaleString("en") : ""), el("td", { class: "n" }, run.device_s ? run.device_s.toFixed(1) : ""),
    el("td", { title: new Date(run.last_at * 1000).toISOString() }, ago(run.last_at), ...(run.damaged ? [el("span", { class: "title" }, many(run.damaged, "damaged line"))] : [])));
};
const draw = () => {
  const all = [...runs.values()], words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean), state = $("state").value, kind = $("kind").value, order = $("order").value;
  const found = all.filter((run) => (!state || run.state.startsWith(state)) && (!kind || run.kind === kind) && words.every((word) => `${run.name} ${run.problems} ${run.by} ${run.best_problem}`.toLowerCase().includes(word)));
  found.sort((a, b) => order === "name" ? (a.name < b.name ? 1 : -1) : (b[order] ?? -1) - (a[order] ?? -1));
  const running = all.filter((run) => run.state === "running").length, right = all.filter((run) => run.verdicts.correct).length;
  $("sentence").replaceChildren(el("p", {}, `${many(all.length, "run")}: ${running} ${running === 1 ? "is" : "are"} running, ${right} ${right === 1 ? "has" : "have"} a correct candidate.`));
  $("about").textContent = complete ? "" : `${all.filter((run) => run.state !== "reading").length} of ${all.length} logs are read`;
  $("count").textContent = `${Math.min(shown, found.length)} of ${found.length}`;
  const focused = document.activeElement.getAttribute("href");
  $("runs").tBodies[0].replaceChildren(...found.slice(0, shown).map(cells));
  if (focused) [...$("runs").querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
  $("more").hidden = shown >= found.length;
  document.body.dataset.ready = "yes";
};
const take = (rows) => {
  for (const run of rows) {
    runs.set(run.name, run);
    if (run.kind && !kinds.has(run.kind)) { kinds.add(run.kind); $("kind").append(el("option", {}, run.kind)); }
  }
  draw();
};
for (const id of ["state", "kind", "order", "find"]) $(id).addEventListener("input", () => { shown = PAGE; draw(); });
$("more").addEventListener("click", () => { shown += PAGE; draw(); });
if (!data.live) { take(data.rows); return; }
const source = new EventSource("events");
source.onmessage = (event) => { const found = JSON.parse(event.data); complete = found.complete; take(found.rows); };
source.onerror = () => { $("about").textContent = "The server does not answer; the page tries again."; };
setInterval(draw, 10000);
})();
