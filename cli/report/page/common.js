// What every page shares: the data, numbers as people read them, elements, bars and tables.
const data = JSON.parse(document.getElementById("data").textContent);
const absent = (value) => value === null || value === undefined;

function digits(value) {
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  if (size >= 0.9995) return value.toFixed(2);
  return size === 0 ? "0" : String(Number(value.toPrecision(3)));
}
function scaled(value, units) {
  const [size, unit] = units.find(([s]) => Math.abs(value) >= 0.9995 * s) || units[units.length - 1];
  return [digits(value / size), unit];
}
const kTimes = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
const kSizes = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];
const timeParts = (s) => (s === 0 ? ["0", "ms"] : scaled(s, kTimes));
const sizeParts = (b) => (b === 0 ? ["0", "B"] : scaled(b, kSizes));
const joined = (parts) => parts.join("\u202f");
const time = (s) => (absent(s) ? "–" : joined(timeParts(s)));
const size = (b) => (absent(b) ? "–" : joined(sizeParts(b)));
const factor = (f) => (absent(f) ? "–" : f.toFixed(2) + "×");
const percent = (f) => (absent(f) ? "–" : (Math.abs(f) < 0.0995 ? (100 * f).toFixed(1) : (100 * f).toFixed(0)) + "\u202f%");
const rate = (g) => (absent(g) ? "–" : digits(g) + "\u202fGB/s");
const count = (n) => (absent(n) ? "–" : n.toLocaleString("en-US"));

// el("td.text", {title: "x"}, "text", child): names and numbers only ever enter the page as text.
function el(what, ...parts) {
  const [tag, ...classes] = what.split(".");
  const node = document.createElement(tag || "div");
  if (classes.length) node.className = classes.join(" ");
  for (const part of parts.flat(3)) {
    if (absent(part) || part === false) continue;
    if (part instanceof Node || typeof part !== "object") node.append(part);
    else for (const [key, value] of Object.entries(part)) {
      if (key === "style") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
      else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value);
    }
  }
  return node;
}
const themed = [];  // called when the theme changes
const page = document.getElementById("page");
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// A headline figure: [value, unit] large, a line below.
const tile = (name, [value, unit], more, lead) => el(lead ? "div.tile.lead" : "div.tile", el("div.name", name),
  el("div.value", value, unit && el("small", unit)), more && el("div.more", more));

function section(id, title, why, ...parts) {
  const node = el("section.card", {id}, el("h2", title), why ? el("p.why", why) : null, parts);
  document.getElementById("contents").append(el("a", {href: "#" + id}, title));
  return node;
}

const mix = (a, b, t) => a.map((v, i) => Math.round(v + (b[i] - v) * t));
const rgb = (hex) => hex.match(/\w\w/g).map((h) => parseInt(h, 16));
// Ink on a bar by its brightness, so that labels are readable in both themes.
function inkOn(fill) {
  const [r, g, b] = fill[0] === "#" ? fill.match(/\w\w/g).map((h) => parseInt(h, 16)) : fill.match(/\d+/g).map(Number);
  return 0.299 * r + 0.587 * g + 0.114 * b > 150 ? "#14202c" : "#ffffff";
}

// parts: [{name, value, color, text}]; total: what the full width means; thin: "thin", or "bare" for no labels.
function stack(parts, total, thin) {
  const bar = el(thin ? "div.stack." + thin : "div.stack", {role: "img", "aria-label":
    parts.map((p) => p.name + " " + p.text).join(", ")});
  for (const part of parts) {
    if (!(part.value > 0)) continue;
    const share = total > 0 ? part.value / total : 0;
    const span = el("span", {style: {width: 100 * share + "%", background: `var(--${part.color})`, flex: "none"}});
    if (thin !== "bare") span.append(el("b", part.text));
    const ink = () => { span.style.color = inkOn(color(part.color)); };
    ink();
    themed.push(ink);
    hint(span, () => [el(".head", part.name), el(".sub", `${part.text}, ${percent(share)}`)]);
    bar.append(span);
  }
  return bar;
}
const legend = (parts) => el("div.legend", parts.map((p) =>
  el("span.item", el("span.dot", {style: {background: `var(--${p.color})`}}), p.name, el("b", p.text))));

const tip = document.getElementById("tip");
function showTip(event, content) {
  tip.replaceChildren(...content);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const x = event.clientX + 16 + box.width > innerWidth ? event.clientX - box.width - 12 : event.clientX + 16;
  const y = Math.min(event.clientY + 16, innerHeight - box.height - 8);
  tip.style.left = Math.max(4, x) + "px";
  tip.style.top = Math.max(4, y) + "px";
}
const hideTip = () => { tip.hidden = true; };
function hint(node, content) {
  node.addEventListener("mousemove", (event) => showTip(event, content()));
  node.addEventListener("mouseleave", hideTip);
}

// columns: [{name, text?, cell(row), sort?(row)}]; a click or Enter on a heading sorts by it. The first `kMostRows` are
// shown, and a button shows as many again. fill(rows) of the table shows others, sorted as before.
const kMostRows = 200;
function table(columns, rows, className) {
  const body = el("tbody"), more = el("button", {type: "button", onclick: () => { most += kMostRows; show(); }}, "More rows");
  const foot = el("tfoot", el("tr", el("td.text", {colspan: columns.length}, more)));
  let all = rows, sorted = rows, by = null, down = true, most = kMostRows;
  function show() {
    body.replaceChildren(...sorted.slice(0, most).map((row) => el("tr", columns.map((c) => el(c.text ? "td.text" : "td", c.cell(row))))));
    foot.hidden = sorted.length <= most;
  }
  function sort() {
    const order = (a, b) => (by.sort(a) < by.sort(b) ? -1 : by.sort(a) > by.sort(b) ? 1 : 0);
    sorted = by ? [...all].sort((a, b) => (down ? order(b, a) : order(a, b))) : all;
    show();
  }
  const heads = columns.map((c) => {
    if (!c.sort) return el(c.text ? "th.text" : "th", c.name);
    const th = el(c.text ? "th.text" : "th", {"aria-sort": "none"}, el("button.sort", {type: "button", title: "Sort", onclick: () => {
      down = by !== c || !down;
      by = c;
      for (const other of heads) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
      th.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort();
    }}, c.name));
    return th;
  });
  show();
  const node = el("table" + (className ? "." + className : ""), el("thead", el("tr", heads)), body, foot);
  node.fill = (others) => { all = others; most = kMostRows; sort(); };
  return node;
}
const clip = (text) => el("span.clip", {title: text}, text);
const meter = (fraction) => el("span.meter", el("i", {style: {width: 100 * Math.min(1, fraction) + "%"}}));

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = theme === "dark" ? "☀ Light" : "☾ Dark";
  themed.forEach((redraw) => redraw());
}
const system = matchMedia("(prefers-color-scheme: dark)");
setTheme(system.matches ? "dark" : "light");
system.addEventListener("change", () => setTheme(system.matches ? "dark" : "light"));
document.getElementById("theme").addEventListener("click", () =>
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
let beforePrint = null;
addEventListener("beforeprint", () => { beforePrint = document.documentElement.dataset.theme; setTheme("light"); });
addEventListener("afterprint", () => setTheme(beforePrint));

// The verdict is written for terminals; a page has the signs.
const typeset = (text) => text.replace(/(\d\.\d+)x\b/g, "$1×").replace(/(\d) (us|ns|ms|s|[kMGT]?B|GB\/s|%)(?![\w/])/g,
  (_, digit, unit) => digit + "\u202f" + (unit === "us" ? "µs" : unit));
// The verdict's first sentence is the headline, what follows explains it.
function headline(title, verdict) {
  const text = typeset(verdict);
  const cut = text.search(/\. (?=[A-Z0-9])/);
  const first = cut < 0 ? text : text.slice(0, cut + 1);
  page.append(el("h1", title), el("p.verdict", first));
  if (cut >= 0) page.append(el("p.rest", text.slice(cut + 2)));
}

const kCauses = [["cu", "compute units"], ["hbm", "HBM"], ["cache", "cache"], ["links", "links"]];
const causeParts = (seconds) => kCauses.map(([key, name], i) =>
  ({name, value: seconds[i], color: key, text: time(seconds[i])}));
function iterationParts(f) {
  return [{name: "compute", value: f.compute_s, color: "compute", text: time(f.compute_s)},
          {name: "exposed communication", value: f.exposed_s, color: "exposed", text: time(f.exposed_s)},
          {name: "idle", value: f.idle_s, color: "idle", text: time(f.idle_s)}];
}
function backwardParts(f) {
  return [{name: "alone", value: f.backward_isolated_s, color: "alone", text: time(f.backward_isolated_s)},
          ...causeParts(f.causes.map((c) => c.seconds))];
}
