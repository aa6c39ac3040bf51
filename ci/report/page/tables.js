// What is no chart: where the results come from, and tables that other tools wrote.

function facts(pairs) {
  return `<dl>${pairs.filter(([, value]) => value).map(([name, value]) => `<dt>${escaped(name)}</dt><dd>${value}</dd>`).join("")}</dl>`;
}
const clocks = state => state && Object.keys(state).length ? `${escaped(state.sm_clock_mhz ?? "?")} MHz, ${escaped(state.temperature_c ?? "?")} °C, ${escaped(state.power_w ?? "?")} W, throttle: ${escaped(state.throttle ?? "?")}` : "";

function environmentSection() {
  const cards = data.runs.map(run => {
    const o = run.origin, pairs = [["what", `${escaped(run.kind)}: ${escaped(run.summary)}`], ["on", run.machines.map(escaped).join(", ")], ["date", escaped(run.date)]];
    if (o) {
      pairs.push(["commit", o.commit ? `<code>${escaped(o.commit)}</code>${o.dirty ? " <b>with changes</b>" : ""}` : "unknown"], ["command", `<code>${escaped(o.command.join(" "))}</code>`],
        ["bundle", `<code>${escaped(o.bundle.sha256)}</code>${o.bundle.commit ? ` of commit <code>${escaped(o.bundle.commit)}</code>` : ""}`], ["kernels", `${o.kernels.length} that ran, each with its sha256`],
        ["tools", Object.entries(o.tools).map(([name, t]) => `${escaped(name)} ${escaped(t.version)} <code>${escaped(t.sha256.slice(0, 16))}</code>`).join("<br>")],
        ...o.devices.filter(d => d.kind === "cuda").flatMap(d => [["GPU", `${escaped(d.gpu)} ${escaped(d.target)}, driver ${escaped(d.driver || "unknown")}`], ["before", clocks(d.before)], ["after", clocks(d.after)]]),
        ["host", `${escaped(o.host.machine)}, Python ${escaped(o.host.python)}`], ["packages", Object.entries(o.host.packages).map(p => escaped(p.join(" "))).join(", ")]);
    } else pairs.push(["origin", "not said: a file of an older version"], ...Object.entries(run.environment).filter(([name]) => name !== "date").map(([name, value]) => [name, escaped(value)]));
    return `<article class="card"><h3 class="mono">${escaped(run.file)}</h3>${facts(pairs)}</article>`;
  });
  document.getElementById("environment").insertAdjacentHTML("beforeend", `<div class="cards">${cards.join("")}</div>`);
}

// Lists of objects in any tool's JSON, by name, each row with the values of inner objects beside its own.
function flat(row) {
  return Object.assign({}, ...Object.entries(row).map(([name, value]) => value && typeof value === "object" && !Array.isArray(value) ? Object.fromEntries(Object.entries(value).map(([inner, each]) => [`${name} ${inner}`, each])) : {[name]: value}));
}
function listsIn(value, name = "") {
  if (Array.isArray(value)) return value.length && value.every(row => row && typeof row === "object" && !Array.isArray(row)) ? [[name, value.map(row => flat(row))]] : [];
  return value && typeof value === "object" ? Object.entries(value).flatMap(([inner, each]) => listsIn(each, inner)) : [];
}
function shownValue(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "✓ yes" : "✗ no";
  if (typeof value === "number") return digits(value, 6);
  if (typeof value !== "object") return String(value);
  return Array.isArray(value) ? value.map(shownValue).join(", ") : Object.entries(value).map(([name, each]) => `${name} ${shownValue(each)}`).join(", ");
}
function foreignSection(id, value) {
  const section = document.getElementById(id);
  if (value === null) return;
  section.hidden = false;
  const lists = listsIn(value);
  if (!lists.length) section.insertAdjacentHTML("beforeend", `<pre>${escaped(JSON.stringify(value, null, 1))}</pre>`);
  else if (!Array.isArray(value)) section.insertAdjacentHTML("beforeend", facts(Object.entries(value).filter(([, v]) => typeof v !== "object" || v === null).map(([name, v]) => [name, escaped(shownValue(v))])));
  for (const [name, rows] of lists) foreignTable(section, name, rows);
}
function foreignTable(section, name, rows) {
  const heads = [...new Set(rows.flatMap(row => Object.keys(row)))], box = document.createElement("div");
  const numeric = new Set(heads.filter(head => rows.some(row => typeof row[head] === "number")));
  const body = list => list.map(row => `<tr>${heads.map(head => `<td${numeric.has(head) ? ' class="n"' : ""}>${escaped(shownValue(row[head]))}</td>`).join("")}</tr>`).join("");
  box.innerHTML = `${name ? `<h3>${escaped(name)}</h3>` : ""}<div class="picks"><label class="pick">Words <input type="search"></label><span class="muted" aria-live="polite"></span></div><div class="scroll" style="max-height:70vh"><table><thead><tr>${heads.map(head => `<th scope="col"${numeric.has(head) ? ' class="n"' : ""}>${escaped(head.replaceAll("_", " "))}</th>`).join("")}</tr></thead><tbody></tbody></table></div>`;
  section.append(box);
  const texts = rows.map(row => heads.map(head => shownValue(row[head])).join(" ").toLowerCase());
  const show = () => {
    const words = box.querySelector("input").value.toLowerCase().split(/\s+/).filter(Boolean), found = rows.filter((_, n) => words.every(word => texts[n].includes(word)));
    box.querySelector("tbody").innerHTML = body(found.slice(0, 500));
    box.querySelector("[aria-live]").textContent = `${Math.min(500, found.length)} of ${found.length} shown${found.length === rows.length ? "" : `, ${rows.length} in all`}`;
  };
  box.querySelector("input").addEventListener("input", show);
  show();
}

// What a reader must know before comparing machines.
function warnings() {
  const said = [], origins = data.runs.filter(run => run.origin), bundles = new Set(origins.map(run => run.origin.bundle.sha256)), commits = new Set(origins.map(run => run.origin.commit));
  if (bundles.size > 1) said.push(`These results are of ${bundles.size} different bundles, so machines and times compare different kernels. See Environment.`);
  else if (commits.size > 1) said.push(`These results were taken with the code of ${commits.size} different commits. See Environment.`);
  const old = data.runs.filter(run => !run.origin).length;
  if (old) said.push(`${old} of ${data.runs.length} files are of an older version: they do not say which kernels ran.`);
  for (const run of origins) {
    if (run.origin.dirty) said.push(`${run.file}: the checkout had uncommitted changes.`);
    if (run.origin.commit === "") said.push(`${run.file}: the commit is unknown. \`python -m benchmarks stamp\` notes it in a bundle.`);
  }
  document.getElementById("warnings").innerHTML = said.map(line => `<p>${escaped(line)}</p>`).join("");
}
