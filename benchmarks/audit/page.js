const shown = JSON.parse($("data").textContent);
const heads = shown.columns.map((column) => column.name);
const numeric = shown.columns.flatMap((column, place) => (column.numeric ? [place] : []));
const filters = ["result", "dtype", "pass"];
let order = 0, down = false;
$("about").textContent = shown.about;
for (const name of filters) {
  for (const value of [...new Set(shown.rows.map((row) => row[name]))].sort()) $(name).append(el("option", {}, value));
}
// A row without a number stands last in either order.
const compared = (one, other) => {
  const [a, b] = [one.order[order], other.order[order]];
  if (a === null || b === null) return (a === null) - (b === null);
  return (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
};
const draw = () => {
  const wanted = $("find").value.toLowerCase();
  const rows = shown.rows.filter((row) => filters.every((name) => !$(name).value || row[name] === $(name).value) && row.cells.join(" ").toLowerCase().includes(wanted)).sort(compared);
  const made = table(heads, rows.map((row) => row.cells), numeric);
  made.querySelectorAll("th").forEach((head, place) => {
    const button = el("button", { type: "button" }, heads[place]);
    button.addEventListener("click", () => { down = order === place && !down; order = place; draw(); });
    head.setAttribute("aria-sort", order !== place ? "none" : down ? "descending" : "ascending");
    head.replaceChildren(button);
  });
  $("cells").replaceChildren(made);
  $("count").textContent = `${rows.length} of ${shown.rows.length} cells`;
};
for (const name of [...filters, "find"]) $(name).addEventListener("input", draw);
$("rest").append(table(["operator", "reason"], shown.not_judged));
$("claims").append(table(["claim", "source"], shown.claims));
draw();
document.body.dataset.ready = "yes";
