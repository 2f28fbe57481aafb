// The page of several runs of the same work.
const runs = data.runs, first = runs[0].figures;
headline(`Comparison of ${runs.length} configurations`, data.verdict || runs[0].verdict);

const rows = [
  ["iteration", "iteration_s", time, -1], ["backward alone", "backward_isolated_s", time, 0], ["backward overlapped", "backward_s", time, -1],
  ["backward slowdown", "backward_slowdown", factor, -1], ["exposed communication", "exposed_s", time, -1],
  ["bus bandwidth", "busbw_GBps", rate, 1], ["HBM taken by communication", "hbm_communication_bytes", size, -1],
  ["throughput", "samples_per_s", (v) => (absent(v) ? "–" : digits(v) + "\u202fsamples/s"), 1],
].filter(([, key]) => runs.some((r) => !absent(r.figures[key])));

// How a run differs from the first, in words of the figure: percent, and whether that is good.
function change(key, better, f) {
  if (absent(f[key]) || absent(first[key]) || !first[key] || f === first) return null;
  const by = f[key] / first[key] - 1;
  if (Math.abs(by) < 0.0005) return el("small", " same");
  const good = better === 0 ? "" : by * better > 0 ? ".better" : ".worse";
  return el("small" + good, ` ${by > 0 ? "+" : "−"}${percent(Math.abs(by))}`);
}
// By the iteration, or by throughput where iterations have other numbers of samples.
function speed(from, to) {
  const samples = (f) => absent(f.samples_per_s) ? null : f.samples_per_s * f.iteration_s;
  const [a, b] = [samples(from), samples(to)];
  const same = absent(a) || absent(b) || Math.abs(b - a) <= 0.005 * a;
  return same ? from.iteration_s / to.iteration_s : to.samples_per_s / from.samples_per_s;
}
// The first against the fastest of the others, large.
const rivals = runs.slice(1).filter((r) => !absent(r.figures.iteration_s));
const best = rivals.reduce((a, b) => a && speed(a.figures, b.figures) <= 1 ? a : b, undefined);
if (best && !absent(first.iteration_s)) {
  const f = best.figures, from = (text) => `${text} with ${runs[0].label}`;
  const both = (key) => !absent(first[key]) && !absent(f[key]);
  page.append(el("div.tiles",
    tile(`Iteration, ${best.label}`, timeParts(f.iteration_s), from(time(first.iteration_s)), true),
    tile("Speed", [speed(first, f).toFixed(2), "×"], `of ${runs[0].label}`),
    both("backward_slowdown") && tile("Backward slowdown", [f.backward_slowdown.toFixed(2), "×"], from(factor(first.backward_slowdown))),
    both("exposed_s") && tile("Exposed communication", timeParts(f.exposed_s), from(time(first.exposed_s))),
    both("busbw_GBps") && tile("Bus bandwidth", [digits(f.busbw_GBps), "GB/s"], from(rate(first.busbw_GBps))),
    both("hbm_communication_bytes") && tile("HBM for communication", sizeParts(f.hbm_communication_bytes),
      from(size(first.hbm_communication_bytes)))));
}

page.append(section("figures", "Headline figures", `Changes are against ${runs[0].label}. Times of one iteration; HBM of one GPU and iteration.`,
  el("div.scroll", table([{name: "", text: true, cell: (r) => r[0]}, ...runs.map((run) => ({
    name: run.label + (run.figures.status === "ok" ? "" : ` (${run.figures.status})`),
    cell: ([, key, text, better]) => [text(run.figures[key]), change(key, better, run.figures)],
  }))], rows, "compare"))));

const finished = runs.filter((r) => !absent(r.figures.iteration_s));
function bars(id, title, why, partsOf, totalOf, shown) {
  if (!shown.length) return null;
  const most = Math.max(...shown.map((r) => totalOf(r.figures)));
  const sum = {};
  for (const run of shown) for (const part of partsOf(run.figures)) sum[part.name] = part.color;
  return section(id, title, why, el("div.rows", shown.map((run) => [el("span.name", run.label),
    stack(partsOf(run.figures), most), el("span.total", time(totalOf(run.figures)))])),
    legend(Object.entries(sum).map(([name, c]) => ({name, color: c, text: ""}))));
}
const byteParts = (f) => [
  {name: "compute", value: f.hbm_bytes - f.hbm_communication_bytes, color: "compute", text: size(f.hbm_bytes - f.hbm_communication_bytes)},
  {name: "communication", value: f.hbm_communication_bytes, color: "communication", text: size(f.hbm_communication_bytes)}];
const withBackward = finished.filter((r) => r.figures.causes.length && !absent(r.figures.backward_s));
const withBytes = finished.filter((r) => !absent(r.figures.hbm_bytes));
for (const part of [
  bars("iteration", "The iteration", "Time in which some kernel computes, in which only communication runs, and in which nothing does; one scale.",
    iterationParts, (f) => f.iteration_s, finished),
  bars("backward", "The backward pass", "As it runs alone, and what each shared resource adds beside communication; one scale.",
    backwardParts, (f) => f.backward_s, withBackward),
]) if (part) page.append(part);

if (withBackward.length) {
  const most = Math.max(...withBackward.flatMap((r) => r.figures.causes.map((c) => c.seconds)), 1e-300);
  page.append(section("causes", "The slowdown by cause", "Only the added backward time, enlarged; one scale.",
    el("div.chart", kCauses.map(([key, name], i) => [el("h3", name), el("div.rows", withBackward.map((run) => {
      const seconds = run.figures.causes[i].seconds;
      return [el("span.name", run.label), stack([{name, value: seconds, color: key, text: time(seconds)}], most, "thin"), el("span.total", time(seconds))];
    }))]))));
}
if (withBytes.length) {
  const most = Math.max(...withBytes.map((r) => r.figures.hbm_bytes));
  page.append(section("hbm", "HBM traffic", "Bytes of one GPU and iteration, read and written.",
    el("div.rows", withBytes.map((run) => [el("span.name", run.label), stack(byteParts(run.figures), most),
      el("span.total", size(run.figures.hbm_bytes))])),
    legend([{name: "compute", color: "compute", text: ""}, {name: "communication", color: "communication", text: ""}])));
}
page.append(el("div.runs", {id: "runs"}, runs.map((run) => {
  const href = run.link && run.link.split("/").map(encodeURIComponent).join("/");
  return el("section.card", el("h2", href ? el("a", {href}, run.label + " →") : run.label), el("p.why", run.title), el("p", typeset(run.verdict)));
})));
