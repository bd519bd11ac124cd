// The map: points are written into an array of pixels in a shuffled order, and found again by a grid.
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const xy = new Uint16Array(bytes(data.xy).buffer), code = bytes(data.code), n = code.length;
const SIDE = 65535, CELLS = 256, SHIFT = 8, MOST_ZOOM = 200;
const field = document.getElementById("field"), canvas = field.querySelector("canvas"), context = canvas.getContext("2d", { alpha: false });
const over = document.getElementById("over"), panel = document.querySelector(".shown"), search = document.getElementById("search");
const ring = make("circle", { class: "ring", r: 8, visibility: "hidden" }, over);
const isScale = data.keys === null, hidden = new Set();
let scale = 1, left = 0, top = 0, fit = 1, marked = null, current = -1, kept = false, pixels, image, waiting = false;

// Cells of a grid over the map: the objects of cell c are sorted[starts[c]] to sorted[starts[c + 1] - 1].
const cellOf = (i) => (xy[2 * i + 1] >> SHIFT) * CELLS + (xy[2 * i] >> SHIFT);
const starts = new Uint32Array(CELLS * CELLS + 1), sorted = new Uint32Array(n);
for (let i = 0; i < n; i++) starts[cellOf(i) + 1]++;
for (let c = 0; c < CELLS * CELLS; c++) starts[c + 1] += starts[c];
const next = starts.slice();
for (let i = 0; i < n; i++) sorted[next[cellOf(i)]++] = i;
const order = new Uint32Array(n); // a fixed shuffle, so that no class covers the others
for (let i = 0, seed = 1; i < n; i++) {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  const j = Math.floor((seed / 4294967296) * (i + 1));
  order[i] = order[j]; order[j] = i;
}

const CIVIDIS = ["#00224e", "#243c6e", "#4f576c", "#727274", "#948e77", "#bcae6c", "#fee838"];
const rgb = (text) => {
  context.fillStyle = text; // the browser reads any CSS colour
  return [1, 3, 5].map((at) => parseInt(context.fillStyle.slice(at, at + 2), 16));
};
const mixed = (a, b, share) => a.map((v, k) => Math.round(v + share * (b[k] - v)));
const css = (color) => `rgb(${color.join(" ")})`;
const word = ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r;
let colors, paper, faint;
const readColors = () => {
  const style = getComputedStyle(document.documentElement), own = (name) => rgb(style.getPropertyValue(name).trim());
  paper = own("--paper");
  faint = mixed(paper, own("--soft"), 0.25);
  if (isScale) {
    const stops = CIVIDIS.map(rgb);
    colors = Array.from({ length: 256 }, (_, v) => { const at = (v / 255) * 6, k = Math.min(5, Math.floor(at)); return mixed(stops[k], stops[k + 1], at - k); });
    return;
  }
  colors = data.keys.map((_, k) => {
    const plain = own(`--k${k % 7}`), round = Math.floor(k / 7);
    return round === 0 ? plain : mixed(plain, round === 1 ? [255, 255, 255] : [90, 60, 60], 0.5);
  });
  if (data.other) colors[colors.length - 1] = own("--soft");
};

// ---- drawing
const ratio = () => window.devicePixelRatio || 1;
const stamp = (r, width) => { // offsets of the pixels of a disc, and how far it reaches
  const full = [], reach = Math.ceil(r);
  for (let y = -reach; y <= reach; y++) for (let x = -reach; x <= reach; x++) if (x * x + y * y <= r * r + 0.3) full.push(y * width + x);
  return [Int32Array.from(full), reach];
};
const paint = () => {
  waiting = false;
  const width = canvas.width, height = canvas.height, k = ratio();
  pixels.fill(word(paper));
  const base = (n > 20000 ? 1 : n > 3000 ? 2 : 3) * Math.min(2, Math.max(1, Math.sqrt(scale / fit) / 2));
  const words = colors.map(word), pale = word(faint);
  const put = (only, r) => {
    const [disc, reach] = stamp(r * k, width), size = disc.length;
    for (let p = 0; p < n; p++) {
      const i = order[p], c = code[i], on = marked === null || marked[i] === 1;
      if (on !== only || (!isScale && hidden.has(c))) continue;
      const x = Math.round((xy[2 * i] * scale + left) * k), y = Math.round((xy[2 * i + 1] * scale + top) * k);
      if (x < reach || y < reach || x >= width - reach || y >= height - reach) continue;
      const at = y * width + x, color = only ? words[c] : pale;
      for (let q = 0; q < size; q++) pixels[at + disc[q]] = color;
    }
  };
  if (marked !== null) put(false, base);
  put(true, marked === null ? base : base + 1);
  context.putImageData(image, 0, 0);
  placeRing();
};
const repaint = () => { if (!waiting) { waiting = true; requestAnimationFrame(paint); } };
const placeRing = () => {
  if (current < 0) return ring.setAttribute("visibility", "hidden");
  ring.setAttribute("cx", xy[2 * current] * scale + left); ring.setAttribute("cy", xy[2 * current + 1] * scale + top);
  ring.removeAttribute("visibility");
};
const whole = () => {
  const { clientWidth: w, clientHeight: h } = field;
  scale = fit = (0.92 * Math.min(w, h)) / SIDE;
  left = (w - SIDE * scale) / 2; top = (h - SIDE * scale) / 2;
  repaint();
};
const resize = () => {
  canvas.width = Math.max(1, Math.round(field.clientWidth * ratio())); canvas.height = Math.max(1, Math.round(field.clientHeight * ratio()));
  image = context.createImageData(canvas.width, canvas.height);
  pixels = new Uint32Array(image.data.buffer);
  repaint();
};
const zoom = (factor, x, y) => {
  const wanted = Math.min(MOST_ZOOM * fit, Math.max(0.5 * fit, scale * factor)), change = wanted / scale;
  left = x - (x - left) * change; top = y - (y - top) * change; scale = wanted;
  repaint();
};

// ---- objects
const shown = (i) => (marked === null || marked[i] === 1) && (isScale || !hidden.has(code[i]));
const nearest = (px, py) => {
  const x = (px - left) / scale, y = (py - top) / scale, reach = 12 / scale;
  const cell = (v) => Math.min(CELLS - 1, Math.max(0, Math.floor(v) >> SHIFT));
  let best = -1, least = reach * reach;
  for (let row = cell(y - reach); row <= cell(y + reach); row++) for (let column = cell(x - reach); column <= cell(x + reach); column++) {
    const c = row * CELLS + column;
    for (let p = starts[c]; p < starts[c + 1]; p++) {
      const i = sorted[p], gap = (xy[2 * i] - x) ** 2 + (xy[2 * i + 1] - y) ** 2;
      if (gap < least && shown(i)) { least = gap; best = i; }
    }
  }
  return best;
};
const nameOf = (i) => (data.names ? data.names[i] : String(data.rows ? data.rows[i] : i));
const labelOf = (i) => (data.labels === null ? "" : data.labels.length ? String(data.labels[i]) : data.keys[code[i]]);
const show = (i) => {
  current = i;
  placeRing();
  if (i < 0) return;
  panel.replaceChildren();
  line(panel, "h3", data.names ? data.names[i] : `row ${nameOf(i)}`);
  draw(data.objects[i], panel.appendChild(document.createElement("div")));
  const list = panel.appendChild(document.createElement("dl"));
  const facts = [["row (from 0)", data.rows ? data.rows[i] : i], ...(data.labels === null ? [] : [[data.color, labelOf(i)]])];
  for (const [name, value] of facts) { line(list, "dt", name); line(list, "dd", value); }
};
let texts = null;
const mark = (chosen) => { marked = chosen; repaint(); };
const find = () => {
  const wanted = search.value.trim().toLowerCase();
  texts ??= Array.from({ length: n }, (_, i) => `${nameOf(i)}\n${labelOf(i)}\n${data.objects[i].t}`.toLowerCase());
  const hits = new Uint8Array(n);
  let count = 0;
  for (let i = 0; i < n; i++) if (texts[i].includes(wanted)) { hits[i] = 1; count++; }
  document.getElementById("found").textContent = wanted ? `${count} found` : "";
  document.getElementById("picked").hidden = true;
  mark(wanted ? hits : null);
};
const pick = (corners) => { // objects inside of a polygon, by the number of its edges to the right of them
  const chosen = new Uint8Array(n), ids = [], sides = corners.map(([x, y]) => [(x - left) / scale, (y - top) / scale]);
  const ys = sides.map((p) => p[1]), low = Math.min(...ys), high = Math.max(...ys);
  for (let i = 0; i < n; i++) {
    const x = xy[2 * i], y = xy[2 * i + 1];
    if (y < low || y > high || (!isScale && hidden.has(code[i]))) continue;
    let inside = false;
    for (let a = 0, b = sides.length - 1; a < sides.length; b = a++) {
      const [x1, y1] = sides[a], [x2, y2] = sides[b];
      if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) inside = !inside;
    }
    if (inside) { chosen[i] = 1; ids.push(nameOf(i)); }
  }
  const box = document.getElementById("picked");
  box.hidden = !ids.length;
  box.querySelector("label").textContent = `${ids.length} chosen: ${data.names ? "names" : "rows, from 0"}`;
  document.getElementById("ids").value = ids.join("\n");
  search.value = ""; document.getElementById("found").textContent = "";
  mark(ids.length ? chosen : null);
};

// ---- what the pointer and the keys do
const lassoButton = document.getElementById("lasso"), pressed = new Map();
let corners = null, outline = null, moved = 0, apart = 0;
const at = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
const spread = () => { const [a, b] = [...pressed.values()]; return Math.hypot(a[0] - b[0], a[1] - b[1]); };
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pressed.set(event.pointerId, at(event));
  moved = 0;
  if (pressed.size === 2) apart = spread();
  if (pressed.size === 1 && (event.shiftKey || lassoButton.getAttribute("aria-pressed") === "true")) {
    corners = [at(event)];
    outline = make("polygon", {}, over);
  }
});
canvas.addEventListener("pointermove", (event) => {
  const here = at(event), before = pressed.get(event.pointerId);
  if (!before) { if (!kept) { const i = nearest(...here); if (i !== current && i >= 0) show(i); } return; }
  pressed.set(event.pointerId, here);
  moved += Math.hypot(here[0] - before[0], here[1] - before[1]);
  if (corners) { corners.push(here); outline.setAttribute("points", corners.map((p) => p.join(",")).join(" ")); return; }
  if (pressed.size === 2) { const wide = spread(), [a, b] = [...pressed.values()]; zoom(wide / (apart || 1), (a[0] + b[0]) / 2, (a[1] + b[1]) / 2); apart = wide; return; }
  left += here[0] - before[0]; top += here[1] - before[1];
  repaint();
});
const release = (event) => {
  if (!pressed.delete(event.pointerId)) return;
  if (corners) { const drawn = corners; corners = null; outline.remove(); if (event.type === "pointerup") pick(drawn); return; }
  if (moved < 4 && event.type === "pointerup") { const i = nearest(...at(event)); kept = i >= 0; show(i); }
};
canvas.addEventListener("pointerup", release);
canvas.addEventListener("pointercancel", release);
canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...at(event)); }, { passive: false });
canvas.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
  const factor = { "+": 1.3, "=": 1.3, "-": 1 / 1.3 }[event.key];
  if (event.key === "Escape") { kept = false; search.value = ""; find(); }
  if (!step && !factor) return;
  event.preventDefault();
  if (step) { left += step[0]; top += step[1]; repaint(); } else zoom(factor, field.clientWidth / 2, field.clientHeight / 2);
});
lassoButton.addEventListener("click", () => {
  const on = lassoButton.getAttribute("aria-pressed") !== "true";
  lassoButton.setAttribute("aria-pressed", String(on)); canvas.classList.toggle("lasso", on);
});
document.getElementById("whole").addEventListener("click", () => { kept = false; search.value = ""; find(); whole(); });
document.getElementById("copy").addEventListener("click", () => { document.getElementById("ids").select(); document.execCommand("copy"); });
search.addEventListener("input", find);

// ---- legend
const legend = () => {
  const box = document.getElementById("keys");
  box.replaceChildren();
  if (data.labels === null) return;
  line(box, "label", data.color);
  if (isScale) {
    const bar = box.appendChild(document.createElement("div"));
    bar.id = "scale";
    line(bar, "span", data.range[0]);
    line(bar, "i", "").style.background = `linear-gradient(90deg, ${CIVIDIS.join(", ")})`;
    line(bar, "span", data.range[1]);
    return;
  }
  data.keys.forEach((name, k) => {
    const button = box.appendChild(document.createElement("button"));
    button.type = "button"; button.className = "key"; button.setAttribute("aria-pressed", String(!hidden.has(k)));
    line(button, "i", "").style.background = css(colors[k]);
    line(button, "span", `${name} (${data.counts[k].toLocaleString("en")})`);
    button.addEventListener("click", () => {
      if (hidden.has(k)) hidden.delete(k); else hidden.add(k);
      button.setAttribute("aria-pressed", String(!hidden.has(k)));
      repaint();
    });
  });
};
const restyle = () => { readColors(); legend(); repaint(); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
readColors(); legend(); resize(); whole();
new ResizeObserver(resize).observe(field);
