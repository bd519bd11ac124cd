// Drawings of objects: graphs, molecules, curves and points.
const data = JSON.parse(document.getElementById("payload").textContent);
const SVG = "http://www.w3.org/2000/svg";
const make = (tag, attributes = {}, parent = null) => {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (parent) parent.append(node);
  return node;
};
const line = (parent, tag, text) => {
  const node = document.createElement(tag);
  node.textContent = text;
  parent.append(node);
  return node;
};

// Classical scaling: the two leading eigenvectors of the centred squared distances, by power iteration.
const scaled = (d) => {
  const n = d.length, means = d.map((row) => row.reduce((sum, v) => sum + v * v, 0) / n);
  const all = means.reduce((sum, v) => sum + v, 0) / n;
  const B = d.map((row, i) => row.map((v, j) => (means[i] + means[j] - all - v * v) / 2));
  const found = [];
  for (const phase of [0.7, 2.1]) {
    let v = d.map((_, i) => Math.cos(phase * (i + 1))), size = 1;
    for (let round = 0; round < 60; round++) {
      const w = B.map((row) => row.reduce((sum, b, j) => sum + b * v[j], 0));
      for (const [u, value] of found) { const dot = u.reduce((sum, a, j) => sum + a * v[j], 0) * value; u.forEach((a, j) => { w[j] -= dot * a; }); }
      size = Math.hypot(...w) || 1e-9;
      v = w.map((a) => a / size);
    }
    found.push([v, size]);
  }
  return d.map((_, i) => found.map(([v, size]) => v[i] * Math.sqrt(size) + 1e-3 * Math.cos(i)));
};
// Graphs: places at which distances on the paper are those in the graph (stress, by majorisation one node at a time).
const layout = (n, edges) => {
  const near = Array.from({ length: n }, () => []);
  for (const [a, b] of edges) { near[a].push(b); near[b].push(a); }
  const far = Math.sqrt(n) + 2, d = [];
  for (let start = 0; start < n; start++) {
    const row = new Array(n).fill(0), seen = new Set([start]);
    for (let front = [start], step = 1; front.length; step++) {
      const next = [];
      for (const a of front) for (const b of near[a]) if (!seen.has(b)) { seen.add(b); row[b] = step; next.push(b); }
      front = next;
    }
    for (let b = 0; b < n; b++) if (!seen.has(b)) row[b] = far;
    d.push(row);
  }
  const at = scaled(d);
  for (let round = 0; round < 90; round++) for (let i = 0; i < n; i++) {
    let x = 0, y = 0, sum = 0;
    for (let j = 0; j < n; j++) if (j !== i) {
      const w = 1 / (d[i][j] * d[i][j]), dx = at[i][0] - at[j][0], dy = at[i][1] - at[j][1];
      const pull = d[i][j] / (Math.hypot(dx, dy) || 1e-6);
      x += w * (at[j][0] + dx * pull); y += w * (at[j][1] + dy * pull); sum += w;
    }
    if (sum) at[i] = [x / sum, y / sum];
  }
  return at;
};
// Molecules: RDKit's places, and lines for the orders of bonds; the second line of an aromatic bond is dashed, and
// carbons with bonds are corners.
const drawGraph = ({ g: numbers, l: labels, s, xy, b: bonds }, box) => {
  const n = numbers[0], edges = [], symbols = s && s.split(" ");
  for (let i = 1; i < numbers.length; i += 2) edges.push([numbers[i], numbers[i + 1]]);
  const at = xy ? Array.from({ length: n }, (_, i) => [xy[2 * i], xy[2 * i + 1]]) : layout(n, edges), xs = at.map((p) => p[0]), ys = at.map((p) => p[1]);
  const left = Math.min(...xs), top = Math.min(...ys), size = Math.max(Math.max(...xs) - left, Math.max(...ys) - top) || 1;
  const width = Math.max(...xs) - left, height = Math.max(...ys) - top;
  const place = (p) => [100 + (p[0] - left - width / 2) * 176 / size, 100 + (p[1] - top - height / 2) * 176 / size];
  const high = Math.max(40, height * 176 / size + 24);
  const svg = make("svg", { viewBox: `0 ${100 - high / 2} 200 ${high}`, "aria-hidden": "true", ...(symbols && { class: "atoms" }) }, box), r = (n > 30 ? 3.5 : 5) + (xy ? 1.5 : symbols ? 3.5 : 0);
  const middle = place([xs.reduce((sum, x) => sum + x, 0) / n, ys.reduce((sum, y) => sum + y, 0) / n]);
  edges.forEach(([a, b], i) => {
    const [x1, y1] = place(at[a]), [x2, y2] = place(at[b]), kind = bonds ? bonds[i] : "-";
    const long = Math.hypot(x2 - x1, y2 - y1) || 1, ux = (y1 - y2) / long, uy = (x2 - x1) / long;
    // The second line lies on the side of the middle of the neighbours: inside a ring.
    const beside = edges.flatMap(([c, d]) => c === a || c === b ? [d] : d === a || d === b ? [c] : []).filter((c) => c !== a && c !== b).map((c) => place(at[c]));
    const [mx, my] = beside.length ? [0, 1].map((k) => beside.reduce((sum, p) => sum + p[k], 0) / beside.length) : middle;
    const side = (mx - x1) * ux + (my - y1) * uy < 0 ? -1 : 1, gap = Math.min(0.16 * long, 4.5);
    for (const shift of { "=": [-0.5, 0.5], "#": [-1, 0, 1], ":": [0, side] }[kind] || [0]) {
      const dx = shift * gap * ux, dy = shift * gap * uy, cut = kind === ":" && shift ? 0.12 : 0;
      make("line", {
        x1: x1 + dx + cut * (x2 - x1), y1: y1 + dy + cut * (y2 - y1), x2: x2 + dx - cut * (x2 - x1), y2: y2 + dy - cut * (y2 - y1),
        ...(cut && { "stroke-dasharray": "3 2" }),
      }, svg);
    }
  });
  at.forEach((p, i) => {
    const [cx, cy] = place(p);
    if (xy && symbols[i] === "C" && edges.some((edge) => edge.includes(i))) return;
    make("circle", { cx, cy, r, class: labels ? `k${labels[i]}` : "" }, svg);
    if (symbols) make("text", { x: cx, y: cy + r * 0.45, "font-size": r * 1.3 }, svg).textContent = symbols[i];
  });
};
const draw = (object, box) => {
  box.replaceChildren();
  const drawn = object.c || object.p || object.g;
  box.className = drawn ? "object" : "object text";
  line(box, "span", object.t);
  if (object.g && object.g[0]) drawGraph(object, box);
  if (object.c && object.c[0].length) {
    const svg = make("svg", { viewBox: "-3 -6 206 112", "aria-hidden": "true" }, box);
    object.c.forEach((curve, i) => make("polyline", { class: `k${i}`, points: curve.map((v, t) => `${(200 * t) / Math.max(1, curve.length - 1)},${100 - v}`).join(" ") }, svg));
  }
  if (object.p) {
    const svg = make("svg", { viewBox: "-4 -4 108 108", "aria-hidden": "true" }, box);
    for (let i = 0; i < object.p.length; i += 2) make("circle", { cx: object.p[i], cy: 100 - object.p[i + 1], r: 2 }, svg);
  }
};
