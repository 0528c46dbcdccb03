// The graph: a picture that is moved by hand, and whose boxes can be reached by keys.

/** How close and how far it can be looked at. */
const [CLOSEST, FARTHEST] = [4, 0.04];

/** Texts are legible at this scale. */
const LEGIBLE = 0.75;

/** Headings are legible at this scale. */
const SMALLEST = 0.5;

const canvas = {
  svg: null,
  /** Of the places in the graph that is shown. */
  prefix: "",
  /** Where the middle of the window is in the picture, and pixels for each unit. */
  x: 0, y: 0, scale: 1,
  /** The bounds of the picture. */
  bounds: { x: 0, y: 0, width: 1, height: 1 },
  /** Boxes by number: `{ g, node, values, group, rect, from, to }`. */
  boxes: new Map(),
  edges: [],
  /** The box that keys move, and what is shown beside. */
  active: null,
  steps: [],
  names: [],
  groups: {},
};

/** Shows an answer to `draw`. The engine escapes names, and the policy of the page lets no script in a picture run. */
function showGraph(answer) {
  const holder = $("canvas");
  holder.replaceChildren();
  Object.assign(canvas, { svg: null, boxes: new Map(), edges: [], active: null, steps: answer?.steps ?? [], names: answer?.names ?? [], groups: answer?.groups ?? {}, prefix: answer?.prefix ?? "" });
  $("legend").replaceChildren();
  $("map").replaceChildren();
  showCrumbs();
  const parsed = answer?.svg && new DOMParser().parseFromString(answer.svg, "image/svg+xml").documentElement;
  $("stage").classList.toggle("empty", !parsed);
  if (!parsed || parsed.localName !== "svg" || parsed.querySelector("parsererror")) return;
  const svg = document.importNode(parsed, true);
  canvas.svg = svg;
  canvas.natural = ["width", "height", "viewBox"].map((name) => [name, svg.getAttribute(name)]);
  svg.removeAttribute("width");
  svg.removeAttribute("height");
  holder.append(svg);
  canvas.bounds = measure(svg);
  index(svg);
  showLegend(svg);
  showMap();
  $("caption").textContent = answer.caption ?? "";
  $("folded-switch").hidden = !answer.foldable;
  showMarks();
  fit();
}

/** The bounds of the graph in a picture. */
function measure(svg) {
  const graph = svg.querySelector("g.graph");
  // Where the graph isn't shown, as on a phone, nothing has a size.
  const box = graph && svg.clientWidth > 0 ? graph.getBBox() : { x: 0, y: 0, width: 0, height: 0 };
  if (box.width > 0) return { x: box.x, y: box.y, width: box.width, height: Math.max(box.height, 1) };
  const [x, y, width, height] = (canvas.natural[2][1] ?? "0 0 800 600").split(" ").map(Number);
  return { x, y, width, height };
}

/** Finds the boxes, and what leads to what. */
function index(svg) {
  for (const g of svg.querySelectorAll("g[data-box]")) {
    const number = g.dataset.box;
    const rects = g.querySelectorAll("rect");
    const last = rects[rects.length - 1];
    const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => Number(last.getAttribute(name)));
    const group = canvas.groups[number] ?? null;
    const values = (g.dataset.values ?? "").split(" ").filter(Boolean);
    const head = g.querySelector(".head")?.textContent ?? "";
    const lines = [...g.querySelectorAll(".line")].map((line) => line.textContent);
    const kind = group ? "group" : g.dataset.node !== undefined ? "node" : g.classList[1];
    const label = [`${kind} ${head}`, ...lines].join(", ");
    canvas.boxes.set(number, { number, g, node: g.dataset.node ?? null, values, group, x, y, width, height, head, label, from: [], to: [] });
    g.id = `box-${number}`;
    g.setAttribute("role", "button");
    g.setAttribute("tabindex", "-1");
    g.setAttribute("aria-label", label);
  }
  for (const g of svg.querySelectorAll("g.edge")) {
    // A reader of the page follows edges from box to box.
    g.setAttribute("aria-hidden", "true");
    const from = canvas.boxes.get(g.dataset.from);
    const to = (g.dataset.to ?? "").split(" ").filter(Boolean).map((number) => canvas.boxes.get(number)).filter(Boolean);
    canvas.edges.push({ g, from, to, values: (g.dataset.values ?? "").split(" ").filter(Boolean) });
    for (const box of to) {
      from?.to.push(box);
      box.from.push(from);
    }
    // Thin lines are hard to hit.
    for (const path of g.querySelectorAll("path")) {
      const grip = path.cloneNode();
      grip.removeAttribute("marker-end");
      grip.setAttribute("class", "grip");
      g.append(grip);
    }
  }
  const all = [...canvas.boxes.values()];
  const first = all.find(({ g }) => g.classList.contains("input")) ?? all[0];
  if (first) activate(first, false);
}

/** Makes a box the one that keys move. */
function activate(box, focus = true) {
  canvas.active?.g.setAttribute("tabindex", "-1");
  canvas.active = box;
  box.g.setAttribute("tabindex", "0");
  if (!focus) return;
  box.g.focus({ preventScroll: true });
  into(box);
}

/** Size of the window, in pixels. */
const size = () => ({ width: $("canvas").clientWidth || 800, height: $("canvas").clientHeight || 600 });

/** Draws the part of the picture that is in the window. */
function place() {
  if (!canvas.svg) return;
  const { width, height } = size();
  const { bounds } = canvas;
  // Some of the picture always stays in the window.
  canvas.x = Math.min(bounds.x + bounds.width, Math.max(bounds.x, canvas.x));
  canvas.y = Math.min(bounds.y + bounds.height, Math.max(bounds.y, canvas.y));
  const [w, h] = [width / canvas.scale, height / canvas.scale];
  canvas.svg.setAttribute("viewBox", `${canvas.x - w / 2} ${canvas.y - h / 2} ${w} ${h}`);
  moveMap();
}

/** Looks closer, at a point of the window that stays where it is. */
function zoom(by, point = null) {
  const { width, height } = size();
  const [px, py] = point ?? [width / 2, height / 2];
  const scale = Math.min(CLOSEST, Math.max(FARTHEST, canvas.scale * by));
  const [dx, dy] = [px - width / 2, py - height / 2];
  canvas.x += dx / canvas.scale - dx / scale;
  canvas.y += dy / canvas.scale - dy / scale;
  canvas.scale = scale;
  place();
}

/** Room that is left between the tools and the legend. */
function room() {
  const { width, height } = size();
  const [above, below] = [56, document.querySelector(".below").offsetHeight + 28];
  return { width: width - 48, height: Math.max(80, height - above - below), shift: (below - above) / 2, top: height / 2 - above };
}

/** All of it, if texts stay legible or it is but wide; else its beginning, with the first input in the middle. */
function fit() {
  const { bounds } = canvas;
  const { width, height, shift, top } = room();
  const [across, whole] = [width / bounds.width, Math.min(width / bounds.width, height / bounds.height)];
  if (whole >= SMALLEST && whole === across) return overview();
  canvas.scale = whole >= LEGIBLE ? Math.min(1.4, whole) : Math.max(LEGIBLE, Math.min(1, across));
  const boxes = [...canvas.boxes.values()].filter(({ number }) => !number.slice(canvas.prefix.length).includes("."));
  const first = boxes.find(({ g }) => g.classList.contains("input")) ?? boxes[0];
  canvas.x = across >= LEGIBLE || !first ? bounds.x + bounds.width / 2 : middle(first);
  canvas.y = whole >= LEGIBLE ? bounds.y + bounds.height / 2 + shift / canvas.scale : bounds.y + top / canvas.scale;
  place();
}

/** The whole picture, however small. */
function overview() {
  const { bounds } = canvas;
  const { width, height, shift } = room();
  canvas.scale = Math.min(1.4, Math.max(FARTHEST, Math.min(width / bounds.width, height / bounds.height)));
  [canvas.x, canvas.y] = [bounds.x + bounds.width / 2, bounds.y + bounds.height / 2 + shift / canvas.scale];
  place();
}

/** Moves a box into the middle, at a size at which it can be read. */
function centre(box) {
  canvas.scale = Math.max(canvas.scale, 0.8);
  [canvas.x, canvas.y] = [box.x + box.width / 2, box.y + box.height / 2];
  place();
}

/** Moves a box into the window if it isn't. */
function into(box) {
  const { width, height } = size();
  const [x, y] = [(box.x + box.width / 2 - canvas.x) * canvas.scale, (box.y + box.height / 2 - canvas.y) * canvas.scale];
  if (Math.abs(x) > width / 2 - 60 || Math.abs(y) > height / 2 - 60) centre(box);
}

function prepareCanvas() {
  const holder = $("canvas");
  const point = (event) => {
    const { left, top } = holder.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  holder.addEventListener("wheel", (event) => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 33 : 1;
    if (event.shiftKey) {
      canvas.x += ((event.deltaX || event.deltaY) * unit) / canvas.scale;
      return place();
    }
    zoom(Math.exp((-event.deltaY * unit) / (event.ctrlKey ? 100 : 500)), point(event));
  }, { passive: false });

  const fingers = new Map();
  let [moved, spread] = [0, 0];
  const distance = () => {
    const [a, b] = [...fingers.values()];
    return Math.hypot(a[0] - b[0], a[1] - b[1]);
  };
  holder.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    fingers.set(event.pointerId, point(event));
    if (fingers.size === 1) moved = 0;
    if (fingers.size === 2) spread = distance();
  });
  holder.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const now = point(event);
    fingers.set(event.pointerId, now);
    moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (moved < 4) return;
    // From here on it is no click.
    holder.setPointerCapture(event.pointerId);
    holder.classList.add("dragging");
    if (fingers.size === 2) {
      const [a, b] = [...fingers.values()];
      zoom(distance() / spread, [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2]);
      spread = distance();
    }
    canvas.x -= (now[0] - before[0]) / canvas.scale / fingers.size;
    canvas.y -= (now[1] - before[1]) / canvas.scale / fingers.size;
    place();
  });
  for (const name of ["pointerup", "pointercancel"]) {
    holder.addEventListener(name, (event) => {
      fingers.delete(event.pointerId);
      holder.classList.remove("dragging");
    });
  }
  holder.addEventListener("click", (event) => {
    if (moved >= 4) return;
    const g = event.target.closest?.("g[data-box], g.edge, text.flow");
    const box = canvas.boxes.get(g?.dataset.box);
    if (box) {
      activate(box, false);
      chooseBox(box);
    } else if (g) {
      const values = g.dataset.values ?? canvas.edges.find(({ from }) => from?.number === g.dataset.from)?.values.join(" ");
      chooseValues((values ?? "").split(" ").filter(Boolean));
    }
  });
  holder.addEventListener("keydown", keys);
  for (const [id, act] of [["zoom-in", () => zoom(1.3)], ["zoom-out", () => zoom(1 / 1.3)], ["zoom-fit", fit], ["zoom-all", overview]]) $(id).onclick = act;
  let seen = 0;
  new ResizeObserver(() => {
    const before = seen;
    seen = holder.clientWidth;
    // It was hidden until now.
    if (before === 0 && seen > 0 && canvas.svg) {
      canvas.bounds = measure(canvas.svg);
      fit();
    } else place();
  }).observe(holder);
  const map = $("map");
  const aim = (event) => {
    const svg = map.firstElementChild;
    if (!svg || !(event.buttons & 1)) return;
    const inside = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    [canvas.x, canvas.y] = [inside.x, inside.y];
    place();
  };
  map.onpointerdown = map.onpointermove = aim;
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { active } = canvas;
  const step = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
  if (step && event.shiftKey) {
    canvas.x += (step[0] * 80) / canvas.scale;
    canvas.y += (step[1] * 80) / canvas.scale;
    place();
  } else if (step && active) {
    const next = step[1] > 0 ? nearest(active, active.to) : step[1] < 0 ? nearest(active, active.from) : beside(active, step[0]);
    if (next) activate(next);
  } else if (event.key === "+" || event.key === "=") zoom(1.3);
  else if (event.key === "-") zoom(1 / 1.3);
  else if (event.key === "0") fit();
  else if ((event.key === "Enter" || event.key === " ") && active) chooseBox(active, true);
  else if (event.key === "Escape" && canvas.steps.length > 0) follow(canvas.steps.slice(0, -1));
  else return;
  event.preventDefault();
}

const middle = (box) => box.x + box.width / 2;

const nearest = (box, boxes) => [...boxes].filter(Boolean).sort((a, b) => Math.abs(middle(a) - middle(box)) - Math.abs(middle(b) - middle(box)))[0];

/** The next box of about the same height. */
function beside(box, direction) {
  const overlaps = (other) => other !== box && other.y < box.y + box.height && box.y < other.y + other.height;
  const far = (other) => (middle(other) - middle(box)) * direction;
  return [...canvas.boxes.values()].filter((other) => overlaps(other) && far(other) > 0).sort((a, b) => far(a) - far(b))[0];
}

/** The names of what was entered; each leads back. */
function showCrumbs() {
  const names = ["graph", ...canvas.names];
  $("crumbs").hidden = names.length < 2;
  const crumb = (name, k) => k === names.length - 1
    ? element("li", {}, element("span", { "aria-current": "page" }, name))
    : element("li", {}, button(name, () => follow(canvas.steps.slice(0, k))));
  $("crumbs").firstElementChild.replaceChildren(...names.map(crumb));
}

/** What the colours mean, of the picture's own legend. */
function showLegend(svg) {
  const frame = svg.querySelector("g.frame");
  const entries = [...(frame?.querySelectorAll(".box") ?? [])].map((g) => [g, g.nextElementSibling?.textContent ?? ""]);
  for (const [g, text] of entries) {
    const rect = drawn("rect", { x: 1, y: 1, width: 12, height: 12, rx: 3 });
    const key = drawn("svg", { width: 14, height: 14, "aria-hidden": "true" }, drawn("g", { class: g.getAttribute("class") }, rect));
    $("legend").append(element("li", {}, key, text));
  }
}

/** A small picture of all boxes, if the window doesn't show them all. */
function showMap() {
  const { x, y, width, height } = canvas.bounds;
  // What is very long is drawn wider.
  const map = drawn("svg", { viewBox: `${x} ${y} ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  for (const { g, ...box } of canvas.boxes.values()) {
    map.append(drawn("g", { class: g.getAttribute("class") }, drawn("rect", { x: box.x, y: box.y, width: box.width, height: box.height })));
  }
  map.append(drawn("rect", { class: "window" }));
  const scale = Math.min(170 / width, 220 / height);
  map.style.width = `${Math.max(48, width * scale)}px`;
  map.style.height = `${Math.max(36, height * scale)}px`;
  $("map").replaceChildren(map);
}

function moveMap() {
  const frame = $("map").querySelector(".window");
  if (!frame) return;
  const { width, height } = size();
  const [w, h] = [width / canvas.scale, height / canvas.scale];
  const { bounds } = canvas;
  const inside = w >= bounds.width && h >= bounds.height;
  $("map").hidden = inside;
  // What is outside of the graph isn't on the map.
  const [left, top] = [Math.max(bounds.x, canvas.x - w / 2), Math.max(bounds.y, canvas.y - h / 2)];
  const [right, bottom] = [Math.min(bounds.x + bounds.width, canvas.x + w / 2), Math.min(bounds.y + bounds.height, canvas.y + h / 2)];
  const shown = { x: left, y: top, width: Math.max(0, right - left), height: Math.max(0, bottom - top) };
  for (const [name, value] of Object.entries(shown)) frame.setAttribute(name, value);
}
