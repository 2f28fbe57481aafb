// The page of a sweep: every point's parameters and metrics as columns, filters over them, and charts of what is left.
const n = data.points.id.length;
const parameters = data.parameters, metrics = data.metrics;
const rowsOf = (keep) => Array.from({length: n}, (_, i) => i).filter(keep);
const short = (name) => name.split(".").slice(-2).join(".");
// A metric's value as people read it, by the unit in its name.
function metricText(metric, v) {
  if (absent(v)) return "–";
  if (typeof v !== "number") return v;
  if (/(^|[^r])_s$/.test(metric.name)) return time(v);
  if (/_bytes$/.test(metric.name)) return size(v);
  if (/_GBps$/.test(metric.name)) return rate(v);
  if (/(fraction|efficiency)$/.test(metric.name)) return percent(v);
  return digits(v);
}
const plain = (v) => (absent(v) ? "–" : typeof v === "number" ? String(Number(v.toPrecision(12))) : v);
// A parameter's value: sizes in bytes as the power of two they often are.
const kBinary = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
function valueOf(parameter, v) {
  const unit = /bytes$/.test(parameter.name) && v > 0 && kBinary.find(([bytes]) => v % bytes === 0);
  return unit ? joined([plain(v / unit[0]), unit[1]]) : plain(v);
}
const valueText = (parameter, i) => valueOf(parameter, parameter.values[i]);
const numeric = (column) => column.values.every((v) => absent(v) || typeof v === "number");
for (const column of [...parameters, ...metrics]) {
  column.numeric = numeric(column);
  const all = [...new Set(column.values.filter((v) => !absent(v)))];
  column.distinct = column.numeric ? all.sort((a, b) => a - b) : all;
  const [least, most] = [all[0], all[all.length - 1]];
  // A logarithmic axis shows wide ranges better, and values that multiply.
  const steps = new Set(all.slice(1).map((v, i) => (v / all[i]).toPrecision(3)));
  column.wide = column.numeric && least > 0 && (most / least >= 30 || all.length > 2 && steps.size === 1);
}
const varied = parameters.filter((p) => p.distinct.length > 1);
const measured = metrics.filter((m) => m.numeric && m.distinct.length);
const better = (metric, a, b) => (b - a) * metric.better < 0;  // a is better than b

headline(data.title, data.verdict);

// ---- What is chosen
// Over the finest number, a curve for each of what has few values.
const finest = [...varied].sort((a, b) => b.numeric - a.numeric || b.distinct.length - a.distinct.length)[0];
const chosen = {metric: measured[0], x: finest, by: null, heatX: null, heatY: null, take: "best",
  paretoX: measured[0], paretoY: measured.slice(1).find((m) => m.distinct.length > 1) || measured[0], point: -1};
chosen.by = varied.filter((p) => p !== chosen.x && p.distinct.length <= 24).sort((a, b) => a.numeric - b.numeric)[0] || null;
[chosen.heatX, chosen.heatY] = [chosen.x, chosen.by || chosen.x];
let shown = rowsOf(() => true);
const redraws = [];
function choose(name, options, key, textOf, nothing) {
  const select = el("select", {"data-choose": key, onchange: () => {
    chosen[key] = select.value === "" ? null : options[select.value];
    update();
  }}, nothing && el("option", {value: ""}, nothing),
  options.map((o, i) => el("option", {value: i, ...(o === chosen[key] ? {selected: ""} : {})}, textOf(o))));
  return el("label.choice", name, select);
}
const nameOf = (column) => column.name;

// ---- Filters
const filters = [];
function rangeFilter(column) {
  const ends = [column.distinct[0], column.distinct[column.distinct.length - 1]], range = [-Infinity, Infinity];
  const bound = (k) => el("input", {type: "number", step: "any", placeholder: plain(ends[k]), "data-filter": column.name,
    "aria-label": `${column.name}, ${k ? "at most" : "at least"}`, oninput: (event) => {
      range[k] = event.target.value === "" ? [-Infinity, Infinity][k] : Number(event.target.value);
      update();
    }});
  filters.push((i) => column.values[i] >= range[0] && column.values[i] <= range[1] || range[0] === -Infinity && range[1] === Infinity);
  return el("fieldset", el("legend", column.name), el("span", bound(0), " to ", bound(1)));
}
function choiceFilter(column) {
  const out = new Set();
  filters.push((i) => !out.has(column.values[i]));
  return el("fieldset", el("legend", column.name), column.distinct.map((v) => el("label", el("input", {type: "checkbox", checked: "",
    "data-filter": column.name, value: plain(v), onchange: (event) => {
      if (event.target.checked) out.delete(v); else out.add(v);
      update();
    }}), valueOf(column, v))));
}
const status = {name: "status", values: data.points.status, distinct: [...new Set(data.points.status)]};
const filtered = [...varied, status.distinct.length > 1 && status].filter(Boolean);
const found = el("b", {id: "found"});
const pinned = el("div.pinned", {"aria-live": "polite"});
page.append(section("filters", "Points", "What is filtered out here leaves every chart and the table.",
  el("div.filters", filtered.map((c) => (c.distinct.length > 12 ? rangeFilter(c) : choiceFilter(c)))),
  el("p.why", found), pinned));

// ---- A point
const facet = (i) => [...varied.map((p) => [p.name, valueText(p, i)]), ...measured.slice(0, 8).map((m) => [m.name, metricText(m, m.values[i])])];
const describePoint = (i, more) => [el("div.head", `Point ${data.points.id[i]}`), more && el("div.sub", more), facts(facet(i))];
const linkOf = (i) => data.points.link[i] && data.points.link[i].split("/").map(encodeURIComponent).join("/");
// Of large sweeps only results are kept: then it says what makes the page.
function pageOf(i) {
  const href = linkOf(i);
  if (!href) return el("span", "has no page");
  if (href.endsWith("report.html")) return el("a", {href}, "open its page →");
  const run = data.points.link[i].split("/").slice(0, -1).join("/");
  return el("span", el("a", {href}, "its result →"), " and its page, from this page's folder: ",
    el("code", `weft run ${run}/config.json -o ${run}`));
}
function pin(i) {
  chosen.point = i;
  pinned.replaceChildren(el("div.chips", el("b", `Point ${data.points.id[i]}`), pageOf(i),
    facet(i).map(([name, value]) => el("span", name + " ", el("b", value))),
    data.points.reason[i] ? el("span", data.points.status[i] + ": " + data.points.reason[i]) : null));
  redraws.forEach((redraw) => redraw());
}

// One point for each pair of values of x and y (absent: one for all) among those shown, by what is to be taken.
function groups(x, y, metric) {
  const cells = new Map();
  for (const i of shown) {
    if (absent(metric.values[i]) || absent(x.values[i])) continue;
    const key = x.values[i] + "\n" + (y ? y.values[i] : "");
    if (!cells.has(key)) cells.set(key, []);
    cells.get(key).push(i);
  }
  return [...cells.values()].map((rows) => {
    rows.sort((a, b) => (metric.values[a] - metric.values[b]) * -metric.better);  // the best first
    const row = rows[{best: 0, median: (rows.length - 1) >> 1, worst: rows.length - 1}[chosen.take]];
    return {row, of: rows.length, x: x.values[row], y: y ? y.values[row] : null, value: metric.values[row]};
  });
}
const among = (g) => (g.of > 1 ? `the ${chosen.take} of ${g.of} points` : "");

// ---- Curves
let curves = [];
const curveSeries = () => {
  const all = groups(chosen.x, chosen.by, chosen.metric);
  const keys = chosen.by ? chosen.by.distinct : [null];
  return keys.map((key) => ({key, points: all.filter((g) => g.y === key)})).filter((s) => s.points.length);
};
function curvesConfig() {
  const x = chosen.x, position = new Map(x.distinct.map((v, i) => [v, i]));
  curves = curveSeries();
  const at = (g) => (x.numeric ? g.x : position.get(g.x));
  for (const s of curves) s.points.sort((a, b) => at(a) - at(b));
  const axis = scale({title: x.name, log: x.wide, text: (v) => (/bytes$/.test(x.name) ? size(v) : plain(v))});
  // A tick at each value, where they are few.
  if (!x.numeric || x.distinct.length <= 24) {
    const places = x.distinct.map((v, i) => (x.numeric ? v : i)), along = (v) => (x.wide ? Math.log(v) : v);
    const length = along(places[places.length - 1]) - along(places[0]) || 1;
    axis.afterBuildTicks = (a) => {  // as many as do not overlap
      let last = -Infinity;
      a.ticks = places.filter((v) => {
        const pixel = (a.width || 900) * along(v) / length;
        return pixel - last >= 46 && (last = pixel, true);
      }).map((value) => ({value}));
    };
    axis.ticks.callback = (v) => valueOf(x, x.numeric ? v : x.distinct[v]);
  }
  if (x.wide) [axis.min, axis.max] = [x.distinct[0] / 1.1, x.distinct[x.distinct.length - 1] * 1.1];
  return {type: "line", data: {datasets: curves.map((s, i) => ({label: s.key === null ? chosen.metric.name : `${short(chosen.by.name)} ${valueOf(chosen.by, s.key)}`,
    data: s.points.map((g) => ({x: at(g), y: g.value})), ...seriesStyle(i, curves.length), borderWidth: 2,
    pointRadius: s.points.map((g) => (g.row === chosen.point ? 9 : s.points.length > 60 ? 1.5 : 4)), pointHoverRadius: 7, pointHitRadius: 6}))},
  options: {scales: {x: axis, y: scale({title: chosen.metric.name, log: chosen.metric.wide, text: (v) => metricText(chosen.metric, v)})}}};
}
const curveItem = (item) => curves[item.datasetIndex].points[item.index];

// ---- Heat map: bars that float, one a cell
let cells = [], heatPlot = null;
function heatConfig() {
  const {heatX: x, heatY: y, metric} = chosen;
  cells = groups(x, y, metric);
  const places = (c) => new Map(c.distinct.map((v, i) => [v, i])), px = places(x), py = places(y);
  const values = cells.map((g) => g.value), least = Math.min(...values), most = Math.max(...values);
  const log = metric.wide && least > 0, of = (v) => (most === least ? 0.5 : log ? Math.log(v / least) / Math.log(most / least) : (v - least) / (most - least));
  heatKey.replaceChildren(metricText(metric, least), el("span.ramp.even"), metricText(metric, most), cells.length ? "" : " nothing to show");
  const fills = cells.map((g) => ramp(of(g.value)));
  const labels = {id: "labels", afterDatasetsDraw: (chart) => {
    const bars = chart.getDatasetMeta(0).data, c = chart.ctx;
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.font = "11.5px system-ui, 'Liberation Sans', sans-serif";
    bars.forEach((bar, k) => {
      const text = metricText(metric, cells[k].value), mark = cells[k].row === chosen.point;
      if (mark) { c.strokeStyle = color("exposed"); c.lineWidth = 3; c.strokeRect(bar.x - bar.width / 2 + 2, Math.min(bar.y, bar.base) + 2, bar.width - 4, Math.abs(bar.base - bar.y) - 4); }
      if (bar.width < c.measureText(text).width + 6 || Math.abs(bar.base - bar.y) < 14) return;
      c.fillStyle = inkOn(fills[k]);
      c.fillText(text, bar.x, (bar.y + bar.base) / 2);
    });
  }};
  const named = (column, title) => ({...scale({title, text: (v) => (Number.isInteger(v) && v < column.distinct.length ? valueOf(column, column.distinct[v]) : "")})});
  heatPlot.node.style.height = Math.min(620, 130 + 34 * y.distinct.length) + "px";
  const across = x.distinct.map((v) => valueOf(x, v));
  return {type: "bar", plugins: [labels], data: {labels: across, datasets: [{label: metric.name, grouped: false, barPercentage: 0.97,
    categoryPercentage: 1, borderSkipped: false, backgroundColor: fills, data: cells.map((g) => ({x: across[px.get(g.x)], y: [py.get(g.y) - 0.5, py.get(g.y) + 0.5]}))}]},
  options: {scales: {x: {...named(x, x.name), type: "category", ticks: {color: color("soft")}},
    y: {...named(y, y.name), min: -0.5, max: y.distinct.length - 0.5, grid: {display: false}, afterBuildTicks: (axis) => {
      const every = Math.ceil(y.distinct.length / 24);
      axis.ticks = y.distinct.map((_, value) => ({value})).filter(({value}) => value % every === 0);
    }}}}};
}
const heatKey = el("p.why.key");

// ---- Pareto front of two metrics
let spread = [[], []];
function front(rows, a, b) {
  const order = [...rows].sort((i, j) => (a.values[j] - a.values[i]) * a.better || (b.values[j] - b.values[i]) * b.better);
  const out = [];
  for (const i of order) if (!out.length || better(b, b.values[i], b.values[out[out.length - 1]])) out.push(i);
  return out;
}
function paretoConfig() {
  const {paretoX: a, paretoY: b} = chosen;
  const rows = shown.filter((i) => !absent(a.values[i]) && !absent(b.values[i]));
  const best = front(rows, a, b), on = new Set(best);
  spread = [best, rows.filter((i) => !on.has(i))];
  const spot = (i) => ({x: a.values[i], y: b.values[i]});
  const mark = (set, r) => set.map((i) => (i === chosen.point ? 9 : r));
  const towards = (m) => `${m.name} (${m.better > 0 ? "more" : "less"} is better)`;
  return {type: "scatter", data: {datasets: [
    {label: `Pareto front, ${best.length} points`, data: best.map(spot), showLine: true, stepped: "before", borderWidth: 2,
      borderColor: color("exposed"), backgroundColor: color("exposed"), pointRadius: mark(best, 5), pointStyle: "rectRot", order: 0},
    {label: "others", data: spread[1].map(spot), borderColor: "transparent", backgroundColor: color("cu") + (rows.length > 1000 ? "55" : "99"),
      pointRadius: mark(spread[1], rows.length > 1000 ? 2 : 3.5), order: 1}]},
  options: {scales: {x: scale({title: towards(a), log: a.wide, text: (v) => metricText(a, v)}), y: scale({title: towards(b), log: b.wide, text: (v) => metricText(b, v)})}}};
}

// ---- The page
const takes = choose("Where several points meet", ["best", "median", "worst"], "take", (t) => t);
const metricChoice = () => choose("Metric", measured, "metric", nameOf);
if (measured.length && varied.length) {
  const curvePlot = plot({label: "Curves of a metric over a parameter", height: 380, build: curvesConfig,
    describe: (item) => describePoint(curveItem(item).row, among(curveItem(item))), open: (item) => pin(curveItem(item).row)});
  page.append(section("curves", "Curves", "", el("div.tools", metricChoice(), choose("Over", varied, "x", nameOf),
    choose("A curve for each", varied, "by", nameOf, "(one for all)"), takes), curvePlot.node));
  redraws.push(curvePlot.redraw);
}
if (measured.length && varied.length > 1) {
  heatPlot = plot({label: "Heat map of a metric over two parameters", build: heatConfig,
    describe: (item) => describePoint(cells[item.index].row, among(cells[item.index])), open: (item) => pin(cells[item.index].row)});
  page.append(section("heat", "Heat map", "", el("div.tools", choose("Across", varied, "heatX", nameOf), choose("Up", varied, "heatY", nameOf)), heatKey, heatPlot.node));
  redraws.push(heatPlot.redraw);
}
if (measured.length > 1) {
  const paretoPlot = plot({label: "Points by two metrics, and those that none beats in both", height: 420, build: paretoConfig,
    describe: (item) => describePoint(spread[item.datasetIndex][item.index]), open: (item) => pin(spread[item.datasetIndex][item.index])});
  page.append(section("pareto", "Pareto front", "Points that no other beats in both metrics.", el("div.tools", choose("Across", measured, "paretoX", nameOf),
    choose("Up", measured, "paretoY", nameOf)), paretoPlot.node));
  redraws.push(paretoPlot.redraw);
}
const by = (column) => (i) => (absent(column.values[i]) ? -Infinity : column.values[i]);
const pointTable = table([
  {name: "point", text: true, cell: (i) => (linkOf(i) ? el("a", {href: linkOf(i)}, data.points.id[i]) : data.points.id[i]), sort: (i) => i},
  {name: "status", text: true, cell: (i) => el("span", {title: data.points.reason[i] || ""}, data.points.status[i]), sort: (i) => data.points.status[i]},
  ...varied.map((p) => ({name: p.name, text: !p.numeric, cell: (i) => valueText(p, i), sort: by(p)})),
  ...metrics.map((m) => ({name: m.name, cell: (i) => metricText(m, m.values[i]), sort: by(m)}))], shown, "points");
page.append(section("points", "All points", "A click on a heading sorts.", el("div.scroll", pointTable)));
redraws.push(() => pointTable.fill(shown));

function update() {
  shown = rowsOf((i) => filters.every((f) => f(i)));
  found.textContent = `${count(shown.length)} of ${count(n)} points shown`;
  hideTip();
  redraws.forEach((redraw) => redraw());
}
update();
page.append(el("footer", "results.csv and results.sqlite beside this page hold every number."));
