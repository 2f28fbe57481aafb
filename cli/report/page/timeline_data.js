// What the timeline draws: operations as columns of numbers, spans of phases, the colours of slowdown.
const kPhases = ["forward", "backward", "optimizer", "other"];

// Operations as columns of numbers, ordered by lane and start.
function loadOperations(timeline) {
  const rows = timeline.operations, n = rows.length;
  const ops = {n, rows, start: new Float64Array(n), end: new Float64Array(n), slow: new Float32Array(n)};
  const lanes = timeline.streams.map((s) => ({...s, from: n, to: 0}));
  for (let i = 0; i < n; ++i) {
    const [stream, , , , start, duration, isolated] = rows[i];
    ops.start[i] = start;
    ops.end[i] = start + duration;
    ops.slow[i] = isolated > 0 ? duration / isolated : NaN;
    lanes[stream].from = Math.min(lanes[stream].from, i);
    lanes[stream].to = Math.max(lanes[stream].to, i + 1);
  }
  return {ops, lanes};
}
function firstEndingAfter(ops, from, to, t) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (ops.end[middle] > t) to = middle; else from = middle + 1;
  }
  return from;
}

// The operations of each collective, by its flow.
function operationsByFlow(ops) {
  const flows = new Map();
  ops.rows.forEach((row, i) => {
    if (!row[7]) return;
    if (!flows.has(row[7])) flows.set(row[7], []);
    flows.get(row[7]).push(i);
  });
  return flows;
}

// Spans of one phase, from the compute operations of one GPU.
function phaseSpans(ops, lanes, names) {
  const spans = [];
  const gpu = lanes.length ? lanes[0].gpu : 0;
  const order = [];
  for (const lane of lanes) if (lane.gpu === gpu) for (let i = lane.from; i < lane.to; ++i) {
    if (!names[ops.rows[i][1]][1] && ops.rows[i][2] !== 3) order.push(i);
  }
  order.sort((a, b) => ops.start[a] - ops.start[b]);
  for (const i of order) {
    const [, , phase, iteration] = ops.rows[i], last = spans[spans.length - 1];
    if (last && last.phase === phase && last.iteration === iteration) last.end = Math.max(last.end, ops.end[i]);
    else spans.push({phase, iteration, start: ops.start[i], end: ops.end[i]});
  }
  return spans;
}

// 1x is pale, 2x and more is hot.
function slowdownRamp() {
  const stops = ["hot0", "hot1", "hot2", "hot3"].map((name) => rgb(color(name))), at = [0, 0.2, 0.6, 1];
  const ramp = [];
  for (let i = 0; i <= 64; ++i) {
    const t = i / 64, k = t <= at[1] ? 0 : t <= at[2] ? 1 : 2;
    ramp.push(`rgb(${mix(stops[k], stops[k + 1], (t - at[k]) / (at[k + 1] - at[k])).join(",")})`);
  }
  return ramp;
}

// Ticks at 1, 2 or 5 times a power of ten, about 90 pixels apart.
function tickStep(perPixel) {
  const rough = 90 * perPixel, power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((k) => k * power >= rough);
}
// All ticks in one unit, with the digits that the step needs.
function tickText(t, step, largest) {
  const [unit, name] = Math.max(Math.abs(largest), step) >= 1e6 ? [1e6, "ms"] : [1e3, "µs"];
  return (t / unit).toFixed(Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9))) + "\u202f" + name;
}
const timelineLegend = () => [el("span", "1×"), el("span.ramp"), el("span", "2× slower and more"), el("span", "\u2003"),
  el("span.dot", {style: {background: "var(--communication)"}}), el("span", "communication"),
  el("span.dot", {style: {background: "var(--idle)"}}), el("span", "time alone unknown")];
