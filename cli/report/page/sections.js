// The parts of a run's page that follow the timeline.
function tiles(f, result) {
  const parts = [];
  if (!absent(f.backward_slowdown)) {
    parts.push(tile("Backward slowdown", [f.backward_slowdown.toFixed(2), "×"],
      `${time(f.backward_isolated_s)} alone, ${time(f.backward_s)} overlapped`, true));
  }
  if (!absent(f.iteration_s)) parts.push(tile("Iteration", timeParts(f.iteration_s),
    `mean of ${result.iteration.per_iteration.length}`));
  if (!absent(f.exposed_s) && f.communication_s > 0) parts.push(tile("Exposed communication", timeParts(f.exposed_s),
    `of ${time(f.communication_s)} in all`));
  if (!absent(f.busbw_GBps)) parts.push(tile("Bus bandwidth", [digits(f.busbw_GBps), "GB/s"],
    f.collectives === 1 ? "of one collective" : `over ${f.collectives} collectives`));
  if (!absent(f.hbm_communication_bytes)) parts.push(tile("HBM for communication", sizeParts(f.hbm_communication_bytes),
    f.hbm_bytes > 0 ? `${percent(f.hbm_communication_bytes / f.hbm_bytes)} of a GPU's traffic` : ""));
  if (!absent(f.samples_per_s)) parts.push(tile("Throughput", [count(Math.round(f.samples_per_s)), "/s"],
    "samples" + (absent(f.scaling_efficiency) ? "" : `, ${percent(f.scaling_efficiency)} efficient`)));
  else if (!absent(f.tokens_per_s)) parts.push(tile("Throughput", [count(Math.round(f.tokens_per_s)), "/s"], "tokens"));
  return el("div.tiles", parts);
}

function timeSection(f) {
  const split = iterationParts(f);
  const phases = [["forward", f.forward_s, "forward"], ["backward", f.backward_s, "compute"], ["optimizer", f.optimizer_s, "accent"]]
    .filter(([, seconds]) => !absent(seconds)).map(([name, value, c]) => ({name, value, color: c, text: time(value)}));
  const communication = [{name: "overlapped", value: f.overlapped_s, color: "communication", text: time(f.overlapped_s)},
    {name: "exposed", value: f.exposed_s, color: "exposed", text: time(f.exposed_s)}];
  const chart = el("div.chart", el("h3", "The iteration"), stack(split, f.iteration_s), legend(split));
  if (phases.length) chart.append(el("h3", "Compute by phase"), stack(phases, f.iteration_s), legend(phases));
  if (f.communication_s > 0) chart.append(el("h3", "Communication"), stack(communication, f.iteration_s), legend(communication));
  return section("time", "Where the time goes", "One iteration, mean over GPUs and iterations; all bars on one scale.", chart);
}

function backwardSection(f) {
  if (!f.causes.length || absent(f.backward_s)) return null;
  const all = backwardParts(f), causes = all.slice(1), added = f.backward_s - f.backward_isolated_s;
  const most = Math.max(...causes.map((c) => c.value), 1e-300);
  return section("backward", "Why backward slows down",
    "The backward pass as it would run with nothing beside it, and what each shared resource adds to it.",
    el("div.chart", el("h3", "Backward pass"), stack(all, f.backward_s), legend([all[0]]),
      el("h3", `The added ${time(added)}, by cause`),
      el("div.rows", causes.map((c) => [el("span.name", c.name), stack([c], most, "thin"),
        el("span.total", `${c.text}  ${added > 0 ? percent(c.value / added) : ""}`)]))));
}

function lostSection(lost) {
  if (!lost.length) return null;
  return section("kernels", "Kernels that lost most",
    "Summed over GPUs, iterations and calls. Lost is the time beyond what the kernel takes alone.",
    el("div.scroll", table([
      {name: "kernel", text: true, cell: (r) => clip(r.name), sort: (r) => r.name},
      {name: "phase", text: true, cell: (r) => r.phase, sort: (r) => r.phase},
      {name: "calls", cell: (r) => count(r.calls), sort: (r) => r.calls},
      {name: "alone", cell: (r) => time(r.isolated_s), sort: (r) => r.isolated_s},
      {name: "lost", cell: (r) => time(r.lost_s), sort: (r) => r.lost_s},
      {name: "slowdown", cell: (r) => factor(r.slowdown), sort: (r) => r.slowdown},
      {name: "by cause", cell: (r) => stack(causeParts(r.causes), r.causes.reduce((a, b) => a + Math.max(0, b), 0), "bare")},
    ], lost)), legend(kCauses.map(([key, name]) => ({name, color: key, text: ""}))));
}

function memorySection(gpus) {
  const most = Math.max(0, ...gpus.map((g) => g.hbm_read_bytes + g.hbm_write_bytes));
  if (!most) return null;
  const shown = gpus.slice(0, 16);
  const traffic = el("div.rows", shown.map((g) => {
    const total = g.hbm_read_bytes + g.hbm_write_bytes;
    const parts = [{name: "compute", value: total - g.hbm_communication_bytes, color: "compute",
                    text: size(total - g.hbm_communication_bytes)},
                   {name: "communication", value: g.hbm_communication_bytes, color: "communication", text: size(g.hbm_communication_bytes)}];
    return [el("span.name", "GPU " + g.id), stack(parts, most, "thin"), el("span.total", size(total))];
  }));
  const parts = [el("div.chart", traffic), legend([{name: "compute", color: "compute", text: ""},
    {name: "communication", color: "communication", text: ""}])];
  const left = gpus.length - shown.length;
  if (left > 0) parts.push(el("p.why", `${left} more GPUs in result.json.`));
  const byClass = gpus[0].memory && Object.entries(gpus[0].memory).filter(([, bytes]) => !absent(bytes));
  if (byClass && byClass.length) {
    parts.push(el("h3", "Memory of GPU " + gpus[0].id + " at its peak: " + size(gpus[0].peak_memory_bytes)),
      el("div.chips", byClass.map(([name, bytes]) => el("span", name + " ", el("b", size(bytes))))));
  }
  return section("memory", "HBM traffic", "Bytes read and written over the whole run, and the part that communication moved.", ...parts);
}

function unitsSection(gpus) {
  const total = (g) => g.compute_unit_seconds.compute + g.compute_unit_seconds.communication;
  if (!gpus.length || !gpus.some((g) => total(g) > 0)) return null;
  const most = Math.max(...gpus.map(total));
  return section("units", "Compute-unit time", "Compute units held, times how long, over the whole run: what kernels of compute and of communication occupy.",
    el("div.rows", gpus.slice(0, 16).map((g) => {
      const unitSeconds = (name, value, c) => ({name, value, color: c, text: joined([digits(value), "CU·s"])});
      return [el("span.name", "GPU " + g.id),
        stack([unitSeconds("compute", g.compute_unit_seconds.compute, "compute"),
               unitSeconds("communication", g.compute_unit_seconds.communication, "communication")], most, "thin"),
        el("span.total", percent(g.busy_fraction) + " busy")];
    })), legend([{name: "compute", color: "compute", text: ""}, {name: "communication", color: "communication", text: ""}]));
}

function networkSection(links, allSwitches) {
  const switches = allSwitches.filter((s) => s.reduced_bytes || s.multicast_bytes || s.table_high_water_bytes);
  if (!links.length && !switches.length) return null;
  const parts = [];
  const drawing = links.length ? topologyView(links) : null;
  if (drawing) parts.push(drawing);
  if (links.length) {
    const rows = [...links].sort((a, b) => b.busy_fraction - a.busy_fraction);
    const list = el("div.scroll", table([
      {name: "link", text: true, cell: (l) => l.name, sort: (l) => l.name},
      {name: "bytes", cell: (l) => size(l.bytes), sort: (l) => l.bytes},
      {name: "busy", cell: (l) => [meter(l.busy_fraction), percent(l.busy_fraction)], sort: (l) => l.busy_fraction},
      {name: "peak", cell: (l) => percent(l.peak_fraction), sort: (l) => l.peak_fraction}], rows));
    parts.push(drawing || rows.length > 24 ? el("details", {style: {"margin-top": "14px"}}, el("summary", `All ${rows.length} links`), list) : list);
  }
  if (switches.length) parts.push(el("div", {style: {"margin-top": "16px"}}, table([
    {name: "switch", text: true, cell: (s) => s.name},
    {name: "reduced", cell: (s) => size(s.reduced_bytes)}, {name: "multicast", cell: (s) => size(s.multicast_bytes)},
    {name: "table high water", cell: (s) => size(s.table_high_water_bytes)}, {name: "stalled for", cell: (s) => time(s.table_stall_s)}], switches)));
  return section("network", "Links and switches", drawing ? "Colour and width: the share of the run that the busier direction of a link sends. Point at a link or node." : "", ...parts);
}

// Bus bandwidth over size, a mark for each collective.
function sizesPlot(collectives) {
  const shown = collectives.filter((c) => c.bytes > 0 && c.busbw_GBps > 0);
  if (new Set(shown.map((c) => c.bytes)).size < 2) return null;
  const how = (c) => [c.kind.replaceAll("_", "-"), c.algorithm, c.protocol].filter(Boolean).join(", ");
  const series = [...new Set(shown.map(how))].map((name) => ({name, of: shown.filter((c) => how(c) === name)}));
  return plot({label: "Bus bandwidth of collectives over size", height: 280, build: () => ({type: "scatter",
    data: {datasets: series.map((s, i) => ({label: s.name, data: s.of.map((c) => ({x: c.bytes, y: c.busbw_GBps})),
      ...seriesStyle(i, series.length), pointRadius: 5, pointHoverRadius: 7}))},
    options: {plugins: {legend: {display: true, position: "bottom", labels: legendLabels()}},
      scales: {x: scale({title: "bytes", log: true, text: size}), y: scale({title: "bus bandwidth", text: rate, beginAtZero: true})}}}),
    describe: ({datasetIndex, index}) => {
      const c = series[datasetIndex].of[index];
      return [el("div.head", c.name), el("div.sub", series[datasetIndex].name), facts([["bytes", size(c.bytes)],
        ["takes", time(c.end_s - c.start_s)], ["bus bandwidth", rate(c.busbw_GBps)], ["channels", c.channels]])];
    }}).node;
}
function collectivesSection(collectives) {
  if (!collectives.length) return null;
  return section("collectives", "Collectives", "", sizesPlot(collectives), el("div.scroll", table([
    {name: "collective", text: true, cell: (c) => clip(c.name), sort: (c) => c.name},
    {name: "algorithm", text: true, cell: (c) => [c.algorithm, c.protocol].filter(Boolean).join(", "), sort: (c) => c.algorithm},
    {name: "channels", cell: (c) => c.channels, sort: (c) => c.channels},
    {name: "ranks", cell: (c) => c.ranks, sort: (c) => c.ranks},
    {name: "bytes", cell: (c) => size(c.bytes), sort: (c) => c.bytes},
    {name: "start", cell: (c) => time(c.start_s), sort: (c) => c.start_s},
    {name: "takes", cell: (c) => time(c.end_s - c.start_s), sort: (c) => c.end_s - c.start_s},
    {name: "algorithm bw", cell: (c) => rate(c.algbw_GBps), sort: (c) => c.algbw_GBps},
    {name: "bus bw", cell: (c) => rate(c.busbw_GBps), sort: (c) => c.busbw_GBps}], collectives)));
}

function aboutSection(result) {
  const e = result.engine;
  const fact = (name, value) => el("span", name + " ", el("b", value));
  return section("about", "About this run", "",
    el("div.chips", fact("simulated", time(e.simulated_s)), fact("in", time(e.wall_s)), fact("threads", count(e.threads)),
      fact("memory transactions", count(e.memory_transactions)), fact("packets", count(e.packets)),
      fact("skipped", percent(e.skipped_fraction)), fact("peak memory", size(e.peak_rss_bytes)), fact("weft", result.version)),
    result.notes.length ? el("ul.notes", result.notes.map((n) => el("li", n))) : null,
    el("details", {style: {"margin-top": "14px"}}, el("summary", "Configuration, every default written out"),
      el("pre", JSON.stringify(result.config, null, 2))));
}
