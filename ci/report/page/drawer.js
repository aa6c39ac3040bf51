// The drawer of a square: its shapes, errors and times, what a tool said, and the command that repeats it.

const drawer = document.getElementById("drawer");

function shapeRows(square) {
  const worst = {failed: 0, error: 1, passed: 2, "not run": 3};
  const rows = [...square.rows].sort((a, b) => worst[a[R.status]] - worst[b[R.status]] || (share(b) ?? -1) - (share(a) ?? -1));
  return rows.map(row => {
    const used = share(row), parts = [row[R.worst] && text(row[R.worst]), row[R.entries] && text(row[R.entries])].filter(Boolean);
    return `<tr><td>${escaped(text(row[R.shape]))}</td><td>${tag(row[R.status])}</td><td class="n">${digits(row[R.error])}</td><td class="n">${digits(row[R.bound])}</td><td class="n">${used === null ? "" : used.toFixed(0)}</td><td class="n">${digits(row[R.time])}</td><td class="n">${interval(row[R.low], row[R.high])}</td><td class="mono">${parts.map(escaped).join("<br>")}</td></tr>`
      + (text(row[R.detail]) ? `<tr><td colspan="8"><pre>${escaped(text(row[R.detail]))}</pre></td></tr>` : "");
  }).join("");
}

function openDrawer(key) {
  const square = squares.get(key), {cell, column} = square, name = fullName(cell, column), state = STATES[square.state];
  const target = data.columns[column].target, found = usage(cell, column);
  const counts = [square.ran ? `${square.passed}/${square.ran} passed` : "", square.notRun ? `${square.notRun} not run` : "", square.compiled ? `${square.compiled} entries compiled` : ""].filter(Boolean).join(", ");
  const times = square.times.map(row => `<tr><td>${escaped(text(row[T.name]))}</td><td class="n">${digits(row[T.ms])}</td><td class="n">${interval(row[T.low], row[T.high])}</td><td class="n">${row[T.floor] && row[T.ms] ? (100 * row[T.floor] / row[T.ms]).toFixed(0) : ""}</td><td class="n">${digits(row[T.ratio])}</td><td>${escaped(text(row[T.peer]))}</td><td class="mono">${escaped(text(row[T.entry]))}</td></tr>`).join("");
  const kernels = kernelsOf(square);
  drawer.innerHTML = `<header><div><h2 id="drawer-title">${escaped(name)}</h2><p><span class="tag ${state.css}">${state.mark} ${square.state}</span> ${escaped(columnName(column))} <span class="muted">${counts}</span></p></div><form method="dialog"><button aria-label="Close">Close</button></form></header>
<h3>Reproduce</h3>${command(`tilestack reproduce ${name}`)}
${square.rows.length ? `<h3>Shapes</h3>${table(["shape", "state", "error", "bound", "% of bound", "time, µs", "95 % interval", "worst element, entries"], shapeRows(square), 2, 7)}` : ""}
<div id="drawer-times"></div><div id="drawer-history"></div>
${times ? `<h3>Benchmarks</h3>${table(["case", "ms", "95 % interval", "% of roofline", "ratio", "fastest peer", "entry"], times, 1, 5)}` : ""}
${found.length ? `<h3>Resources on ${escaped(target)}</h3>${table(["entry", "registers", "shared, bytes", "spills", "instructions", "tensor core", "serialised"], found.map(u => `<tr><td class="mono">${escaped(u.symbol)}</td>${[u.registers, u.shared, u.spills, u.instructions, u.tensor_core, u.serialised].map(v => `<td class="n">${v}</td>`).join("")}</tr>`).join(""))}` : ""}
${kernels ? `<h3>Kernels that ran</h3>${table(["entry", "target", "sha256"], kernels, 9)}` : ""}`;
  if (!drawer.open) drawer.showModal();
  drawer.scrollTop = 0;
  drawTimes(square);
  drawHistory(square);
}

function kernelsOf(square) {
  const symbols = new Set(square.rows.flatMap(row => text(row[R.entries]).split(" "))), source = data.cells[square.cell][1];
  const seen = new Map();
  for (const number of new Set(square.rows.map(row => row[R.run]))) for (const [own, symbol, target, sha256] of data.runs[number].origin?.kernels ?? [])
    if (own === source && symbols.has(symbol) && (target === data.columns[square.column].target)) seen.set(symbol + sha256, `<tr><td class="mono">${escaped(symbol)}</td><td>${escaped(target)}</td><td class="mono">${sha256}</td></tr>`);
  return [...seen.values()].join("");
}

// The time of each shape on each machine that ran this cell.
function drawTimes(square) {
  const machines = data.columns.map((_, column) => squares.get(place(square.cell, column))).filter(s => s && s.rows.some(row => row[R.time] !== null) && (data.columns[s.column].target === "cpu") === (data.columns[square.column].target === "cpu"));
  const shapes = [...new Set(machines.flatMap(s => s.rows.filter(row => row[R.time] !== null).map(row => row[R.shape])))];
  if (!shapes.length || !square.rows.length) return;
  const box = document.getElementById("drawer-times");
  box.innerHTML = "<h3>Time by shape</h3>";
  pointChart(box, {labels: shapes.map(text), unit: "µs", log: true, describe: `Time of each shape of ${cellName(square.cell)}`, series: machines.map(s => {
    const by = new Map(s.rows.map(row => [row[R.shape], row]));
    const pick = field => shapes.map(shape => by.get(shape)?.[field] ?? null);
    return {label: columnName(s.column), values: pick(R.time), low: pick(R.low), high: pick(R.high)};
  })});
}

// The times of earlier runs, if files of several runs of this machine were given.
function drawHistory(square) {
  const by = new Map();
  for (const row of [...square.older, ...square.rows]) if (row[R.time] !== null) { if (!by.has(row[R.shape])) by.set(row[R.shape], []); by.get(row[R.shape]).push({name: text(row[R.shape]), run: row[R.run], value: row[R.time], low: row[R.low], high: row[R.high], unit: "µs"}); }
  const timed = new Map();
  for (const row of square.times) if (row[T.ms] !== null) { if (!timed.has(row[T.name])) timed.set(row[T.name], []); timed.get(row[T.name]).push({name: text(row[T.name]), run: row[T.run], value: 1000 * row[T.ms], low: 1000 * row[T.low], high: 1000 * row[T.high], unit: "µs"}); }
  const series = [...by.values(), ...timed.values()].filter(points => points.length > 1);
  if (!series.length) return;
  const box = document.getElementById("drawer-history");
  box.innerHTML = `<h3>History</h3><div class="picks"><label class="pick">Shape <select>${series.map((points, n) => `<option value="${n}">${escaped(points[0].name)}</option>`).join("")}</select></label></div><div></div>`;
  const show = () => { box.lastElementChild.innerHTML = ""; historyChart(box.lastElementChild, series[box.querySelector("select").value]); };
  box.querySelector("select").addEventListener("change", show);
  show();
}

drawer.addEventListener("click", event => { if (event.target === drawer) drawer.close(); });  // outside of it
