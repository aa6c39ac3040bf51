// Charts, drawn by uPlot. Each has its numbers as a table below it.

function pointChart(box, {labels, unit, series, describe, log = false, one = null}) {
  keep(box, (holder, width, c) => {
    holder.setAttribute("role", "img");
    holder.setAttribute("aria-label", `${describe}. The numbers are in the table below.`);
    const shift = (i, n) => i + (n - (series.length - 1) / 2) * Math.min(0.16, 0.6 / series.length);
    // One x for all: each point has a place of its own, so that intervals stand beside each other.
    const places = labels.flatMap((_, i) => series.map((_, n) => ({i, n, x: shift(i, n)}))).sort((a, b) => a.x - b.x);
    const spread = (values, n) => places.map(p => p.n === n ? values[p.i] : null);
    const all = series.map((s, n) => ({...s, values: spread(s.values, n), low: s.low && spread(s.low, n), high: s.high && spread(s.high, n)}));
    const named = labels.length * 80 < width;  // room for the names below the points
    const plot = new uPlot({
      width, height: named ? 360 : 300, scales: {x: {time: false, range: [-0.7, labels.length - 0.3]}, y: log ? {distr: 3} : {range: (u, low, high) => [Math.min(low, one ?? low) * 0.95, Math.max(high, one ?? high) * 1.05]}},
      legend: {live: true}, cursor: {drag: {x: true, y: false}},
      axes: [axis(c, named ? {splits: () => labels.map((_, i) => i), values: () => labels.map(name => name.length > 22 ? name.slice(0, 21) + "…" : name), rotate: 25, size: 84, grid: {show: false}} : {splits: () => [], size: 16, grid: {show: false}}), axis(c, {size: 64, label: unit, stroke: c.muted, values: log ? powers : undefined})],
      series: [{label: "shape", value: (u, v, _, index) => index === null || index === undefined || !places[index] ? "" : labels[places[index].i]},
        ...all.map((s, n) => ({label: s.label, stroke: c.series[n % 4], paths: () => null, points: {show: true, size: 7, fill: n % 2 ? c.back : c.series[n % 4], stroke: c.series[n % 4], width: 2}, value: (u, v) => v === null ? "" : `${digits(v)} ${unit}`}))],
      hooks: {draw: [whiskers(all, c), u => { if (one === null) return; const y = u.valToPos(one, "y", true); u.ctx.save(); u.ctx.strokeStyle = c.muted; u.ctx.setLineDash([4, 4]); u.ctx.beginPath(); u.ctx.moveTo(u.bbox.left, y); u.ctx.lineTo(u.bbox.left + u.bbox.width, y); u.ctx.stroke(); u.ctx.restore(); }]},
    }, [places.map(p => p.x), ...all.map(s => s.values)], holder);
    return plot;
  });
  numbers(box, "case", labels, series);
}

function historyChart(box, points) {
  const known = points.map(p => Date.parse(data.runs[p.run].date.replace(" UTC", "Z").replace(" ", "T").split(",")[0]) / 1000);
  const dated = known.every((t, i) => Number.isFinite(t) && (i === 0 || t > known[i - 1]));
  const labels = points.map(p => { const run = data.runs[p.run], commit = (run.origin?.commit || run.environment.commit || "").slice(0, 10); return [run.date, commit].filter(Boolean).join(" ") || run.file; });
  const one = {label: points[0].name, values: points.map(p => p.value), low: points.map(p => p.low), high: points.map(p => p.high)};
  keep(box, (holder, width, c) => {
    holder.setAttribute("role", "img");
    holder.setAttribute("aria-label", `History of ${points[0].name}. The numbers are in the table below.`);
    return new uPlot({
      width, height: 240, scales: {x: {time: dated}, y: {range: (u, low, high) => [0, Math.max(high, ...one.high.map(v => v ?? 0)) * 1.1]}},
      axes: [axis(c, dated ? {space: 110, values: (u, splits) => splits.map(t => new Date(1000 * t).toISOString().slice(0, 16).replace("T", " "))} : {values: (u, splits) => splits.map(v => Number.isInteger(v) ? (labels[v] ?? "").slice(0, 10) : "")}), axis(c, {size: 60, label: points[0].unit})],
      series: [{label: "run", value: (u, v, _, i) => labels[i] ?? ""}, {label: "time", stroke: c.series[0], width: 2, points: {show: true, size: 7}, value: (u, v) => v === null ? "" : `${digits(v)} ${points[0].unit}`}],
      hooks: {draw: [whiskers([one], c)]},
    }, [dated ? known : points.map((_, i) => i), one.values], holder);
  });
  numbers(box, "run", labels, [one]);
}

function speedSection() {
  const groups = [...new Set(data.times.map(row => row[T.group]))];
  if (!groups.length) return;
  const section = document.getElementById("speed");
  section.hidden = false;
  const sources = [...new Set(data.times.map(row => data.cells[row[T.cell]][1]))];
  section.insertAdjacentHTML("beforeend", `<p class="muted">Medians with 95 % intervals. A ratio is the other's time over ours, measured in turns: above 1 we are faster.</p>
<div class="picks"><label class="pick">Cases <select id="speed-group">${groups.map(g => `<option>${escaped(g)}</option>`).join("")}</select></label>
<label class="pick">Show <select id="speed-what">${data.times.some(row => row[T.ratio]) ? '<option value="ratio">ratio to the fastest peer</option>' : ""}${data.times.some(row => row[T.otherRatio]) ? '<option value="other">ratio to another bundle</option>' : ""}<option value="ms">time, ms</option><option value="reached">% of the roofline</option></select></label>
<label class="pick">Source <select id="speed-source">${sources.map(s => `<option>${escaped(s)}</option>`).join("")}</select></label></div><div id="speed-chart"></div>`);
  const show = () => {
    const group = control("speed-group").value, what = control("speed-what").value, source = control("speed-source").value;
    const rows = data.times.filter(row => row[T.group] === group && data.cells[row[T.cell]][1] === source && row[T.ms]);
    const names = [...new Set(rows.map(row => row[T.name]))], columns = [...new Set(rows.map(row => row[T.column]))];
    const series = columns.map(column => {
      const own = rows.filter(row => row[T.column] === column);
      const pick = get => names.map(name => own.filter(row => row[T.name] === name).map(get).findLast(value => value !== null) ?? null);  // the newest
      if (what === "ratio") return {label: columnName(column), values: pick(r => r[T.ratio]), low: pick(r => r[T.ratioLow]), high: pick(r => r[T.ratioHigh])};
      if (what === "other") return {label: columnName(column), values: pick(r => r[T.otherRatio]), low: pick(r => r[T.otherLow]), high: pick(r => r[T.otherHigh])};
      if (what === "ms") return {label: columnName(column), values: pick(r => r[T.ms]), low: pick(r => r[T.low]), high: pick(r => r[T.high])};
      return {label: columnName(column), values: pick(r => r[T.floor] ? 100 * r[T.floor] / r[T.ms] : null), low: pick(r => r[T.floor] ? 100 * r[T.floor] / r[T.high] : null), high: pick(r => r[T.floor] ? 100 * r[T.floor] / r[T.low] : null)};
    });
    control("speed-chart").innerHTML = "";
    pointChart(control("speed-chart"), {labels: names.map(text), series, unit: {ratio: "times as fast", other: "times as fast", ms: "ms", reached: "%"}[what], one: what === "ratio" || what === "other" ? 1 : null, log: what === "ms", describe: `${group}, ${source}`});
  };
  section.addEventListener("change", show);
  show();
}

function rooflineSection() {
  const rows = data.times.filter(row => row[T.ms] && row[T.flops] && row[T.nbytes] && row[T.group] !== "scaling");
  const columns = [...new Set(rows.map(row => row[T.column]))];
  if (!columns.length) return;
  const section = document.getElementById("roofline");
  section.hidden = false;
  section.insertAdjacentHTML("beforeend", `<p class="muted">Each point is a benchmark case: operations per byte that must be moved, and the rate reached. The lines are the rates that were measured on the machine: a copy of memory, and a large bf16 product.</p>`);
  for (const column of columns) {
    const own = rows.filter(row => row[T.column] === column), sources = [...new Set(own.map(row => data.cells[row[T.cell]][1]))];
    const run = data.runs[own.at(-1)[T.run]], {bytes_per_s: bytes, flops_per_s: flops} = run.ceilings;
    section.insertAdjacentHTML("beforeend", `<h3>${escaped(columnName(column))}</h3>`);
    const box = document.createElement("div");
    section.append(box);
    const points = own.map(row => ({x: row[T.flops] / row[T.nbytes], y: row[T.flops] / row[T.ms] / 1e9, row})).sort((a, b) => a.x - b.x);
    const ends = [points[0].x / 1.5, bytes && flops ? flops / bytes : points[0].x, points.at(-1).x * 1.5].sort((a, b) => a - b);
    const xs = [...points.map(p => p.x), ...ends].sort((a, b) => a - b), at = new Map();
    const place_ = xs.map(x => { const same = points.filter(p => p.x === x), n = at.get(x) ?? 0; at.set(x, n + 1); return same[n] ?? null; });
    keep(box, (holder, width, c) => {
      holder.setAttribute("role", "img");
      holder.setAttribute("aria-label", `Roofline of ${columnName(column)}. The numbers are in the table below.`);
      return new uPlot({
        width, height: 360, scales: {x: {time: false, distr: 3}, y: {distr: 3}},
        axes: [axis(c, {label: "operations per byte", values: powers}), axis(c, {size: 64, label: "TFLOP/s", values: powers})],
        series: [{label: "case", value: (u, v, _, i) => place_[i] ? text(place_[i].row[T.name]) : ""},
          {label: "roofline", stroke: c.muted, width: 2, dash: [6, 4], points: {show: false}, value: (u, v) => v === null ? "" : digits(v)},
          ...sources.map((source, n) => ({label: source, stroke: c.series[n % 4], paths: () => null, points: {show: true, size: 5 + 5 * n, fill: n ? "transparent" : c.series[0], stroke: c.series[n % 4], width: n ? 1.5 : 1}, value: (u, v) => v === null ? "" : `${digits(v)} TFLOP/s`}))],
      }, [xs, xs.map(x => bytes && flops ? Math.min(x * bytes, flops) / 1e12 : null), ...sources.map(source => place_.map(p => p && data.cells[p.row[T.cell]][1] === source ? p.y : null))], holder);
    });
    const body = own.map(row => `<tr><td>${escaped(text(row[T.name]))}</td><td>${escaped(data.cells[row[T.cell]][1])}</td><td class="n">${digits(row[T.flops] / row[T.nbytes])}</td><td class="n">${digits(row[T.flops] / row[T.ms] / 1e9)}</td><td class="n">${row[T.floor] ? (100 * row[T.floor] / row[T.ms]).toFixed(0) : ""}</td><td>${row[T.bound]}</td></tr>`).join("");
    box.insertAdjacentHTML("beforeend", `<details><summary>The numbers</summary>${table(["case", "source", "operations per byte", "TFLOP/s", "% of the roofline", "limit"], body, 2)}</details>`);
  }
}
