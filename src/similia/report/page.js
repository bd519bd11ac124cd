// Tables: a click on a header sorts by its column, a second one the other way.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
    const numeric = head.classList.contains("n");
    const before = head.getAttribute("aria-sort");
    const down = before === null ? numeric : before === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => {
      const cell = row.cells[column];
      if (!numeric) return cell.textContent;
      const found = Number(cell.dataset.v ?? cell.textContent.replace(/[, %]/g, ""));
      return Number.isNaN(found) ? -Infinity : found;
    };
    const order = numeric ? (a, b) => value(a) - value(b) : (a, b) => value(a).localeCompare(value(b), "en", { numeric: true });
    const rows = [...table.tBodies[0].rows].sort(order);
    table.tBodies[0].append(...(down ? rows.reverse() : rows));
  }));
}
for (const box of document.querySelectorAll("[data-i]")) draw(data.objects[box.dataset.i], box);

// The map: what is nearest to the pointer is shown beside it; arrow keys go through all; keys of classes hide them.
const map = document.querySelector(".map > svg");
if (map) {
  const panel = document.querySelector(".shown"), ring = map.querySelector("#ring"), hidden = new Set();
  let current = -1;
  const show = (i) => {
    current = i;
    ring.setAttribute("cx", data.x[i]); ring.setAttribute("cy", data.y[i]); ring.removeAttribute("visibility");
    panel.replaceChildren();
    line(panel, "h3", data.names[i]);
    draw(data.objects[i], panel.appendChild(document.createElement("div")));
    const list = document.createElement("dl");
    for (const [name, values] of data.facts) { line(list, "dt", name); line(list, "dd", values[i]); }
    if (data.facts.length) panel.append(list);
  };
  const nearest = (event) => {
    const box = map.getBoundingClientRect(), view = map.viewBox.baseVal;
    const px = (event.clientX - box.left) * view.width / box.width, py = (event.clientY - box.top) * view.height / box.height;
    let best = -1, least = 900;
    for (let i = 0; i < data.x.length; i++) {
      const gap = (data.x[i] - px) ** 2 + (data.y[i] - py) ** 2;
      if (gap < least && !hidden.has(data.mark[i])) { least = gap; best = i; }
    }
    if (best >= 0 && best !== current) show(best);
  };
  map.addEventListener("pointermove", nearest);
  map.addEventListener("pointerdown", nearest);
  map.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const n = data.x.length;
    let i = current;
    for (let tried = 0; tried < n; tried++) { i = (i + step + n) % n; if (!hidden.has(data.mark[i])) { show(i); return; } }
  });
  for (const button of document.querySelectorAll("button.key")) button.addEventListener("click", () => {
    const mark = Number(button.dataset.key), off = !hidden.has(mark);
    if (off) hidden.add(mark); else hidden.delete(mark);
    button.setAttribute("aria-pressed", String(!off));
    map.querySelector(`[data-mark="${mark}"]`).classList.toggle("off", off);
  });
}
