// The map: all rows on a canvas, with zoom, hover, highlighted clusters and the neighbourhood of a chosen row.

const { map, rows, words } = JSON.parse(document.getElementById("report-data").textContent);
const stage = document.getElementById("stage");
const canvas = document.getElementById("canvas");
const tip = document.getElementById("tip");
const brush = canvas.getContext("2d");
document.documentElement.classList.add("js");

function unpack(text, Kind) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let k = 0; k < letters.length; k++) bytes[k] = letters.charCodeAt(k);
  return new Kind(bytes.buffer);
}

const xy = unpack(map.xy, Uint16Array);
const labels = unpack(map.labels, map.wide ? Uint16Array : Uint8Array);
const confidence = map.confidence === null ? null : unpack(map.confidence, Uint8Array);
const clusters = new Map(map.clusters.map((cluster) => [cluster.cluster, cluster]));
const numberOf = new Map(map.exemplars.map((exemplar, number) => [exemplar.row, number]));
const limits = { right: 0, bottom: 0 };
for (let k = 0; k < map.n; k++) {
  limits.right = Math.max(limits.right, xy[2 * k]);
  limits.bottom = Math.max(limits.bottom, xy[2 * k + 1]);
}

// What is shown: everything that a click, a key or a button can change.
const state = { zoom: 1, left: 0, top: 0, alone: new Set(), chosen: null, marked: null, over: null };
const MARGIN = 28, MOST_ZOOM = 60;
const look = {};
let width = 1, height = 1, unit = 1, waiting = false;

const idOf = (row) => (map.ids === null ? String(row) : map.ids[row]);
const xOf = (row) => (xy[2 * row] - limits.right / 2) * unit * state.zoom + width / 2 + state.left;
const yOf = (row) => (xy[2 * row + 1] - limits.bottom / 2) * unit * state.zoom + height / 2 + state.top;

function readLook() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "ink", "soft"]) look[name] = style.getPropertyValue("--" + name).trim();
  look.font = getComputedStyle(document.body).fontFamily;
}

function radius() {
  const usual = Math.min(4.5, Math.max(1.15, 110 / Math.sqrt(map.n)));
  return Math.min(7, usual * Math.sqrt(state.zoom));
}

// A shape is drawn once for each cluster, and then copied: fast for any number of rows.
function stamps(size, density) {
  const found = new Map();
  const side = Math.ceil((3 * size + 2) * density);
  for (const [name, cluster] of clusters) {
    const picture = document.createElement("canvas");
    picture.width = picture.height = side;
    const pen = picture.getContext("2d");
    pen.translate(side / 2, side / 2);
    pen.scale(size * density, size * density);
    pen.beginPath();
    for (const [x, y] of map.shapes[cluster.shape]) pen.lineTo(x, y);
    pen.closePath();
    pen.fillStyle = cluster.color;
    pen.fill();
    found.set(name, picture);
  }
  return { found, side: side / density };
}

function brightRows() {
  if (state.chosen !== null) {
    const exemplar = map.exemplars[state.chosen];
    return new Set([exemplar.row, ...exemplar.joined]);
  }
  return null;
}

function isBright(row, bright) {
  if (bright !== null) return bright.has(row);
  return state.alone.size === 0 || state.alone.has(labels[row]);
}

function ring(row, size, thickness) {
  brush.beginPath();
  brush.arc(xOf(row), yOf(row), size, 0, 2 * Math.PI);
  brush.strokeStyle = look.paper;
  brush.lineWidth = thickness + 2.5;
  brush.stroke();
  brush.strokeStyle = look.ink;
  brush.lineWidth = thickness;
  brush.stroke();
}

function drawDots(bright, size, density) {
  const { found, side } = stamps(size, density);
  const dims = bright !== null || state.alone.size > 0;
  const usual = Math.min(0.9, Math.max(0.45, 40 / Math.sqrt(map.n)));
  for (const shown of dims ? [false, true] : [true]) {
    brush.globalAlpha = shown ? (dims ? 0.95 : usual) : 0.13;
    for (let row = 0; row < map.n; row++) {
      if (dims && isBright(row, bright) !== shown) continue;
      const x = xOf(row), y = yOf(row);
      if (x < -side || y < -side || x > width + side || y > height + side) continue;
      brush.drawImage(found.get(labels[row]), x - side / 2, y - side / 2, side, side);
    }
  }
  brush.globalAlpha = 1;
}

function drawLines() {
  const exemplar = map.exemplars[state.chosen];
  brush.beginPath();
  for (const row of exemplar.joined) {
    brush.moveTo(xOf(exemplar.row), yOf(exemplar.row));
    brush.lineTo(xOf(row), yOf(row));
  }
  brush.strokeStyle = look.soft;
  brush.lineWidth = 1;
  brush.globalAlpha = 0.7;
  brush.stroke();
  brush.globalAlpha = 1;
}

function drawNumbers() {
  brush.font = "700 17px " + look.font;
  brush.textAlign = "center";
  brush.textBaseline = "middle";
  brush.lineJoin = "round";
  for (const [name, cluster] of clusters) {
    const x = xOf(cluster.middle), y = yOf(cluster.middle);
    // A chosen row is not covered by a number.
    const chosen = state.chosen === null ? null : map.exemplars[state.chosen].row;
    if (chosen !== null && Math.hypot(xOf(chosen) - x, yOf(chosen) - y) < 24) continue;
    brush.globalAlpha = state.alone.size > 0 && !state.alone.has(name) ? 0.35 : 1;
    brush.strokeStyle = look.paper;
    brush.lineWidth = 5;
    brush.strokeText(String(name), x, y);
    brush.fillStyle = look.ink;
    brush.fillText(String(name), x, y);
  }
  brush.globalAlpha = 1;
}

function draw() {
  waiting = false;
  const density = window.devicePixelRatio || 1;
  const bright = brightRows(), size = radius();
  brush.setTransform(density, 0, 0, density, 0, 0);
  brush.clearRect(0, 0, width, height);
  if (state.chosen !== null) drawLines();
  drawDots(bright, size, density);
  map.exemplars.forEach((exemplar, number) => {
    if (isBright(exemplar.row, bright) || bright !== null) {
      brush.globalAlpha = bright !== null && number !== state.chosen ? 0.35 : 1;
      ring(exemplar.row, size + 3, 1.5);
    }
  });
  brush.globalAlpha = 1;
  drawNumbers();
  if (state.chosen !== null) ring(map.exemplars[state.chosen].row, size + 4, 3);
  if (state.marked !== null) ring(state.marked, size + 7, 3);
  if (state.over !== null) ring(state.over, size + 2, 2);
  canvas.classList.toggle("moved", state.zoom > 1);
}

function redraw() {
  if (!waiting) {
    waiting = true;
    requestAnimationFrame(draw);
  }
}

function resize() {
  const density = window.devicePixelRatio || 1;
  const { clientWidth, clientHeight } = stage;
  if (clientWidth === 0 || clientHeight === 0) return;
  [width, height] = [clientWidth, clientHeight];
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  unit = Math.min(
    (width - 2 * MARGIN) / Math.max(limits.right, 1), (height - 2 * MARGIN) / Math.max(limits.bottom, 1));
  draw();
}

function zoomBy(factor, x = width / 2, y = height / 2) {
  const zoom = Math.min(MOST_ZOOM, Math.max(1, state.zoom * factor));
  const part = zoom / state.zoom;
  state.left = (state.left - (x - width / 2)) * part + (x - width / 2);
  state.top = (state.top - (y - height / 2)) * part + (y - height / 2);
  state.zoom = zoom;
  keepInside();
  redraw();
}

function moveBy(x, y) {
  state.left += x;
  state.top += y;
  keepInside();
  redraw();
}

function keepInside() {
  const across = (limits.right * unit * state.zoom) / 2, down = (limits.bottom * unit * state.zoom) / 2;
  state.left = Math.min(across, Math.max(-across, state.left));
  state.top = Math.min(down, Math.max(-down, state.top));
  if (state.zoom === 1) state.left = state.top = 0;
}

function showAll() {
  Object.assign(state, { zoom: 1, left: 0, top: 0 });
  redraw();
}

// The row under a place: an exemplar before others, then the nearest.
function rowAt(x, y, reach) {
  let best = null, least = reach * reach;
  const near = (row, bonus) => {
    const across = xOf(row) - x, down = yOf(row) - y;
    const far = (across * across + down * down) * bonus;
    if (far < least) [best, least] = [row, far];
  };
  for (const exemplar of map.exemplars) near(exemplar.row, 0.6);
  for (let row = 0; row < map.n; row++) near(row, 1);
  return best;
}

function showTip(row) {
  tip.hidden = row === null;
  if (row === null) return;
  const name = document.createElement("b");
  name.textContent = idOf(row);
  let said = "Cluster " + labels[row];
  if (confidence !== null) said += ", confidence " + (confidence[row] / 100).toFixed(2);
  tip.replaceChildren(name, said);
  const x = xOf(row), y = yOf(row);
  tip.style.left = Math.max(4, Math.min(width - tip.offsetWidth - 4, x + 12)) + "px";
  tip.style.top = (y + 16 + tip.offsetHeight > height ? y - tip.offsetHeight - 12 : y + 12) + "px";
}

function hover(row) {
  canvas.classList.toggle("over", row !== null && numberOf.has(row));
  if (row === state.over) return;
  state.over = row;
  showTip(row);
  redraw();
}

// For readers with a console: where a row is in the window.
canvas.placeOf = (row) => {
  const box = canvas.getBoundingClientRect();
  return { x: box.left + xOf(row), y: box.top + yOf(row) };
};
