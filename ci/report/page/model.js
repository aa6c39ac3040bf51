// The data, and the squares of the matrix: all results of one cell (op, source, dtype) in one column.

const R = {cell: 0, column: 1, run: 2, shape: 3, status: 4, error: 5, bound: 6, time: 7, low: 8, high: 9, detail: 10, worst: 11, entries: 12};
const T = {cell: 0, column: 1, run: 2, group: 3, name: 4, status: 5, ms: 6, low: 7, high: 8, floor: 9, bound: 10, nbytes: 11, flops: 12, peer: 13, ratio: 14, ratioLow: 15, ratioHigh: 16, detail: 17, entry: 18, other: 19, otherRatio: 20, otherLow: 21, otherHigh: 22};
const DTYPES = ["f32", "tf32", "f16", "bf16"];
const text = number => data.texts[number];
const share = row => row[R.bound] && row[R.error] !== null ? 100 * row[R.error] / row[R.bound] : null;
const cellName = cell => data.cells[cell].join("-");
const columnName = column => { const {name, target} = data.columns[column]; return !name ? target : target.startsWith("sm_") ? `${name} ${target}` : name; };
const fullName = (cell, column) => `${cellName(cell)}-${data.columns[column].target}`;
const median = values => { const s = [...values].sort((a, b) => a - b), h = s.length >> 1; return s.length % 2 ? s[h] : (s[h - 1] + s[h]) / 2; };

const dtypes = [...new Set([...DTYPES, ...data.cells.map(c => c[2])])].filter(d => data.cells.some(c => c[2] === d));
const lines = [];  // of the grid: an op and a source, with the number of the cell of each dtype
const lineOf = new Map();
data.cells.forEach(([op, source, dtype], cell) => {
  const key = `${op} ${source}`;
  if (!lineOf.has(key)) { lineOf.set(key, {op, source, cells: {}}); lines.push(lineOf.get(key)); }
  lineOf.get(key).cells[dtype] = cell;
});
const opOrder = [...new Set(data.cells.map(c => c[0]))].sort((a, b) => (a === "forward") - (b === "forward") || (a < b ? -1 : 1));
lines.sort((a, b) => opOrder.indexOf(a.op) - opOrder.indexOf(b.op) || (a.source < b.source ? -1 : 1));

const squares = new Map();
const place = (cell, column) => cell * data.columns.length + column;
function squareAt(cell, column) {
  const key = place(cell, column);
  if (!squares.has(key)) squares.set(key, {cell, column, rows: [], older: [], times: [], compiled: 0});
  return squares.get(key);
}
{
  // The files are in order of their date: of a shape that ran several times, the last result counts.
  const last = new Map();
  for (const row of data.rows) {
    const key = `${row[R.cell]} ${row[R.column]} ${row[R.shape]}`;
    const square = squareAt(row[R.cell], row[R.column]), before = last.get(key);
    if (before && before[R.run] !== row[R.run]) { square.older.push(before); square.rows[square.rows.indexOf(before)] = row; }
    else square.rows.push(row);
    last.set(key, row);
  }
  for (const row of data.times) squareAt(row[T.cell], row[T.column]).times.push(row);
  data.columns.forEach(({target}, column) => {
    for (const [cell, counts] of Object.entries(data.compiled)) if (counts[target]) squareAt(Number(cell), column).compiled = counts[target];
  });
}

// How far a square came. The worst of its results counts.
for (const square of squares.values()) {
  const ran = square.rows.filter(row => row[R.status] !== "not run");
  square.ran = ran.length;
  square.notRun = square.rows.length - ran.length;
  square.passed = ran.filter(row => row[R.status] === "passed").length;
  const shares = ran.map(share).filter(value => value !== null);
  square.share = shares.length ? Math.max(...shares) : null;
  const wrong = square.times.some(row => row[T.status] === "wrong");
  const errors = ran.filter(row => row[R.status] === "error");
  square.state = wrong || ran.some(row => row[R.status] === "failed") ? "failed"
    : errors.length ? (errors.some(row => text(row[R.entries])) ? "loaded" : "error")
    : ran.length ? "conformed" : square.times.length ? "timed" : square.compiled ? "compiled" : "not run";
  const newest = new Map(square.times.filter(row => row[T.ms]).map(row => [row[T.name], row]));
  const reached = [...newest.values()].filter(row => row[T.floor]).map(row => 100 * row[T.floor] / row[T.ms]);
  square.reached = reached.length ? median(reached) : null;
  const ratios = [...newest.values()].filter(row => row[T.ratio]).map(row => row[T.ratio]);
  square.ratio = ratios.length ? median(ratios) : null;
}

const STATES = {
  conformed: {mark: "✓", css: "good", says: "ran, and every result is inside its bound"},
  failed: {mark: "✗", css: "bad", says: "ran, and a result is outside its bound"},
  loaded: {mark: "!", css: "warn", says: "loaded, and a launch raised an error"},
  error: {mark: "!", css: "warn", says: "could not be loaded or launched"},
  timed: {mark: "◆", css: "known", says: "by the benchmarks alone"},
  compiled: {mark: "▪", css: "known", says: "not run on such a machine"},
  "not run": {mark: "–", css: "none", says: "see its drawer for why"},
};
const usage = (cell, column) => (data.resources[cell] || {})[data.columns[column].target] || [];

// The time of a square over that of the same cell in the first column that has times: geometric mean over shapes.
const timesByShape = new Map();
function shapesOf(square) {
  if (!timesByShape.has(square)) timesByShape.set(square, new Map(square.rows.filter(row => row[R.time] && data.columns[square.column].name && data.columns[square.column].target.startsWith("sm_")).map(row => [row[R.shape], row[R.time]])));
  return timesByShape.get(square);
}
function relative(square) {
  const own = shapesOf(square);
  if (!own.size) return null;
  for (let column = 0; column < square.column; column++) {
    const other = squares.get(place(square.cell, column));
    if (!other) continue;
    const base = shapesOf(other), logs = [...own].filter(([shape]) => base.has(shape)).map(([shape, time]) => Math.log(time / base.get(shape)));
    if (logs.length) return Math.exp(logs.reduce((a, b) => a + b) / logs.length);
  }
  return 1;
}

// What a square can show. `value`: a number or null; `part`: 0 to 1, how strong its colour is.
const VIEWS = {
  state: {name: "state", explain: "How far each cell came on each machine. A square counts the shapes that passed, of those that ran; shapes that were not run are counted apart, in its drawer."},
  share: {name: "error, % of bound", css: "share", explain: "The largest error of a square's shapes, in percent of what is allowed.", value: s => s.share, show: v => v.toFixed(0), part: v => Math.min(1, v / 100)},
  reached: {name: "speed, % of the roofline", css: "fast", explain: "The least time that bytes and operations allow at the measured rates, in percent of the measured time: the median of a square's benchmark cases.", value: s => s.reached, show: v => v.toFixed(0), part: v => Math.min(1, v / 100)},
  ratio: {name: "speed over the fastest peer", css: "fast", explain: "The fastest peer's time over ours, above 1 if we are faster: the median of a square's benchmark cases.", value: s => s.ratio, show: v => v.toFixed(2), part: v => Math.min(1, v / 2)},
  relative: {name: "time over the first machine's", css: "cost", explain: "The time of a launch over that of the first machine with the same cell: the geometric mean over the shapes that both ran.", value: relative, show: v => v.toFixed(2), part: v => Math.min(1, Math.abs(Math.log2(v)))},
  registers: {name: "registers", css: "cost", explain: "The most registers per thread that an entry of the cell uses.", value: s => usage(s.cell, s.column).reduce((most, u) => Math.max(most ?? 0, u.registers), null), show: String, part: v => v / 255},
  spills: {name: "spills", css: "share", explain: "Instructions that spill registers, in all entries of the cell.", value: s => usage(s.cell, s.column).reduce((sum, u) => (sum ?? 0) + u.spills, null), show: String, part: v => Math.min(1, v / 100)},
};
for (const [name, view] of Object.entries(VIEWS)) view.usable = !view.value || [...squares.values()].some(square => view.value(square) !== null);
VIEWS.relative.usable = [...squares.values()].some(square => shapesOf(square).size && relative(square) !== 1);
