// The tables of steps, cells and nights.

const MORE = 100;
let limit = MORE, stepLimit = 30;

// The steps of a cell in one night, on whatever machines, are a line.
function stepTable() {
  control("rule").textContent = `A night is a step if its whole 95 % interval lies more than ${Math.round(100 * data.tolerance)} % from the median since the step before, and the next night says so too.`;
  if (!data.steps.length) { control("step-table").innerHTML = `<p>${data.nights.length > 1 ? "No step." : "One night alone: there is nothing to compare it with."}</p>`; return; }
  const groups = new Map();
  data.steps.forEach((step, n) => { const key = `${step.night} ${step.cell}`; if (!groups.has(key)) groups.set(key, []); groups.get(key).push([step, n]); });
  const every = [...groups.values()].map(group => group.sort(([a], [b]) => a.machine - b.machine)), body = every.slice(0, stepLimit).map(group => {
    const [{night, cell}, first] = group[0], distinct = make => [...new Set(group.map(([step]) => make(step)))];
    const changes = data.machines.map((_, m) => { const found = group.find(([step]) => step.machine === m)?.[0]; return found ? `<td class="step">${signed(found)}<br><span class="muted">${digits(found.old, 4)} → ${digits(found.new, 4)} µs</span></td>` : "<td></td>"; });
    return `<tr><td class="day">${escaped(data.nights[night].day)}</td><td><button type="button" class="link" data-step="${first}">${escaped(data.cells[cell].name)} ${escaped(data.cells[cell].source)}</button></td>${changes.join("")}<td>${distinct(step => escaped(step.causes.join(", "))).join("<br>")}</td><td>${distinct(step => rangeLine(step.before, step.night)).join("<br>")}</td></tr>`;
  }).join("");
  control("step-table").innerHTML = table(["night", "cell", ...data.machines.map(m => escaped(shortName(m))), "besides", "commits"], body, 99)
    + (every.length > stepLimit ? `<p><button type="button" id="more-steps">Show all ${every.length}</button></p>` : "");
}

const matching = () => {
  const words = control("words").value.toLowerCase().split(/\s+/).filter(Boolean), source = control("source").value, which = control("which").value;
  const stepped = new Set(data.steps.map(step => step.cell));
  const found = data.cells.map((_, n) => n).filter(n => (!source || data.cells[n].source === source) && (!which || stepped.has(n)) && words.every(word => `${data.cells[n].name} ${data.cells[n].source}`.toLowerCase().includes(word)));
  return [...found.filter(n => stepped.has(n)), ...found.filter(n => !stepped.has(n))];
};

function cellTable() {
  const found = matching(), shown = found.slice(0, limit);
  document.querySelector("#cell-table thead").innerHTML = `<tr><th scope="col">cell</th><th scope="col">source</th>${data.machines.map(m => `<th scope="col" class="machine">${escaped(shortName(m))}</th><th scope="col" class="n">µs, last</th><th scope="col" class="n">over all</th>`).join("")}</tr>`;
  document.querySelector("#cell-table tbody").innerHTML = shown.map(n => {
    const cell = data.cells[n], parts = data.machines.map((_, m) => {
      const rows = points(n, m);
      if (!rows.length) return `<td class="machine muted">not run</td><td></td><td></td>`;
      const change = rows.at(-1)[P.us] / rows[0][P.us] - 1, css = Math.abs(change) <= data.tolerance ? "" : change > 0 ? "up" : "down";
      return `<td class="machine machine-${m % 4}">${spark(n, m)}</td><td class="n">${digits(rows.at(-1)[P.us], 4)}</td><td class="n"><span class="${css}">${rows.length > 1 ? percent(change) : ""}</span></td>`;
    });
    return `<tr><td><button type="button" class="link" data-cell="${n}">${escaped(cell.name)}</button></td><td>${escaped(cell.source)}</td>${parts.join("")}</tr>`;
  }).join("");
  control("shown").textContent = `${shown.length} of ${data.cells.length} cells. A line is the time over the nights, at least a tenth of it high; the band is the 95 % interval, a dashed line a step.`;
  control("more").hidden = found.length <= limit;
}

function nightTable() {
  const heads = ["night", "commit", ...data.machines.map(m => `${escaped(m.name)} ${escaped(m.target)}`)];
  const body = data.nights.map((night, at) => `<tr><td class="day">${escaped(night.day)} <span class="muted">${escaped(night.minute)}</span></td><td>${commitLink(night.commit, night.commit.slice(0, 12))}</td>${data.machines.map(m => {
    const one = m.nights[at], mark = m.marks.find(([n]) => n === at);
    return one ? `<td>driver ${escaped(one.driver || "unknown")}, ${escaped(Object.entries(one.tools).map(tool => tool.join(" ")).join(", "))}${mark ? `<br><b>changed: ${escaped(mark[1])}</b>` : ""}</td>` : '<td class="muted">not run</td>';
  }).join("")}</tr>`).reverse().join("");
  control("night-table").innerHTML = table(heads, body, heads.length);
}

control("source").innerHTML = `<option value="">all</option>${[...new Set(data.cells.map(c => c.source))].sort().map(s => `<option>${escaped(s)}</option>`).join("")}`;
stepTable();
cellTable();
nightTable();
document.addEventListener("click", event => {
  const step = event.target.closest("[data-step]"), cell = event.target.closest("[data-cell]");
  if (step) { const one = data.steps[step.dataset.step]; openCell(one.cell, one.machine, one.night); }
  if (cell) openCell(Number(cell.dataset.cell));
  if (event.target.id === "more-steps") { stepLimit = Infinity; stepTable(); }
});
const again = () => { limit = MORE; cellTable(); };
control("filters").addEventListener("input", again);
control("filters").addEventListener("reset", () => setTimeout(again));
control("filters").addEventListener("submit", event => event.preventDefault());
control("more").addEventListener("click", () => { limit += 5 * MORE; cellTable(); });
document.documentElement.dataset.ready = performance.now().toFixed(0);
