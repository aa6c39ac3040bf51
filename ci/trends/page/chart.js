// The chart of a cell on one machine: medians over the nights, their spread, and what changed besides.

const P = {night: 0, us: 1, low: 2, high: 3, same: 4};
const circled = n => n < 20 ? String.fromCodePoint(0x2460 + n) : `(${n + 1})`;
const distinctDays = new Set(data.nights.map(night => night.day)).size === data.nights.length;
const nightLabel = at => distinctDays ? data.nights[at].day.slice(5) : data.nights[at].commit.slice(0, 7);
const first = name => name.replace(/^NVIDIA /, "").split(" ")[0];
const shortName = machine => data.machines.filter(each => first(each.name) === first(machine.name)).length > 1 ? machine.name : first(machine.name);
const nightName = at => `${data.nights[at].day} ${data.nights[at].commit.slice(0, 10)}`;
const points = (cell, machine) => data.cells[cell].points[machine];
const stepsOf = (cell, machine) => data.steps.filter(step => step.cell === cell && step.machine === machine);

// At least a tenth of the time, so that noise does not look like a step.
function range(rows) {
  const low = Math.min(...rows.map(p => p[P.low])), high = Math.max(...rows.map(p => p[P.high])), middle = (low + high) / 2;
  const half = Math.max((high - low) * 0.6, middle * 0.05);
  return [middle - half, middle + half];
}

function marks(machine, c) {  // the nights with another driver or other tools
  return u => {
    u.ctx.save();
    u.ctx.strokeStyle = u.ctx.fillStyle = c.muted; u.ctx.lineWidth = devicePixelRatio; u.ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
    u.ctx.font = `${13 * devicePixelRatio}px system-ui, sans-serif`; u.ctx.textAlign = "center";
    data.machines[machine].marks.forEach(([night], n) => {
      const x = u.valToPos(night - 0.5, "x", true);
      u.ctx.beginPath(); u.ctx.moveTo(x, u.bbox.top); u.ctx.lineTo(x, u.bbox.top + u.bbox.height); u.ctx.stroke();
      u.ctx.fillText(circled(n), x, u.bbox.top - 4 * devicePixelRatio);
    });
    u.ctx.restore();
  };
}

function stepSigns(cell, machine) {  // a triangle at each step: up for slower, empty if it is not confirmed
  return u => {
    const css = getComputedStyle(document.documentElement), size = 7 * devicePixelRatio;
    u.ctx.save();
    for (const step of stepsOf(cell, machine)) {
      const point = points(cell, machine).find(p => p[P.night] === step.night), up = step.kind === "slower" ? 1 : -1;
      const x = u.valToPos(step.night, "x", true), y = u.valToPos(up > 0 ? point[P.high] : point[P.low], "y", true) - up * 2.2 * size;
      u.ctx.strokeStyle = u.ctx.fillStyle = css.getPropertyValue(up > 0 ? "--bad" : "--series-3").trim(); u.ctx.lineWidth = 1.5 * devicePixelRatio;
      u.ctx.beginPath(); u.ctx.moveTo(x, y - up * size); u.ctx.lineTo(x - size, y + up * size * 0.7); u.ctx.lineTo(x + size, y + up * size * 0.7); u.ctx.closePath();
      if (step.confirmed) u.ctx.fill(); else u.ctx.stroke();
    }
    u.ctx.restore();
  };
}

function ring(rows, chosen, colour) {  // around the point that is described
  return u => {
    const point = rows[chosen.index];
    u.ctx.save();
    u.ctx.strokeStyle = colour; u.ctx.lineWidth = 2 * devicePixelRatio;
    u.ctx.beginPath(); u.ctx.arc(u.valToPos(point[P.night], "x", true), u.valToPos(point[P.us], "y", true), 9 * devicePixelRatio, 0, 2 * Math.PI); u.ctx.stroke();
    u.ctx.restore();
  };
}

// `choose` gets the index of the point that is clicked; `chosen.index` is the one that is described.
function trendChart(box, cell, machine, chosen, choose) {
  const rows = points(cell, machine), at = new Map(rows.map(p => [p[P.night], p])), nights = data.nights.map((_, n) => n);
  const pick = field => nights.map(n => at.get(n)?.[field] ?? null);
  keep(box, (holder, width, c) => {
    const colour = c.series[machine % 4], span = data.nights.length;
    holder.setAttribute("role", "img");
    holder.setAttribute("aria-label", `${data.cells[cell].name} ${data.cells[cell].source} on ${data.machines[machine].name} over ${rows.length} nights. The numbers are in the table below.`);
    const edge = {stroke: "transparent", points: {show: false}, spanGaps: true};
    const plot = new uPlot({
      width, height: 280, padding: [20, 12, 0, 0], legend: {show: false}, cursor: {drag: {x: false, y: false}}, scales: {x: {time: false, range: [-0.6, span - 0.4]}, y: {range: () => range(rows)}},
      axes: [axis(c, {splits: () => nights.filter(n => n % Math.max(1, Math.ceil(span * 62 / width)) === 0), values: (u, splits) => splits.map(n => nightLabel(n)), grid: {show: false}}), axis(c, {size: 62, label: "µs", values: (u, splits) => splits.map(v => digits(v, 4))})],
      bands: [{series: [3, 2], fill: colour + "33"}],
      series: [{}, {stroke: colour, width: 2, spanGaps: true, points: {show: true, size: 8, fill: colour}}, edge, edge],
      hooks: {draw: [marks(machine, c), whiskers([{low: pick(P.low), high: pick(P.high)}], {series: [colour]}), stepSigns(cell, machine), ring(rows, chosen, c.text)]},
    }, [nights, pick(P.us), pick(P.low), pick(P.high)], holder);
    plot.root.addEventListener("click", event => {
      const night = plot.posToVal(event.clientX - plot.over.getBoundingClientRect().left, "x");
      choose(rows.reduce((best, p, n) => Math.abs(p[P.night] - night) < Math.abs(rows[best][P.night] - night) ? n : best, 0));
    }, true);  // before uPlot, which takes a click that follows no movement for the end of a drag
    chosen.plot = plot;
    return plot;
  });
}

function spark(cell, machine) {
  const rows = points(cell, machine), [low, high] = range(rows), span = Math.max(1, data.nights.length - 1);
  const x = p => (100 * p[P.night] / span).toFixed(1), y = us => (30 - 30 * (us - low) / (high - low)).toFixed(1);
  const band = [...rows.map(p => `${x(p)},${y(p[P.high])}`), ...[...rows].reverse().map(p => `${x(p)},${y(p[P.low])}`)].join(" ");
  const lines = stepsOf(cell, machine).map(step => `<line x1="${(100 * (step.night - 0.5) / span).toFixed(1)}" x2="${(100 * (step.night - 0.5) / span).toFixed(1)}" y1="0" y2="30"/>`).join("");
  return `<svg class="spark" viewBox="-2 -1 104 32" preserveAspectRatio="none" aria-hidden="true">${lines}<polygon points="${band}"/><path d="M${rows.map(p => `${x(p)} ${y(p[P.us])}`).join("L")}"/></svg>`;
}
