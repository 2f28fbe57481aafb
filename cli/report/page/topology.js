// The network as a drawing: GPUs, switches above them by their distance, and links coloured by load.
const kMostPairs = 3000;  // a drawing of more is a blot

// Links "a->b.n" by the pair that they join: {ends, there, back}, each direction with its links.
function linkPairs(links) {
  const pairs = new Map();
  for (const link of links) {
    const match = /^(.*?)\s*->\s*(.*?)(?:\.\d+)?$/.exec(link.name);
    if (!match) return null;
    const ends = [match[1], match[2]].sort(byName), key = ends.join("\n");
    if (!pairs.has(key)) pairs.set(key, {ends, there: [], back: []});
    pairs.get(key)[match[1] === ends[0] ? "there" : "back"].push(link);
  }
  return [...pairs.values()];
}
const byName = (a, b) => a.localeCompare(b, "en", {numeric: true});

// Nodes with a place in a picture of width x height: rows by hops from a GPU, or circles where links join equals.
function placeNodes(pairs, width, height) {
  const nodes = new Map(), next = new Map();
  for (const {ends: [a, b]} of pairs) for (const [from, to] of [[a, b], [b, a]]) {
    if (!next.has(from)) next.set(from, []);
    next.get(from).push(to);
  }
  let ring = [...next.keys()].filter((name) => /^gpu/i.test(name)).sort(byName);
  if (!ring.length) ring = [...next.keys()].sort(byName);
  const levels = [];
  for (let level = 0; ring.length; ++level) {
    levels.push(ring);
    ring.forEach((name) => nodes.set(name, {level}));
    ring = [...new Set(ring.flatMap((name) => next.get(name)))].filter((name) => !nodes.has(name)).sort(byName);
  }
  const round = pairs.some(({ends: [a, b]}) => nodes.get(a).level === nodes.get(b).level);
  levels.forEach((names, level) => names.forEach((name, i) => {
    const node = nodes.get(name);
    if (round) {
      const turn = 2 * Math.PI * (i + 0.5) / names.length - Math.PI / 2, out = 1 - 0.33 * level;
      Object.assign(node, {x: width / 2 + out * (height / 2 - 26) * 1.5 * Math.cos(turn), y: height / 2 + out * (height / 2 - 26) * Math.sin(turn)});
    } else {
      const y = levels.length > 1 ? height - 24 - level * (height - 48) / (levels.length - 1) : height / 2;
      Object.assign(node, {x: width * (i + 0.5) / names.length, y});
    }
    node.room = round ? 2 * height / names.length : width / names.length;
  }));
  return nodes;
}

const kSvg = document.querySelector("svg").namespaceURI;
const svg = (tag, attributes, ...children) => {
  const node = document.createElementNS(kSvg, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};

function topologyView(links) {
  const pairs = linkPairs(links);
  if (!pairs || pairs.length > kMostPairs) return null;
  const nodes = placeNodes(pairs, 1200, pairs.some((p) => !p.ends.some((e) => /^gpu/i.test(e))) ? 420 : 300);
  const height = Math.max(...[...nodes.values()].map((n) => n.y)) + 24;
  const key = el("div.tools"), drawing = svg("svg", {class: "topology", viewBox: `0 0 1200 ${height}`, role: "img",
    "aria-label": `${nodes.size} nodes and ${links.length} links, coloured by load; the table below lists them`});
  let shown = "busy_fraction";
  const load = (set) => Math.max(0, ...set.map((l) => l[shown]));
  const lines = pairs.map((pair) => {
    const [a, b] = pair.ends.map((name) => nodes.get(name));
    const line = svg("line", {x1: a.x, y1: a.y, x2: b.x, y2: b.y});
    const direction = (from, to, set) => set.length && [el("div.sub", `${from} → ${to}` + (set.length > 1 ? `, ${set.length} links` : "")),
      facts([["bytes", size(set.reduce((sum, l) => sum + l.bytes, 0))], ["busy", percent(mean(set.map((l) => l.busy_fraction)))],
        ["peak", percent(Math.max(...set.map((l) => l.peak_fraction)))]])];
    hint(line, () => [el("div.head", pair.ends.join(" – ")), direction(pair.ends[0], pair.ends[1], pair.there),
      direction(pair.ends[1], pair.ends[0], pair.back)].flat().filter(Boolean));
    return {pair, line};
  });
  const highlight = (name) => lines.forEach(({pair, line}) => line.classList.toggle("dim", Boolean(name) && !pair.ends.includes(name)));
  const marks = [...nodes].map(([name, node]) => {
    const half = Math.min(34, 0.45 * node.room), mark = svg("g", {}, svg("rect", {class: "node", x: node.x - half, y: node.y - 11, width: 2 * half,
      height: 22, rx: node.level ? 3 : 9}));
    if (half > 15) mark.append(svg("text", {x: node.x, y: node.y + 4}, half > 26 ? name : name.replace(/^\D+/, "")));
    mark.addEventListener("mouseenter", () => highlight(name));
    mark.addEventListener("mouseleave", () => highlight(null));
    hint(mark, () => [el("div.head", name), el("div.sub", `${lines.filter(({pair}) => pair.ends.includes(name)).length} neighbours`)]);
    return mark;
  });
  drawing.append(...lines.map((l) => l.line), ...marks);
  function paint() {
    const most = Math.max(...links.map((l) => l[shown]), 1e-9), thin = pairs.length > 300 ? 0.5 : 1;
    for (const {pair, line} of lines) {
      const share = Math.max(load(pair.there), load(pair.back)) / most;
      line.setAttribute("stroke", ramp(0.12 + 0.88 * share));
      line.setAttribute("stroke-width", thin * (1.5 + 3.5 * share));
    }
    key.replaceChildren(el("label.choice", "Load", select), "0", el("span.ramp.even"), percent(most));
  }
  const select = el("select", {"data-choose": "load", onchange: () => { shown = select.value; paint(); }},
    el("option", {value: "busy_fraction"}, "mean of the run"), el("option", {value: "peak_fraction"}, "highest"));
  paint();
  themed.push(paint);
  return el("div", key, drawing);
}
