// The heat map: a line for each op and source, a group of squares for each column, a square for each dtype.

const grid = document.getElementById("grid");
const wide = data.columns.map((_, column) => [...squares.values()].some(s => s.column === column && (s.rows.length || s.times.length)));

function label(square) {
  const {state, ran, passed, notRun, share: used} = square;
  const parts = [`${cellName(square.cell)} on ${columnName(square.column)}: ${state}`];
  if (ran) parts.push(`${passed} of ${ran} passed`);
  if (notRun) parts.push(`${notRun} not run`);
  if (used !== null) parts.push(`largest error ${used.toFixed(0)} % of its bound`);
  return parts.join(", ");
}

function content(square, view) {
  if (view.value) {
    const value = view.value(square);
    return value === null ? {css: "none", show: ""} : {css: `heat ${view.css}`, show: view.show(value), part: view.part(value)};
  }
  const {mark, css} = STATES[square.state];
  return {css, show: square.ran ? `${mark} ${square.passed}/${square.ran}` : mark};
}

// A line has squares only where it is on the screen: thousands more would make each change of a filter slow.
let hits = null;  // the squares that words or a state select; null for all
let current = -1;  // the square that Tab reaches
const filled = new Map(), elements = [], wideColumns = [];

function draw() {
  const head = data.columns.map((_, column) => `<span role="columnheader" class="group column" data-column="${column}" title="${escaped(columnName(column))}">${escaped(columnName(column).replace(/^NVIDIA /, ""))}</span>`).join("");
  const second = data.columns.map((_, column) => `<span role="presentation" class="column" data-column="${column}">${dtypes.map(d => `<span role="columnheader" class="sq" data-d="${d}">${d}</span>`).join("")}</span>`).join("");
  let html = `<div class="line head" role="row"><span class="name" role="columnheader"></span>${head}</div><div class="line head second" role="row"><span class="name" role="columnheader"><b>op</b><span class="muted">source</span></span>${second}</div>`, before = "";
  lines.forEach((line, number) => {
    html += `<div class="line${line.op === before ? "" : " first"}" role="row" aria-rowindex="${number + 3}" data-line="${number}"><span class="name" role="rowheader" title="${escaped(line.op)}"><b>${escaped(line.op)}</b><span class="muted">${escaped(line.source)}</span></span></div>`;
    before = line.op;
  });
  grid.innerHTML = html;
  data.columns.forEach((_, column) => { if (wide[column]) wideColumns.push(`[data-column="${column}"]`); });
  const style = document.createElement("style");
  style.textContent = wideColumns.length ? `#grid :is(${wideColumns.join()}) { --width: 4rem; }` : "";
  document.head.append(style);
  grid.setAttribute("aria-rowcount", lines.length + 2);
  elements.splice(0, elements.length, ...grid.querySelectorAll("[data-line]"));
  filled.clear();
}

function squaresOf(line, column, view) {
  let html = "";
  const known = dtypes.some(d => line.cells[d] !== undefined && squares.has(place(line.cells[d], column)));
  for (const d of known ? dtypes : []) {
    const cell = line.cells[d], square = cell === undefined ? undefined : squares.get(place(cell, column));
    if (!square) { html += `<span role="gridcell" class="sq" data-d="${d}"></span>`; continue; }
    const {css, show, part} = content(square, view), key = place(cell, column);
    html += `<span role="gridcell" tabindex="${key === current ? 0 : -1}" class="sq ${css}${hits && !hits.has(key) ? " dim" : ""}" data-d="${d}" data-s="${key}" aria-label="${escaped(label(square))}"${part === undefined ? "" : ` style="--part:${part.toFixed(2)}"`}>${show}</span>`;
  }
  return html;
}
const COLUMNS = data.columns.map((_, column) => `<span role="presentation" class="column" data-column="${column}"></span>`).join("");
// `within`: the columns to fill; without it all of them.
function fillLine(element, within = null) {
  if (!filled.has(element)) { element.insertAdjacentHTML("beforeend", COLUMNS); filled.set(element, new Set()); }
  const done = filled.get(element), view = VIEWS[control("view").value];
  for (let column = 0; column < data.columns.length; column++) {
    if (done.has(column) || within && !within.has(column)) continue;
    done.add(column);
    const html = squaresOf(lines[element.dataset.line], column, view);
    if (html) element.childNodes[column + 1].innerHTML = html;
  }
}
function emptyLine(element) {
  element.replaceChildren(element.firstChild);
  filled.delete(element);
}
// The columns on the screen, from the widths that the style gives them.
function columnsOnScreen(box) {
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize), count = Number(grid.style.getPropertyValue("--dtypes")) || dtypes.length;
  const found = new Set();
  let left = 0;
  for (let column = 0; column < data.columns.length; column++) {
    const right = left + count * (wide[column] ? 4 : 2.6) * rem;
    if (right >= box.scrollLeft - 100 && left <= box.scrollLeft + box.clientWidth) found.add(column);
    left = right;
  }
  return found;
}
function fillVisible() {
  const box = control("scroll"), height = elements[0]?.offsetHeight || grid.querySelector(".line").offsetHeight || 28;
  const open = elements.filter(element => !element.hidden), from = Math.max(0, Math.floor(box.scrollTop / height) - 2);
  const near = new Set(open.slice(from, from + Math.ceil(box.clientHeight / height) + 4));
  const focused = document.activeElement?.closest?.("[data-line]");
  for (const element of [...filled.keys()]) if (!near.has(element) && element !== focused) emptyLine(element);
  const within = columnsOnScreen(box);
  near.forEach(element => fillLine(element, within));
}
let waiting = false;
control("scroll").addEventListener("scroll", () => { if (waiting) return; waiting = true; requestAnimationFrame(() => { waiting = false; fillVisible(); }); }, {passive: true});

function explain() {
  const view = VIEWS[control("view").value];
  control("explain").textContent = view.explain;
  control("legend").innerHTML = view.value ? "" : Object.entries(STATES).filter(([name]) => [...squares.values()].some(s => s.state === name))
    .map(([name, {mark, css, says}]) => `<span><i class="${css}">${mark}</i><span><b>${name}</b>: ${says}</span></span>`).join("");
}

function setCurrent(square) {
  grid.querySelectorAll('[tabindex="0"]').forEach(each => { each.tabIndex = -1; });
  current = Number(square.dataset.s);
  square.tabIndex = 0;
}

// Moving with the keyboard: one square can be reached with Tab, the arrows go on from there.
const inLine = element => { fillLine(element); return [...element.querySelectorAll("[data-s]")].filter(square => square.offsetWidth); };
function go(from, key, all) {
  const line = from.closest("[data-line]"), own = inLine(line), index = own.indexOf(from), open = elements.filter(element => !element.hidden);
  if (key === "ArrowRight") return own[index + 1];
  if (key === "ArrowLeft") return own[index - 1];
  if (key === "Home") return (all ? inLine(open[0]) : own)[0];
  if (key === "End") return (all ? inLine(open.at(-1)) : own).at(-1);
  const step = {ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10}[key];
  if (!step) return undefined;
  const left = square => square.getBoundingClientRect().left, x = left(from), sign = Math.sign(step);
  for (let at = Math.max(0, Math.min(open.length - 1, open.indexOf(line) + step)); open[at] && open[at] !== line; at += sign) {
    const near = inLine(open[at]);
    if (near.length) return near.reduce((a, b) => Math.abs(left(a) - x) <= Math.abs(left(b) - x) ? a : b);
  }
  return undefined;
}
grid.addEventListener("keydown", event => {
  const from = event.target.closest("[data-s]");
  if (!from) return;
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); openDrawer(Number(from.dataset.s)); return; }
  const to = go(from, event.key, event.ctrlKey);
  if (!to) return;
  event.preventDefault();
  setCurrent(to);
  to.focus();
});
grid.addEventListener("click", event => {
  const square = event.target.closest("[data-s]");
  if (!square) return;
  setCurrent(square);
  square.focus();
  openDrawer(Number(square.dataset.s));
});

// Filters. Op, source, dtype and state compare whole names; words are looked for anywhere.
function wanted() {
  const words = control("words").value.toLowerCase().split(/\s+/).filter(Boolean);
  return {op: control("op").value, source: control("source").value, dtype: control("dtype").value, state: control("state").value, words};
}
const searched = new Map();
function searchText(row) {
  if (!searched.has(row)) searched.set(row, [fullName(row[R.cell], row[R.column]), columnName(row[R.column]), text(row[R.shape]), row[R.status], text(row[R.detail]), text(row[R.entries])].join(" ").toLowerCase());
  return searched.get(row);
}
const latest = [...squares.values()].flatMap(square => square.rows);
const matches = (row, w) => {
  const [op, source, dtype] = data.cells[row[R.cell]];
  return (!w.op || op === w.op) && (!w.source || source === w.source) && (!w.dtype || dtype === w.dtype)
    && (!w.state || squares.get(place(row[R.cell], row[R.column])).state === w.state)
    && w.words.every(word => searchText(row).includes(word));
};

let listed = [], shown = 0;
function filter(viewChanged = false) {
  const w = wanted();
  listed = latest.filter(row => matches(row, w));
  const before = hits;
  hits = w.words.length || w.state ? new Set(listed.map(row => place(row[R.cell], row[R.column]))) : null;
  if (hits) for (const [key, square] of squares) {  // those that have no results of their own
    if (!square.rows.length && (!w.state || square.state === w.state) && w.words.every(word => fullName(square.cell, square.column).includes(word))) hits.add(key);
  }
  for (const d of DTYPES) grid.classList.toggle(`hide-${d}`, Boolean(w.dtype) && d !== w.dtype);
  grid.style.setProperty("--dtypes", w.dtype ? 1 : dtypes.length);
  const shownKeys = line => Object.entries(line.cells).filter(([d]) => !w.dtype || d === w.dtype).flatMap(([, cell]) => data.columns.map((_, column) => place(cell, column))).filter(key => squares.has(key));
  let first = -1, found = false;
  for (const element of elements) {
    const line = lines[element.dataset.line], keys = shownKeys(line);
    element.hidden = !((!w.op || line.op === w.op) && (!w.source || line.source === w.source) && keys.some(key => !hits || hits.has(key)));
    if (element.hidden) continue;
    if (first < 0) first = keys[0];
    found ||= keys.includes(current);
  }
  if (!found) current = first;
  if (hits || before || viewChanged) [...filled.keys()].forEach(emptyLine);  // else what they show is the same
  fillVisible();
  shown = 0;
  document.querySelector("#list tbody").innerHTML = "";
  more();
}

const HEADS = ["cell", "shape", "on", "state", "error", "bound", "% of bound", "time, µs", "95 % interval"];
const tag = status => `<span class="tag ${{passed: "good", failed: "bad", error: "warn", "not run": "none"}[status]}">${status}</span>`;
function listRow(row) {
  const used = share(row);
  return `<tr><td><button type="button" class="link" data-open="${place(row[R.cell], row[R.column])}">${escaped(fullName(row[R.cell], row[R.column]))}</button></td><td>${escaped(text(row[R.shape]))}</td><td>${escaped(columnName(row[R.column]))}</td><td>${tag(row[R.status])}</td><td class="n">${digits(row[R.error])}</td><td class="n">${digits(row[R.bound])}</td><td class="n">${used === null ? "" : used.toFixed(0)}</td><td class="n">${digits(row[R.time])}</td><td class="n">${interval(row[R.low], row[R.high])}</td></tr>`;
}
function more() {
  const next = listed.slice(shown, shown + 30);
  document.querySelector("#list tbody").insertAdjacentHTML("beforeend", next.map(listRow).join(""));
  shown += next.length;
  control("shown").textContent = `${shown} of ${listed.length} shown${listed.length === latest.length ? "" : `, ${latest.length} in all`}`;
  control("more").hidden = shown >= listed.length;
}
document.querySelector("#list thead").innerHTML = `<tr>${HEADS.map((head, n) => `<th scope="col"${n > 3 ? ' class="n"' : ""}>${head}</th>`).join("")}</tr>`;
document.getElementById("list").addEventListener("click", event => { const button = event.target.closest("[data-open]"); if (button) openDrawer(Number(button.dataset.open)); });
