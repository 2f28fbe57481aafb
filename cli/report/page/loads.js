// What memory and links did over time: charts that follow the span of the timeline.
const kMostLinks = 8;  // as many as have a look of their own

// A counter's values as steps: each holds from its point to the next.
function steps(counter) {
  const points = counter.values.map((y, i) => ({x: i * counter.period_ns, y}));
  if (points.length) points.push({x: points.length * counter.period_ns, y: points[points.length - 1].y});
  return points;
}
const mean = (values) => values.reduce((a, b) => a + b, 0) / (values.length || 1);

// chosen(): the counters to draw, with one unit. stacked: areas on top of each other.
function loadPlot(label, chosen, stacked) {
  let shown = [];
  const build = () => {
    shown = chosen();
    const sets = shown.map((counter, i) => {
      const style = seriesStyle(i, shown.length);
      return {label: counter.name, data: steps(counter), ...style, borderWidth: stacked ? 1 : 1.6, borderDash: stacked ? [] : style.borderDash,
        fill: stacked ? (i ? "-1" : "origin") : false};
    });
    const limit = shown.length ? shown[0].limit : null, unit = shown.length ? shown[0].unit : "";
    const highest = !stacked || !shown.length ? Infinity
      : Math.max(...shown[0].values.map((_, i) => shown.reduce((sum, c) => sum + (c.values[i] || 0), 0)));
    const far = !absent(limit) && limit > 4 * highest;  // a line there would leave nothing to see below it
    const last = shown.length ? shown[0].values.length * shown[0].period_ns : 0;
    if (!absent(limit) && !far) sets.push({label: `limit, ${digits(limit)} ${unit}`, data: [{x: 0, y: limit}, {x: last, y: limit}], borderColor: color("soft"),
      backgroundColor: "transparent", borderDash: [14, 5], borderWidth: 1.5, stack: "limit"});
    return {type: "line", data: {datasets: sets}, options: {parsing: false, normalized: true, interaction: {mode: "index", intersect: false},
      elements: {line: {stepped: "before"}, point: {radius: 0, hitRadius: 4}},
      plugins: {legend: {display: true, position: "bottom", 
        labels: {color: color("ink"), boxWidth: 30, boxHeight: stacked ? 8 : 0}},
        tooltip: {mode: "index", intersect: false}},
      scales: {x: scale({text: (t) => (t === 0 ? "0" : time(t * 1e-9)), min: span.from, max: span.to}),
        y: scale({title: far ? `${unit}, of ${digits(limit)}` : unit, text: digits, beginAtZero: true, stacked: Boolean(stacked)})}}};
  };
  const describe = ({index}) => [el("div.head", label), shown.length && el("div.sub", "at " + time(index * shown[0].period_ns * 1e-9)),
    facts([...shown.map((c) => [c.name, joined([digits(c.values[Math.min(index, c.values.length - 1)]), c.unit])]),
      stacked && shown.length ? ["together", joined([digits(shown.reduce((sum, c) => sum + c.values[Math.min(index, c.values.length - 1)], 0)), shown[0].unit])] : ["", null]])];
  return plot({label, height: 240, build, describe});
}

const span = {from: undefined, to: undefined};
// {parts: sections, follow(from, to): shows that span, in nanoseconds}.
function loadSections(counters) {
  const of = (kind, gpu) => counters.filter((c) => c.kind === kind && (gpu === null || c.gpu === gpu));
  const gpus = [...new Set(counters.map((c) => c.gpu).filter((g) => !absent(g)))].sort((a, b) => a - b);
  const plots = [];
  function one(id, title, why, kind, stacked, pick) {
    if (!of(kind, null).length) return null;
    let gpu = of(kind, null)[0].gpu;
    const chart = loadPlot(title, () => pick(of(kind, gpu)), stacked);
    const select = el("select", {"data-choose": id, onchange: () => { gpu = select.value === "" ? null : Number(select.value); chart.redraw(); }},
      kind === "link" && el("option", {value: ""}, "all GPUs"), gpus.map((g) => el("option", {value: g, ...(g === gpu ? {selected: ""} : {})}, "GPU " + g)));
    plots.push(chart);
    return section(id, title, why, el("div.tools", el("label.choice", "Of", select)), chart.node);
  }
  const busiest = (links) => links.map((c) => [mean(c.values), c]).sort((a, b) => b[0] - a[0]).slice(0, kMostLinks).map(([, c]) => c);
  const inUse = (classes) => classes.filter((c) => c.values.some((v) => v > 0));
  const parts = [
    one("hbm-load", "HBM load", "Bandwidth over time; what communication moves is part of reads and writes. The charts of loads show the timeline's span.",
      "hbm", false, (all) => all),
    one("link-load", "Link load", `Share of time in which a link sends; the ${kMostLinks} that send most.`, "link", false, busiest),
    one("memory-load", "Memory", "What is allocated, by class, and what the GPU has.", "memory", true, inUse),
    one("power", "Power", "Means over windows, and the limit at which the clock goes down.", "power", false, (all) => all),
    one("clock", "Clock", "Of the units, L1, crossbar and L2, as the power leaves it.", "clock", false, (all) => all)].filter(Boolean);
  let waiting = false;
  function follow(from, to) {
    if (!plots.length || from === span.from && to === span.to) return;
    Object.assign(span, {from, to});
    if (waiting) return;
    waiting = true;
    setTimeout(() => {  // a drag draws the timeline at once, and the charts when there is time
      waiting = false;
      plots.forEach((p) => p.show(span.from, span.to));
    }, 60);
  }
  return {parts, follow};
}
