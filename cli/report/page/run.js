// The page of one run.
const result = data.result, figures = data.figures;
headline(data.title, data.verdict);
if (!absent(figures.iteration_s)) page.append(tiles(figures, result));
if (result.out_of_memory) {
  page.append(section("memory-over", "What holds the memory", `GPU ${result.out_of_memory.gpu} at ${result.out_of_memory.at}.`,
    table([{name: "holder", text: true, cell: (h) => clip(h.what)}, {name: "bytes", cell: (h) => size(h.bytes)}],
      result.out_of_memory.largest_holders)));
}
if (!absent(figures.iteration_s)) page.append(el("div.pair", timeSection(figures), backwardSection(figures)));
const loads = loadSections(data.timeline.counters);
if (data.timeline.operations.length) {
  const left = data.timeline.gpus_left_out;
  page.append(section("timeline", "Timeline", "Each lane is a stream; kernels are coloured by how much slower they ran than alone. " +
    "Drag to move, Ctrl and wheel to zoom, drag in the ruler to choose a span, 0 for all. timeline.pftrace opens the same in Perfetto." +
    (left ? ` ${left} GPUs are left out here to keep the page light; timeline.pftrace has them.` : ""), timelineView(data.timeline, loads.follow)));
}
const lost = lostSection(data.lost);
const pairs = [el("div.pair", memorySection(result.gpus), unitsSection(result.gpus))].find((p) => p.children.length);
for (const part of [...loads.parts, lost, pairs, networkSection(result.links, result.switches),
  collectivesSection(result.collectives), aboutSection(result)]) if (part) page.append(part);
page.append(el("footer", `result.json, kernels.csv and timeline.pftrace beside this page hold every number.` +
  (result.config_sha256 ? ` Configuration ${result.config_sha256.slice(0, 12)}.` : "")));
