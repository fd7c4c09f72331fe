(() => {
const KINDS = ["correct", "incorrect", "failed", "rejected", "unjudged", "error"];
const MINUTES = 60, RETRY_MS = 2000;
const seconds = (value) => (value === null || value === undefined ? "" : scaled(value * 1e6));
const clock = (at) => new Date(at * 1000).toLocaleTimeString();
const many = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
let token = sessionStorage.getItem("tilewright-token") || "", following = null;
const headers = () => (token ? { authorization: `Bearer ${token}` } : {});

// One bar for each minute, of parts on each other.
const bars = (label, yText, minutes, now, parts, unit) => {
  const first = Math.floor(now / 60) * 60 - 60 * (MINUTES - 1), totals = minutes.map((minute) => parts(minute).reduce((sum, [, value]) => sum + value, 0));
  const top = Math.max(2, 2 * Math.ceil(Math.max(0, ...totals) / 2)), x = (at) => 50 + 390 * (at - first) / (60 * MINUTES), y = (value) => 235 - 215 * value / top;
  const node = frame(label, [0, 15, 30, 45, 60].map((ago) => [50 + 390 * (60 - ago) / 60, ago ? `-${ago}` : "now"]), [0, 0.5, 1].map((part) => [y(part * top), unit(part * top)]), "minutes", yText);
  minutes.forEach((minute) => {
    let floor = 0;
    if (minute.at < first) return;
    for (const [kind, value] of parts(minute)) {
      if (!value) continue;
      const bar = svg("rect", { x: x(minute.at), width: 390 / MINUTES - 1, y: y(floor + value), height: y(floor) - y(floor + value), class: KINDS.includes(kind) ? kind : "", fill: KINDS.includes(kind) ? "" : COLOURS[0] });
      bar.append(svg("title", {}, `${clock(minute.at)}: ${unit(value)} ${kind}`));
      node.append(bar);
      floor += value;
    }
  });
  return node;
};
const opened = new Map();
const cell = (report) => el("td", { colspan: 7, class: "detail" },
  el("p", {}, `${report.verdict}` + (report.speedup ? `, ${speed({ speedup: report.speedup, low: report.speedup_low, high: report.speedup_high })}` : "") + (report.outcome.message ? `: ${report.outcome.message}` : "")),
  ...(report.comparisons.length ? [table(["case", "baseline", "time of baseline", "time of candidate", "speed-up"], report.comparisons.map((c) => [c.case, c.baseline, scaled(c.baseline_timing.median_us), scaled(c.candidate.median_us), speed({ speedup: c.speedup, low: c.speedup_low, high: c.speedup_high })]))] : []),
  ...[...report.findings.map((item) => `${item.code}: ${item.summary}`), ...report.labels.map((item) => `${item.name}: ${item.detail}`)].map((text) => el("p", {}, text)),
  el("pre", { class: "source", tabindex: 0 }, report.request.candidate.files.map((file) => file.text || "").join("\n\n").slice(0, 20000)));
// The address of the page names the task that was opened last.
const address = () => /^#task-(.+)$/.exec(decodeURIComponent(location.hash))?.[1];
const show = async (key) => {
  if (opened.has(key)) { opened.delete(key); history.replaceState(null, "", location.pathname); draw(); return; }
  history.replaceState(null, "", `#task-${encodeURIComponent(key)}`);
  const answer = await fetch(`/v1/tasks/${encodeURIComponent(key)}/report`, { headers: headers() });
  opened.set(key, answer.ok ? cell(await answer.json()) : el("td", { colspan: 7, class: "detail" }, (await answer.json()).detail));
  draw();
};
let latest = null;
const draw = () => {
  const found = latest, now = Date.now() / 1000, verdicts = {};
  for (const minute of found.minutes) for (const [kind, count] of Object.entries(minute.verdicts)) verdicts[kind] = (verdicts[kind] || 0) + count;
  const ended = Object.values(verdicts).reduce((a, b) => a + b, 0), errors = found.minutes.reduce((sum, minute) => sum + minute.internal_errors, 0);
  $("sentence").replaceChildren(el("p", {}, `${many(found.queue.running, "task")} ${found.queue.running === 1 ? "runs" : "run"} and ${found.queue.waiting} ${found.queue.waiting === 1 ? "waits" : "wait"}; ${many(ended, "verdict")} in the last hour, ${verdicts.correct || 0} of them correct` + (errors ? `; ${many(errors, "internal error")}` : "") + "."));
  $("about").textContent = `${found.device}, tilewright ${found.version}, up for ${seconds(found.uptime_s)}` + (found.wait_median_s === null ? "" : `; the ${found.waited_tasks === 1 ? "task" : `${found.waited_tasks} tasks`} that began last waited ${seconds(found.wait_median_s)} (median), ${seconds(found.wait_p95_s)} (95th percentile)`) + (found.queue.draining ? "; it drains and accepts nothing" : "");
  const idle = found.workers.filter((worker) => worker.state === "idle").length;
  $("running").replaceChildren(found.running.length ? table(["task", "problem", "stage", "for", "since the start"], found.running.map((item) => [item.key.slice(0, 12), el("span", { title: item.title }, item.problem), item.stage, item.stage ? seconds(Math.max(now - item.stage_at, 0)) : "", seconds(Math.max(now - item.started_at, 0))]), [3, 4]) : el("p", {}, "No task of yours is evaluated."),
    el("p", {}, `${idle} of ${many(found.workers.length, "worker")} idle; stored: ` + (Object.entries(found.tasks).map(([state, count]) => `${count} ${state}`).join(", ") || "nothing") + "."));
  const kinds = (minute) => KINDS.map((kind) => [kind, kind === "error" ? minute.internal_errors : minute.verdicts[kind] || 0]);
  $("verdicts").replaceChildren(bars("Verdicts and internal errors by minute", "verdicts per minute", found.minutes, now, kinds, (value) => String(Math.round(value))),
    el("p", { class: "legend" }, ...KINDS.map((kind) => el("span", {}, el("i", { class: kind }), kind === "error" ? "internal error" : kind))));
  $("busy").replaceChildren(bars("Seconds in which evaluations held a device, by minute", "seconds on devices per minute", found.minutes, now, (minute) => Object.entries(minute.busy_s), (value) => `${value.toFixed(value < 10 ? 1 : 0)} s`));
  $("failed").hidden = !found.failures.length;
  $("failures").replaceChildren(table(["at", "task", "what happened"], found.failures.map((item) => [clock(item.at), item.key.slice(0, 12), item.message])));
  // New rows take the place of old ones; who works by keyboard stays where they were.
  const focused = document.activeElement.dataset.key;
  $("recent").tBodies[0].replaceChildren(...found.recent.flatMap((task) => {
    const button = el("button", { type: "button", class: "row", "aria-expanded": String(opened.has(task.key)), title: task.key, "data-key": task.key }, task.problem || task.key.slice(0, 12)), name = task.problem ? [el("span", { class: "title" }, [task.title, task.key.slice(0, 12)].filter(Boolean).join(", "))] : [];
    button.addEventListener("click", () => show(task.key));
    const row = el("tr", {}, el("td", {}, button, ...name), el("td", {}, task.state), el("td", { class: "verdict " + (task.verdict || "") }, task.verdict || ""), el("td", { class: "n" }, speed({ speedup: task.speedup, low: task.speedup_low, high: task.speedup_high })), el("td", { class: "n" }, task.started_at ? seconds(task.started_at - task.submitted_at) : ""), el("td", { class: "n" }, task.ended_at && task.started_at ? seconds(task.ended_at - task.started_at) : ""), el("td", {}, clock(task.submitted_at)));
    return opened.has(task.key) ? [row, el("tr", {}, opened.get(task.key))] : [row];
  }));
  if (focused) [...$("recent").querySelectorAll("button")].find((button) => button.dataset.key === focused)?.focus();
  document.body.dataset.ready = "yes";
};
const ask = (text) => {
  $("content").hidden = true; $("sentence").replaceChildren(); $("about").textContent = "";
  $("access").hidden = false; $("refused").textContent = text; $("token").focus();
  document.body.dataset.ready = "yes";
};
// The task before or after the opened one, in the order of the list.
const stepTo = (change) => {
  const keys = latest ? latest.recent.map((task) => task.key) : [], place = keys.indexOf(address()), next = keys[place < 0 ? 0 : place + change];
  if (!next) return;
  opened.clear();
  show(next).then(() => [...$("recent").querySelectorAll("button")].find((button) => button.dataset.key === next)?.focus());
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input, select, textarea")) return;
  if (event.key === "j") stepTo(1);
  if (event.key === "k") stepTo(-1);
  if (event.key === "Escape" && address()) { opened.clear(); history.replaceState(null, "", location.pathname); draw(); }
});
let stop = () => {}, followed = false;
const follow = async () => {
  const mine = (following = {});
  stop();
  try {
    const answer = await fetch("/v1/overview/events", { headers: headers() });
    if (answer.status === 401 || answer.status === 403) { ask(token ? (await answer.json()).detail : ""); return; }
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    $("access").hidden = true; $("content").hidden = false;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    stop = () => reader.cancel();
    while (following === mine) {
      const { value, done } = await reader.read();
      if (done) break;
      text += value;
      const parts = text.split("\n\n");
      text = parts.pop();
      const last = parts.filter((part) => part.includes("data: ")).pop();
      if (last && following === mine) { latest = JSON.parse(last.slice(last.indexOf("data: ") + 6)); draw(); if (!followed) { followed = true; if (address()) show(address()); } }
    }
  } catch (error) { $("about").textContent = `The server does not answer (${error.message}); the page tries again.`; document.body.dataset.ready = "yes"; }
  if (following === mine) setTimeout(follow, RETRY_MS);
};
$("access").addEventListener("submit", (event) => { event.preventDefault(); token = $("token").value.trim(); sessionStorage.setItem("tilewright-token", token); $("token").value = ""; follow(); });
follow();
})();
