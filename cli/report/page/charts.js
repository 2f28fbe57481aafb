// Charts: Chart.js with the page's colours, tooltip, keyboard and print.

// Okabe and Ito's palette; a dash and a mark of its own tell each apart without colour, too.
const kSeries = [["cu", [], "circle"], ["exposed", [7, 3], "triangle"], ["cache", [2, 3], "rect"], ["links", [9, 3, 2, 3], "rectRot"],
  ["hbm", [5, 5], "star"], ["sky", [1, 2], "crossRot"], ["ink", [12, 4], "rectRounded"], ["communication", [3, 3], "cross"]];
// Viridis at five places: even in lightness, and told apart with every common form of colour blindness. The more, the
// further from the page's own lightness.
const kRamp = ["#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"].map(rgb);
function ramp(t) {
  const along = Math.max(0, Math.min(1, document.documentElement.dataset.theme === "dark" ? t : 1 - t));
  const at = along * (kRamp.length - 1), k = Math.min(kRamp.length - 2, Math.floor(at));
  return `rgb(${mix(kRamp[k], kRamp[k + 1], at - k).join(",")})`;
}
// The look of series i of n: the palette while it lasts, else shades of the ramp.
function seriesStyle(i, n) {
  const [name, borderDash, pointStyle] = kSeries[i % kSeries.length];
  const stroke = n <= kSeries.length ? color(name) : ramp(0.05 + 0.85 * i / (n - 1));
  return {borderColor: stroke, backgroundColor: stroke, borderDash: n <= kSeries.length ? borderDash : [], pointStyle};
}

const legendLabels = () => ({color: color("ink"), usePointStyle: true, boxHeight: 7});

Object.assign(Chart.defaults, {animation: false, responsive: true, maintainAspectRatio: false});
Chart.defaults.font.family = "system-ui, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";
Chart.defaults.font.size = 12;

// scale({title, log, text}): an axis. text(value) writes its ticks.
function scale({title, log, text, ...more}) {
  const ticks = {color: color("soft"), maxRotation: 0, autoSkipPadding: 14, includeBounds: false};
  // A logarithmic axis names 1, 2 and 5 of each power of ten.
  if (text) ticks.callback = (v) => (!log || /^[125]e/.test(v.toExponential()) ? text(v) : "");
  return {type: log ? "logarithmic" : "linear", title: {display: Boolean(title), text: title, color: color("soft")},
    grid: {color: color("grid"), borderColor: color("line"), tickColor: color("line")}, ticks, ...more};
}

// A chart of build() (Chart.js's configuration, made anew for each theme and change). describe(item) gives the
// tooltip's content for {datasetIndex, index}, open(item) answers a click or Enter. Arrow keys go from item to item.
function plot({label, height = 300, build, describe, open}) {
  const canvas = el("canvas", {tabindex: 0, role: "img", "aria-label": label + ". Arrow keys go through its items."});
  const node = el("div.plot", {style: {height: height + "px"}}, canvas);
  let chart = null, at = null;
  const tooltip = ({chart: c, tooltip: t}) => {
    if (!t.opacity || !t.dataPoints) { hideTip(); return; }
    const box = c.canvas.getBoundingClientRect();
    const {datasetIndex, dataIndex: index} = t.dataPoints[0];
    showTip({clientX: box.left + t.caretX, clientY: box.top + t.caretY}, describe({datasetIndex, index}));
  };
  function draw() {
    if (chart) {
      chart.destroy();
      chart.legend = { handleEvent() {} };  // a mouse event that was put off by a frame still comes (Chart.js 3.9)
    }
    at = null;
    const config = build();
    config.options = {...config.options, onClick: (_, items) => { if (items.length && open) open(items[0]); },
      onHover: (event, items) => { canvas.style.cursor = items.length && open ? "pointer" : "default"; }};
    config.options.plugins = {legend: {display: config.data.datasets.length > 1, position: "bottom",
      labels: legendLabels()}, ...config.options.plugins,
      tooltip: {enabled: false, mode: "nearest", intersect: true, external: tooltip, ...(config.options.plugins || {}).tooltip}};
    chart = new Chart(canvas, config);
  }
  function goTo(datasetIndex, index) {
    const sets = chart.data.datasets;
    const set = (datasetIndex + sets.length) % sets.length, n = sets[set].data.length;
    if (!n) return;
    at = {datasetIndex: set, index: Math.max(0, Math.min(n - 1, index))};
    chart.setActiveElements([at]);
    chart.tooltip.setActiveElements([at], {x: 0, y: 0});
    chart.update();
  }
  canvas.addEventListener("keydown", (event) => {
    const step = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 0], ArrowDown: [-1, 0]}[event.key];
    if (step && chart.data.datasets.length) {
      if (at) goTo(at.datasetIndex + step[0], at.index + step[1]); else goTo(0, 0);
    } else if (event.key === "Enter" && at && open) open(at);
    else if (event.key === "Escape") { at = null; hideTip(); } else return;
    event.preventDefault();
  });
  canvas.addEventListener("blur", hideTip);
  // Charts have the size of their place in the page: they begin when they are in it.
  requestAnimationFrame(draw);
  themed.push(() => chart && draw());
  // show(from, to): another span of the horizontal axis.
  const show = (from, to) => {
    if (!chart) return;
    Object.assign(chart.options.scales.x, {min: from, max: to});
    chart.update("none");
  };
  return {node, redraw: () => chart && draw(), show};
}
addEventListener("beforeprint", () => Object.values(Chart.instances).forEach((c) => c.resize()));
addEventListener("afterprint", () => Object.values(Chart.instances).forEach((c) => c.resize()));

const facts = (rows) => el("dl", rows.filter(([, v]) => !absent(v)).map(([term, value]) => [el("dt", term), el("dd", value)]));
