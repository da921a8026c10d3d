// The panel of an exemplar: its row as an image, as strips or as words, and whom it stands for.

const panel = document.getElementById("panel");
const FIRST = 12;

function element(name, options = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options)) made[key] = value;
  made.append(...children);
  return made;
}

function drawn(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function strip(name, text, inside) {
  const top = element("div", { className: "top" });
  top.append(element("span", { textContent: name }), element("b", { textContent: text }));
  const picture = drawn("svg", { "aria-hidden": "true" });
  picture.append(...inside);
  return element("div", { className: "strip" }, top, picture);
}

const along = (steps) => steps / 10 + "%";

function featureStrip(feature, number, cluster) {
  const row = rows.rows[number], [low, middle, high] = rows.bands[cluster][feature];
  const inside = [drawn("line", { x1: "0%", x2: "100%", y1: 7, y2: 7, class: "base" })];
  if (low !== null) {
    const color = clusters.get(cluster).color;
    inside.push(
      drawn("rect", { x: along(low), width: along(Math.max(high - low, 4)), y: 2.5, height: 9, fill: color, class: "band" }),
      drawn("line", { x1: along(middle), x2: along(middle), y1: 2.5, y2: 11.5, class: "middle" }));
  }
  if (row.at[feature] !== null) inside.push(drawn("circle", { cx: along(row.at[feature]), cy: 7, r: 4.5, class: "dot" }));
  const made = strip(rows.features[feature], row.text[feature], inside);
  made.title = "All rows: " + rows.low[feature] + " to " + rows.high[feature];
  return made;
}

function wordStrip([name, text, share], color) {
  return strip(name, text, [drawn("rect", { width: along(Math.max(share, 5)), y: 3, height: 7, rx: 2, fill: color })]);
}

function folded(title, strips) {
  return element("details", {}, element("summary", { textContent: title }), ...strips);
}

function describeRow(number, cluster) {
  const parts = [], said = (rows.words || [])[number] || [];
  const image = document.querySelector(`[data-exemplar="${number}"] img`);
  if (image !== null) parts.push(element("img", { className: "picture-large", src: image.src, alt: "The row as an image" }));
  if (said.length > 0) {
    const list = element("dl");
    for (const [name, word] of said) list.append(element("dt", { textContent: name }), element("dd", { textContent: word }));
    parts.push(list);
  }
  let strips = [], rest = "";
  if (rows.entries) {
    const color = clusters.get(cluster).color;
    strips = rows.entries[number].map((entry) => wordStrip(entry, color));
    rest = "More words";
    parts.push(element("p", { className: "small", textContent: "Its words of the most weight:" }));
  } else if (rows.features) {
    strips = rows.order[cluster].map((feature) => featureStrip(feature, number, cluster));
    rest = rows.left_out > 0 ? "More columns" : "All other columns";
    parts.push(element("p", { className: "small", textContent:
      "Its values (dots) from the lowest to the highest of all rows; the coloured bar is the middle half of its cluster." }));
  }
  parts.push(...strips.slice(0, FIRST));
  if (strips.length > FIRST) parts.push(folded(rest + " (" + (strips.length - FIRST) + ")", strips.slice(FIRST)));
  return parts;
}

function standsFor(exemplar) {
  const { count, inside } = exemplar;
  if (count === 0) return "It stands for no other row.";
  const many = count === 1 ? "1 row" : count.toLocaleString("en") + " rows";
  const own = inside === count ? (count === 1 ? "of its own cluster" : "all of its own cluster")
    : inside.toLocaleString("en") + " of its own cluster";
  const joined = exemplar.joined.length < count ? " Lines join the " + exemplar.joined.length + " of the most weight." : "";
  return "It " + words.verb + " " + many + ", " + own + "." + joined;
}

function choose(number, { reveal = false } = {}) {
  state.chosen = number;
  state.marked = null;
  state.alone.clear();
  showToggles();
  hover(null);
  for (const chip of document.querySelectorAll("[data-exemplar]")) {
    chip.setAttribute("aria-current", String(Number(chip.dataset.exemplar) === number));
  }
  const exemplar = map.exemplars[number], cluster = labels[exemplar.row];
  const close = element("button", { type: "button", className: "close", textContent: "\u00d7", title: "Close" });
  close.setAttribute("aria-label", "Close");
  close.addEventListener("click", () => { clearChoice(); stage.focus({ preventScroll: true }); });
  const title = element("h3", { textContent: words.one + " " + idOf(exemplar.row) });
  let said = "Cluster " + cluster;
  if (confidence !== null) said += ", confidence " + (confidence[exemplar.row] / 100).toFixed(2);
  panel.replaceChildren(close, title, element("p", { className: "small", textContent: said }),
    element("p", { textContent: standsFor(exemplar) }), ...describeRow(number, cluster));
  if (reveal) (innerWidth > 860 ? stage : panel).scrollIntoView({ block: "nearest" });
  redraw();
}

const hint = panel === null ? null : panel.firstElementChild;

function clearChoice() {
  Object.assign(state, { chosen: null, marked: null });
  state.alone.clear();
  showToggles();
  for (const chip of document.querySelectorAll("[data-exemplar]")) chip.setAttribute("aria-current", "false");
  if (panel !== null) panel.replaceChildren(hint);
  hover(null);
  redraw();
}

function showToggles() {
  for (const toggle of document.querySelectorAll("[data-cluster]")) {
    toggle.setAttribute("aria-pressed", String(state.alone.has(Number(toggle.dataset.cluster))));
  }
}

function toggleCluster(cluster) {
  const alone = new Set(state.alone);
  if (!alone.delete(cluster)) alone.add(cluster);
  clearChoice();
  state.alone = alone;
  showToggles();
  redraw();
}

// A row that is no exemplar has no panel: it is marked on the map, and named.
function mark(row) {
  if (numberOf.has(row)) { choose(numberOf.get(row), { reveal: true }); return; }
  clearChoice();
  showAll();
  state.marked = row;
  stage.scrollIntoView({ block: "center" });
  showTip(row);
  redraw();
}
