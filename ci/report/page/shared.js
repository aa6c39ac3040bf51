"use strict";
// What the pages share: their data, numbers in words, tables, commands to copy, and charts drawn by uPlot.

const data = JSON.parse(document.getElementById("data").textContent);
const control = name => document.getElementById(name);
const escaped = value => String(value).replace(/[&<>"]/g, c => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})[c]);
const digits = (value, count = 3) => value === null || value === undefined ? "" : value === 0 ? "0" : Math.abs(value) >= 1e9 || Math.abs(value) < 1e-3 ? value.toExponential(count - 1) : Number(value.toPrecision(count)).toLocaleString("en", {maximumSignificantDigits: count});
const interval = (low, high) => low === null ? "" : `${digits(low)} – ${digits(high)}`;

function command(words) {
  return `<div class="command"><pre>${escaped(words)}</pre><button type="button" data-copy="${escaped(words)}">Copy</button></div>`;
}
document.addEventListener("click", event => {
  const button = event.target.closest("[data-copy]");
  if (button) navigator.clipboard?.writeText(button.dataset.copy).then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Select and copy"; });
});

// Columns from `first` up to `end` hold numbers.
function table(heads, body, first = 1, end = heads.length) {
  return `<div class="scroll"><table><thead><tr>${heads.map((head, n) => `<th scope="col"${n >= first && n < end ? ' class="n"' : ""}>${head}</th>`).join("")}</tr></thead><tbody>${body}</tbody></table></div>`;
}

const colours = () => { const style = getComputedStyle(document.documentElement); const of = name => style.getPropertyValue(name).trim(); return {text: of("--text"), muted: of("--muted"), line: of("--line"), back: of("--back"), series: [1, 2, 3, 4].map(n => of(`--series-${n}`))}; };
const drawn = new Map();  // charts by their element, to draw again in other colours or another width
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

function keep(box, make) {
  const holder = document.createElement("div");
  holder.className = "chart";
  box.append(holder);
  const entry = {holder, make, plot: null};
  drawn.set(holder, entry);
  redraw(entry);
}
function redraw(entry) {
  entry.plot?.destroy();
  entry.plot = entry.make(entry.holder, Math.max(240, entry.holder.clientWidth || entry.holder.parentElement.clientWidth), colours());
}
function redrawAll() {
  for (const [holder, entry] of drawn) if (holder.isConnected) { if (holder.offsetParent !== null) redraw(entry); } else { entry.plot?.destroy(); drawn.delete(holder); }
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
let resized = 0, lastWidth = innerWidth;
addEventListener("resize", () => { if (innerWidth === lastWidth) return; lastWidth = innerWidth; clearTimeout(resized); resized = setTimeout(redrawAll, 150); });

const axis = (c, more) => ({stroke: c.muted, grid: {stroke: c.line, width: 1}, ticks: {stroke: c.line}, ...more});
const powers = (u, splits) => splits.map(v => v === null ? "" : Math.abs(Math.log10(v) % 1) < 1e-9 || splits.length < 6 ? digits(v) : "");

function whiskers(series, c) {  // the 95 % intervals
  return u => {
    u.ctx.save();
    series.forEach((one, n) => {
      if (!one.low || u.series[n + 1].show === false) return;
      u.ctx.strokeStyle = c.series[n % 4]; u.ctx.lineWidth = devicePixelRatio * 1.5;
      one.low.forEach((low, i) => {
        if (low === null || low === undefined) return;
        const x = u.valToPos(u.data[0][i], "x", true), a = u.valToPos(low, "y", true), b = u.valToPos(one.high[i], "y", true);
        u.ctx.beginPath(); u.ctx.moveTo(x, a); u.ctx.lineTo(x, b); u.ctx.stroke();
      });
    });
    u.ctx.restore();
  };
}

// A chart's numbers as a table. `series`: label, values, and low and high of their intervals.
function numbers(box, head, labels, series) {
  const body = labels.map((name, i) => `<tr><td>${escaped(name)}</td>${series.map(one => `<td class="n">${digits(one.values[i])}${one.low && one.low[i] !== null && one.low[i] !== undefined ? ` <span class="muted">${interval(one.low[i], one.high[i])}</span>` : ""}</td>`).join("")}</tr>`).join("");
  box.insertAdjacentHTML("beforeend", `<details><summary>The numbers</summary>${table([head, ...series.map(one => escaped(one.label))], body)}</details>`);
}
