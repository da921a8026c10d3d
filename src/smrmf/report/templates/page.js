// What a reader does: pointers, wheel, keys, buttons; and what a page does: size, colours, print.

const pointers = new Map();
let travelled = 0;

const inStage = (event) => {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};
const reachOf = (event) => (event.pointerType === "touch" ? 22 : 10);

canvas.addEventListener("pointerdown", (event) => {
  if (pointers.size === 0) travelled = 0;
  pointers.set(event.pointerId, [event.clientX, event.clientY]);
  canvas.setPointerCapture(event.pointerId);
});

canvas.addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId);
  if (before === undefined) {
    hover(rowAt(...inStage(event), reachOf(event)));
    return;
  }
  const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
  const [x, y] = [event.clientX - before[0], event.clientY - before[1]];
  travelled += Math.abs(x) + Math.abs(y);
  pointers.set(event.pointerId, [event.clientX, event.clientY]);
  if (others.length > 0) {
    const length = ([a, b]) => Math.hypot(a - others[0][0], b - others[0][1]);
    const part = length([event.clientX, event.clientY]) / Math.max(length(before), 1);
    const box = canvas.getBoundingClientRect();
    zoomBy(part, (event.clientX + others[0][0]) / 2 - box.left, (event.clientY + others[0][1]) / 2 - box.top);
  } else if (travelled > 5) {
    canvas.classList.add("drags");
    hover(null);
    moveBy(x, y);
  }
});

function release(event) {
  const known = pointers.delete(event.pointerId);
  canvas.classList.remove("drags");
  if (!known || event.type === "pointercancel" || travelled > 5 || pointers.size > 0) return;
  const row = rowAt(...inStage(event), reachOf(event));
  if (row !== null && numberOf.has(row)) choose(numberOf.get(row), { reveal: innerWidth <= 860 });
  else if (row === null) clearChoice();
  else hover(row);
}
canvas.addEventListener("pointerup", release);
canvas.addEventListener("pointercancel", release);
canvas.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hover(null); });

canvas.addEventListener("wheel", (event) => {
  // Where nothing can be made smaller the wheel is the page's: who scrolls past the map is not held up.
  if (event.deltaY > 0 && state.zoom === 1) return;
  event.preventDefault();
  hover(null);
  zoomBy(Math.exp(-event.deltaY / 400), ...inStage(event));
}, { passive: false });

const keys = {
  ArrowLeft: () => moveBy(60, 0), ArrowRight: () => moveBy(-60, 0),
  ArrowUp: () => moveBy(0, 60), ArrowDown: () => moveBy(0, -60),
  "+": () => zoomBy(1.4), "=": () => zoomBy(1.4), "-": () => zoomBy(1 / 1.4), 0: showAll,
};
stage.addEventListener("keydown", (event) => {
  // Arrows scroll the page while there is nothing to move.
  if (!(event.key in keys) || event.ctrlKey || event.metaKey || (event.key.startsWith("Arrow") && state.zoom === 1)) return;
  event.preventDefault();
  hover(null);
  keys[event.key]();
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") clearChoice(); });

document.getElementById("closer").addEventListener("click", () => zoomBy(1.6));
document.getElementById("wider").addEventListener("click", () => zoomBy(1 / 1.6));
document.getElementById("whole").addEventListener("click", () => { clearChoice(); showAll(); });

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button === null) return;
  const { exemplar, point, cluster, copy } = button.dataset;
  if (exemplar !== undefined) choose(Number(exemplar), { reveal: true });
  if (point !== undefined) mark(Number(point));
  if (cluster !== undefined) toggleCluster(Number(cluster));
  if (copy !== undefined) copyText(button, document.getElementById(copy));
});

// One stop of the tabulator for all exemplars below the map; arrows go from one to the next.
const chips = [...document.querySelectorAll(".legend [data-exemplar]")];
chips.forEach((chip, place) => {
  chip.tabIndex = place === 0 ? 0 : -1;
  chip.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = chips[(place + step + chips.length) % chips.length];
    chip.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
});

async function copyText(button, source) {
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch {
    getSelection().selectAllChildren(source);
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

// Print shows what is folded.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const part of opened) part.open = true;
});
addEventListener("afterprint", () => { for (const part of opened) part.open = false; });

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readLook(); redraw(); });
new ResizeObserver(resize).observe(stage);
readLook();
resize();
