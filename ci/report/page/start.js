// Puts the page together, and measures how long that took.

function fill(name, options, first) {
  control(name).innerHTML = (first ? `<option value="">${first}</option>` : "") + options.map(([value, shown_]) => `<option value="${escaped(value)}">${escaped(shown_)}</option>`).join("");
}
const same = values => values.map(value => [value, value]);
fill("view", Object.entries(VIEWS).filter(([, view]) => view.usable).map(([name, view]) => [name, view.name]));
fill("op", same(opOrder), "all");
fill("source", same([...new Set(data.cells.map(c => c[1]))].sort()), "all");
fill("dtype", same(dtypes), "all");
fill("state", same(Object.keys(STATES).filter(name => [...squares.values()].some(s => s.state === name))), "any");
warnings();
draw();
explain();
filter();
speedSection();
rooflineSection();
foreignSection("difference", data.difference);
foreignSection("support", data.support);
foreignSection("cache", data.cache);
environmentSection();
document.getElementById("sections").innerHTML = [...document.querySelectorAll("main > section:not([hidden])")].map(s => `<a href="#${s.id}">${escaped(s.querySelector("h2").textContent)}</a>`).join("");

const timed = run => { const start = performance.now(); run(); performance.measure("tilestack filter", {start}); };
control("filters").addEventListener("change", event => timed(() => { const view = event.target.id === "view"; if (view) explain(); filter(view); }));
control("words").addEventListener("input", () => timed(() => filter()));
control("filters").addEventListener("reset", () => setTimeout(() => { explain(); filter(true); }));
control("filters").addEventListener("submit", event => event.preventDefault());
control("more").addEventListener("click", more);
document.documentElement.dataset.ready = performance.now().toFixed(0);
