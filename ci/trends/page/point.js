// The drawer of a cell: its charts side by side, and what lies between a night and the one before.

const drawer = document.getElementById("drawer");
const percent = change => { const tenths = Math.round(1000 * change) || 0; return `${tenths > 0 ? "+" : ""}${(tenths / 10).toFixed(1)} %`; };
const signed = step => `<span class="${step.kind === "slower" ? "up" : "down"}">${step.kind === "slower" ? "▲" : "▼"} ${percent(step.change)}</span>${step.confirmed ? "" : ' <span class="muted">unconfirmed</span>'}`;
const SHOWN = 5;  // commits of a range that are not folded away

// The commits after one night up to another; null if the page does not know them all.
function commitsBetween(before, night) {
  const found = [];
  for (let at = night; at > before; at--) { if (data.nights[at].commits === null) return null; found.push(...data.nights[at].commits); }
  return found;
}

function rangeLine(before, night) {
  const [a, b] = [before, night].map(at => data.nights[at].commit), words = `${a.slice(0, 12)}..${b.slice(0, 12)}`;
  return data.url ? `<a href="${escaped(data.url)}/compare/${escaped(a)}...${escaped(b)}"><code>${words}</code></a>` : `<code>${words}</code>`;
}

const commitLink = (commit, words) => data.url ? `<a href="${escaped(data.url)}/commit/${escaped(commit)}"><code>${escaped(words)}</code></a>` : `<code>${escaped(words)}</code>`;

function changesOf(machine, before, night) {  // of driver and tools, between two nights that need not be neighbours
  const versions = at => { const one = data.machines[machine].nights[at]; return {driver: one.driver, ...one.tools}; };
  const old = versions(before), now = versions(night);
  return Object.keys(now).filter(name => old[name] && old[name] !== now[name]).map(name => `${name} ${old[name]} to ${now[name]}`);
}

function describePoint(box, cell, machine, index) {
  const rows = points(cell, machine), point = rows[index], night = point[P.night], step = stepsOf(cell, machine).find(each => each.night === night);
  const before = step ? step.before : index ? rows[index - 1][P.night] : null, {day, minute, commit} = data.nights[night];
  const facts = [["time", `${digits(point[P.us], 4)} µs <span class="muted">${digits(point[P.low], 4)} – ${digits(point[P.high], 4)}</span>`], ["commit", `<code>${escaped(commit)}</code>`]];
  let list = "";
  if (before !== null) {
    const old = rows.find(p => p[P.night] === before), changed = changesOf(machine, before, night), commits = commitsBetween(before, night);
    facts.push(["before", `${digits(old[P.us], 4)} µs in the night of ${escaped(data.nights[before].day)}: ${step ? signed(step) : percent(point[P.us] / old[P.us] - 1)}`]);
    facts.push(["cubins", point[P.same] === null ? "the files do not say" : point[P.same] ? "the same as in the night before" : "others than in the night before"]);
    facts.push(["also changed", escaped(changed.join(", ")) || "neither driver nor tools"]);
    facts.push(["commits", commit === data.nights[before].commit ? "none: the same commit" : rangeLine(before, night)]);
    if (commits?.length) {
      const items = commits.map(([sha, subject]) => `<li>${commitLink(sha, sha)} ${escaped(subject)}</li>`).join("");
      list = commits.length > SHOWN ? `<details><summary>${commits.length} commits</summary><ul>${items}</ul></details>` : `<ul>${items}</ul>`;
    }
    else if (commits === null) list = `<p class="muted">This page was made where these commits are not known.</p>${command(`git log --oneline ${data.nights[before].commit.slice(0, 12)}..${commit.slice(0, 12)}`)}`;
  }
  let find = "";
  if (step?.commands.length) find = `<p class="muted">Find the commit:</p>${step.commands.map(command).join("")}`;
  else if (step) find = `<p class="muted">No commit of the kernels made this step, so there is nothing to bisect.</p>`;
  box.innerHTML = `<h3>${escaped(day)} <span class="muted">${escaped(minute)} UTC</span></h3><dl>${facts.map(([name, value]) => `<dt>${name}</dt><dd>${value}</dd>`).join("")}</dl>${find}${list}`;
}

// `machine` and `night`: the point that is described first; by default the newest step, or the newest night.
function openCell(cell, machine = null, night = null) {
  const {name, source, entries} = data.cells[cell], there = data.machines.map((_, m) => m).filter(m => points(cell, m).length);
  drawer.className = "trends";
  drawer.innerHTML = `<header><div><h2 id="drawer-title">${escaped(name)}</h2><p>${escaped(source)} <span class="muted">${escaped(entries.join(", "))}</span></p></div><form method="dialog"><button>Close</button></form></header>
<p class="muted">Median time of a launch in each night; the band is its 95 % interval. ▲ is slower, ▼ faster, an empty one unconfirmed. Click a night for its commits.</p><div class="cards"></div>`;
  if (!drawer.open) drawer.showModal();
  drawer.scrollTop = 0;
  const cards = drawer.querySelector(".cards");
  cards.innerHTML = there.map(m => {
    const {name: gpu, target, marks} = data.machines[m], list = marks.map(([at, said], n) => `<li>${circled(n)} ${escaped(data.nights[at].day)}: ${escaped(said)}</li>`);
    return `<article class="card machine-${m % 4}"><h3>${escaped(gpu)} <span class="muted">${escaped(target)}</span></h3><div></div>${list.length ? `<ul class="marks">${list.join("")}</ul>` : ""}<div class="point" aria-live="polite"></div></article>`;
  }).join("");
  there.forEach((m, n) => cellOn(cards.children[n], cell, m, m === machine ? night : null));
}

// A card: the chart, the point that is chosen, the numbers. `night`: the one to begin with, or null.
function cellOn(card, cell, m, night) {
  const rows = points(cell, m), step = stepsOf(cell, m)[0], wanted = night ?? (step ? step.night : rows.at(-1)[P.night]);
  const box = card.querySelector(".point"), chosen = {index: Math.max(0, rows.findIndex(p => p[P.night] === wanted))};
  const show = index => { chosen.index = index; describePoint(box, cell, m, index); chosen.plot?.redraw(false); };
  trendChart(card.children[1], cell, m, chosen, show);
  show(chosen.index);
  const body = rows.map((p, n) => `<tr><td><button type="button" class="link" data-point="${n}">${escaped(nightName(p[P.night]))}</button></td><td class="n">${digits(p[P.us], 4)}</td><td class="n">${digits(p[P.low], 4)} – ${digits(p[P.high], 4)}</td></tr>`).join("");
  card.insertAdjacentHTML("beforeend", `<details><summary>The numbers</summary>${table(["night", "µs", "95 % interval"], body)}</details>`);
  card.addEventListener("click", event => { const button = event.target.closest("[data-point]"); if (button) { show(Number(button.dataset.point)); box.scrollIntoView({block: "nearest"}); } });
}
drawer.addEventListener("click", event => { if (event.target === drawer) drawer.close(); });  // outside of it
