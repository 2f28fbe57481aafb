// The timeline: one lane a stream on a canvas. Operations narrower than a pixel are merged into columns, and only what
// is visible is looked at, so that hundreds of thousands of operations stay quick.
const kLane = 21, kGpuGap = 9, kHead = 44, kGutter = 126;

function timelineView(timeline, onSpan) {
  const {ops, lanes} = loadOperations(timeline);
  const names = timeline.names;
  const spans = phaseSpans(ops, lanes, names), flows = operationsByFlow(ops);
  let first = Infinity, last = 0;
  for (let i = 0; i < ops.n; ++i) { first = Math.min(first, ops.start[i]); last = Math.max(last, ops.end[i]); }
  const margin = 0.004 * (last - first) || 1;
  const all = {from: first - margin, to: last + margin};
  let view = {...all}, hovered = -1, theme = null, width = 0;

  let y = 4;
  lanes.forEach((lane, i) => {
    if (i && lanes[i - 1].gpu !== lane.gpu) y += kGpuGap;
    lane.y = y;
    y += kLane;
  });
  const height = y + 4;

  const head = el("canvas.head", {"aria-label": "Overview: drag to choose a span"});
  const body = el("canvas.body", {tabindex: 0, role: "img", "aria-label":
    `Timeline of ${ops.n} operations on ${lanes.length} streams; kernels.csv lists them`});
  const lanesDrawn = document.createElement("canvas");
  const scroller = el("div.lanes", body);
  const frame = el("div.timeline", head, scroller);

  const perPixel = () => (view.to - view.from) / (width - kGutter);
  const toX = (t) => kGutter + (t - view.from) / perPixel();
  const toT = (x) => view.from + (x - kGutter) * perPixel();
  function setView(from, to) {
    const span = Math.min(Math.max(to - from, 200), all.to - all.from);
    from = Math.max(all.from, Math.min(from, all.to - span));
    view = {from, to: from + span};
    schedule();
  }
  const zoom = (by, at) => setView(at - (at - view.from) * by, at + (view.to - at) * by);

  function prepare(canvas, h) {
    const scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(h * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(h * scale);
      canvas.style.height = h + "px";
      canvas.style.width = width + "px";
    }
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, h);
    context.font = "11.5px system-ui, 'Liberation Sans', sans-serif";
    context.textBaseline = "middle";
    return context;
  }
  function loadTheme() {
    theme = {ramp: slowdownRamp()};
    for (const name of ["ink", "soft", "faint", "line", "grid", "card", "communication", "idle", "compute", "exposed",
      "forward", "alone", "accent"]) theme[name] = color(name);
  }
  const rampOf = (slow) => Math.max(0, Math.min(64, Math.round((slow - 1) * 64)));
  function fillOf(i) {
    if (names[ops.rows[i][1]][1]) return theme.communication;
    return isNaN(ops.slow[i]) ? theme.idle : theme.ramp[rampOf(ops.slow[i])];
  }

  function drawLane(c, lane) {
    const pixel = perPixel();
    let column = -1, covered = 0, heat = 0, known = 0, communicating = 0;
    const flush = () => {
      if (column < 0 || covered <= 0) return;
      c.globalAlpha = Math.min(1, 0.25 + 0.75 * covered / pixel);
      c.fillStyle = communicating * 2 > covered ? theme.communication
        : known > 0 ? theme.ramp[rampOf(heat / known)] : theme.idle;
      c.fillRect(column, lane.y + 2, 1, kLane - 4);
      c.globalAlpha = 1;
    };
    for (let i = firstEndingAfter(ops, lane.from, lane.to, view.from); i < lane.to && ops.start[i] < view.to; ++i) {
      const x0 = Math.max(kGutter, toX(ops.start[i])), x1 = Math.min(width, toX(ops.end[i]));
      if (x1 - x0 < 1.2) {
        const at = Math.floor(x0), duration = ops.end[i] - ops.start[i];
        if (at !== column) { flush(); column = at; covered = heat = known = communicating = 0; }
        covered += duration;
        if (names[ops.rows[i][1]][1]) communicating += duration;
        else if (!isNaN(ops.slow[i])) { heat += ops.slow[i] * duration; known += duration; }
        continue;
      }
      flush();
      column = -1;
      c.fillStyle = fillOf(i);
      c.fillRect(x0, lane.y + 2, Math.max(1, x1 - x0 - (x1 - x0 > 4 ? 1 : 0)), kLane - 4);
      if (x1 - x0 > 46) drawLabel(c, i, x0, x1, lane);
    }
    flush();
  }
  function drawLabel(c, i, x0, x1, lane) {
    c.fillStyle = inkOn(fillOf(i));
    c.save();
    c.beginPath();
    c.rect(x0 + 3, lane.y, x1 - x0 - 8, kLane);
    c.clip();
    c.fillText(names[ops.rows[i][1]][0], x0 + 5, lane.y + kLane / 2 + 0.5);
    c.restore();
  }
  // What is pointed at, and the same collective on the other GPUs, drawn over a copy of the lanes.
  function drawHovered() {
    const c = prepare(body, height);
    c.drawImage(lanesDrawn, 0, 0, width, height);
    if (hovered < 0) return;
    c.strokeStyle = theme.ink;
    for (const i of flows.get(ops.rows[hovered][7]) || [hovered]) {
      const x0 = Math.max(kGutter, toX(ops.start[i])), x1 = Math.min(width, toX(ops.end[i]));
      if (x1 < kGutter || x0 > width) continue;
      c.lineWidth = i === hovered ? 2 : 1.25;
      c.strokeRect(x0 + 0.5, lanes[ops.rows[i][0]].y + 2.5, Math.max(1, x1 - x0 - 1), kLane - 5);
    }
  }
  function drawLanes() {
    const c = prepare(lanesDrawn, height), step = tickStep(perPixel());
    c.fillStyle = theme.grid;
    for (let t = Math.ceil(view.from / step) * step; t < view.to; t += step) c.fillRect(Math.round(toX(t)), 0, 1, height);
    lanes.forEach((lane, i) => {
      if (!i || lanes[i - 1].gpu !== lane.gpu) {
        c.textAlign = "left";
        c.fillStyle = theme.ink;
        c.font = "600 11.5px system-ui, 'Liberation Sans', sans-serif";
        c.fillText("GPU " + lane.gpu, 10, lane.y + kLane / 2);
        c.font = "11.5px system-ui, 'Liberation Sans', sans-serif";
        if (i) { c.fillStyle = theme.line; c.fillRect(0, lane.y - kGpuGap / 2, width, 1); }
      }
      c.fillStyle = theme.soft;
      c.textAlign = "right";
      c.fillText((lane.communication ? "comm " : "stream ") + lane.stream + (lane.overflow ? "+" : ""), kGutter - 8, lane.y + kLane / 2);
      c.textAlign = "left";
      drawLane(c, lane);
    });
  }
  function drawHead() {
    const c = prepare(head, kHead), overview = (t) => kGutter + (t - all.from) / (all.to - all.from) * (width - kGutter);
    const fills = [theme.forward, theme.exposed, theme.accent, theme.idle];
    c.globalAlpha = 0.55;
    for (const s of spans) {
      c.fillStyle = fills[s.phase];
      c.fillRect(overview(s.start), 2, Math.max(1, overview(s.end) - overview(s.start)), 4);
    }
    c.globalAlpha = 1;
    c.strokeStyle = theme.ink;
    c.strokeRect(overview(view.from) + 0.5, 0.5, Math.max(2, overview(view.to) - overview(view.from) - 1), 7);
    for (const s of spans) {
      const x0 = Math.max(kGutter, toX(s.start)), x1 = Math.min(width, toX(s.end));
      if (x1 <= x0) continue;
      c.globalAlpha = 0.22;
      c.fillStyle = fills[s.phase];
      c.fillRect(x0, 11, Math.max(1, x1 - x0 - 1), 15);
      c.globalAlpha = 1;
      c.fillStyle = theme.ink;
      if (x1 - x0 > c.measureText(kPhases[s.phase]).width + 10) c.fillText(kPhases[s.phase], x0 + 5, 19);
    }
    c.fillStyle = theme.soft;
    c.textAlign = "left";
    const step = tickStep(perPixel());
    for (let t = Math.ceil(view.from / step) * step; t < view.to - step / 3; t += step) {
      c.fillText(t === 0 ? "0" : tickText(t, step, view.to), toX(t) + 3, 36);
      c.fillRect(Math.round(toX(t)), 31, 1, 13);
    }
    c.fillText("phase", 10, 19);
    c.fillText("time", 10, 36);
  }
  let waiting = false;
  function schedule() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }
  function draw() {
    width = scroller.clientWidth;  // less than the frame's when the lanes scroll
    if (width <= kGutter + 50 || !ops.n) return;
    if (!theme) loadTheme();
    drawHead();
    drawLanes();
    drawHovered();
    onSpan(view.from, view.to);
  }
  themed.push(() => { theme = null; draw(); });
  new ResizeObserver(schedule).observe(frame);

  function at(event) {
    const box = body.getBoundingClientRect(), x = event.clientX - box.left, py = event.clientY - box.top;
    const lane = lanes.find((l) => py >= l.y && py < l.y + kLane);
    if (!lane || x < kGutter) return -1;
    const slack = 2 * perPixel();
    let i = firstEndingAfter(ops, lane.from, lane.to, toT(x) - slack), best = -1, longest = -1;
    for (; i < lane.to && ops.start[i] <= toT(x) + slack; ++i) {
      const inside = ops.start[i] <= toT(x) && ops.end[i] >= toT(x);
      const length = (inside ? 1e18 : 0) + ops.end[i] - ops.start[i];
      if (length > longest) { longest = length; best = i; }
    }
    return best;
  }
  function describe(i) {
    const [stream, name, phase, iteration, start, duration, isolated, flow, ...causes] = ops.rows[i];
    const lane = lanes[stream], rows = [];
    const row = (term, value) => rows.push(el("dt", term), el("dd", value));
    row("start", time(start * 1e-9));
    row("takes", time(duration * 1e-9));
    if (isolated >= 0) row("alone", time(isolated * 1e-9));
    if (isolated > 0) row("slowdown", factor(duration / isolated));
    kCauses.forEach(([, cause], k) => { if (causes[k]) row("by " + cause, time(causes[k] * 1e-9)); });
    if (flow) row("same collective", `on ${flows.get(flow).length} GPUs`);
    return [el("div.head", names[name][0]),
      el("div.sub", `GPU ${lane.gpu}, stream ${lane.stream}, ${kPhases[phase]}, iteration ${iteration}`), el("dl", rows)];
  }

  let held = null;
  body.addEventListener("pointerdown", (event) => {
    held = {x: event.clientX, from: view.from, to: view.to};
    body.setPointerCapture(event.pointerId);
    body.classList.add("held");
    hideTip();
  });
  body.addEventListener("pointerup", () => { held = null; body.classList.remove("held"); });
  body.addEventListener("pointermove", (event) => {
    if (held) {
      const moved = (event.clientX - held.x) * perPixel();
      setView(held.from - moved, held.to - moved);
      return;
    }
    const before = hovered;
    hovered = at(event);
    if (hovered >= 0) showTip(event, describe(hovered)); else hideTip();
    if (hovered !== before) drawHovered();
  });
  body.addEventListener("pointerleave", () => { hovered = -1; hideTip(); drawHovered(); });
  body.addEventListener("dblclick", (event) => zoom(0.4, toT(event.offsetX)));
  body.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) zoom(Math.exp(event.deltaY * 0.002), toT(event.offsetX));
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
      const by = (event.deltaX || event.deltaY) * perPixel();
      setView(view.from + by, view.to + by);
    } else return;
    event.preventDefault();
  }, {passive: false});
  body.addEventListener("keydown", (event) => {
    const span = view.to - view.from, middle = (view.from + view.to) / 2;
    const move = {ArrowLeft: -0.2, a: -0.2, ArrowRight: 0.2, d: 0.2}[event.key];
    const by = {"+": 0.6, "=": 0.6, w: 0.6, "-": 1 / 0.6, s: 1 / 0.6}[event.key];
    if (move) setView(view.from + move * span, view.to + move * span);
    else if (by) zoom(by, middle);
    else if (event.key === "0") setView(all.from, all.to);
    else return;
    event.preventDefault();
  });
  let chosen = null;
  head.addEventListener("pointerdown", (event) => { chosen = {x: event.offsetX, y: event.offsetY}; head.setPointerCapture(event.pointerId); });
  head.addEventListener("pointerup", (event) => {
    if (!chosen) return;
    const over = (x) => all.from + (x - kGutter) / (width - kGutter) * (all.to - all.from);
    const map = chosen.y < 10 ? over : toT;
    const [a, b] = [chosen.x, event.offsetX].sort((p, q) => p - q);
    const span = view.to - view.from;
    if (b - a > 4) setView(map(a), map(b)); else setView(map(a) - span / 2, map(a) + span / 2);
    chosen = null;
  });

  const focusPhase = (phase) => {
    const span = spans.filter((s) => s.phase === phase).pop();
    if (span) setView(span.start - 0.03 * (span.end - span.start), span.end + 0.08 * (span.end - span.start));
  };
  const middle = () => (view.from + view.to) / 2;
  const tools = el("div.tools", timelineLegend(), el("span.gap"),
    spans.some((s) => s.phase === 1) && el("button", {type: "button", onclick: () => focusPhase(1)}, "Backward"),
    el("button", {type: "button", onclick: () => setView(all.from, all.to)}, "All"),
    el("button", {type: "button", "aria-label": "Zoom in", onclick: () => zoom(0.5, middle())}, "+"),
    el("button", {type: "button", "aria-label": "Zoom out", onclick: () => zoom(2, middle())}, "−"));
  onSpan(all.from, all.to);  // before anything is drawn
  return [tools, frame];
}
