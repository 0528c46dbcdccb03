// What a run says about the graph: ranges below boxes, colours for NaN and for the node that failed.

/** What the values of the last run were like, by place; the nodes at which NaN begins; the node that failed. */
const marks = { seen: {}, first: [], blamed: null };

function clearMarks() {
  setMarks({});
}

function setMarks({ seen, first, blamed }) {
  Object.assign(marks, { seen: seen ?? {}, first: first ?? [], blamed: blamed ?? null });
  showMarks();
}

/** Maximum number of values that have a line each below the box that they leave. */
const MAX_LINES = 3;

/** The end of a name, which tells more than its beginning. */
const tail = (name) => (name.length > 24 ? `…${name.slice(-23)}` : name);

/** Writes them into the picture. */
function showMarks() {
  if (!canvas.svg) return;
  canvas.svg.querySelectorAll(".mark").forEach((mark) => mark.remove());
  for (const flow of canvas.svg.querySelectorAll("text.flow[data-declared]")) flow.textContent = flow.dataset.declared;
  for (const { from, values } of canvas.edges) {
    const known = values.map((place) => marks.seen[place]).filter(Boolean);
    if (from && known.length > 0) below(from, values, known);
  }
  const flows = new Map();
  for (const { dataset, textContent } of canvas.svg.querySelectorAll("text.flow")) {
    flows.set(dataset.from, [...flows.get(dataset.from) ?? [], textContent]);
  }
  for (const { g, number, label } of canvas.boxes.values()) {
    const said = flows.get(number) ?? [];
    g.setAttribute("aria-label", [label, ...(said.length > 0 ? [`gives ${said.join(", ")}`] : [])].join("; "));
  }
  const leaving = new Map(canvas.edges.map(({ from, values }) => [from, values]));
  const own = (box) => box.group ?? (box.node === null ? [] : [box.node]);
  for (const box of canvas.boxes.values()) {
    const nan = [...leaving.get(box) ?? [], ...box.values].some((place) => marks.seen[place]?.nan);
    box.g.classList.toggle("nan", nan);
    box.g.classList.toggle("first", own(box).some((node) => marks.first.includes(node)));
    box.g.classList.toggle("blamed", own(box).includes(marks.blamed));
    box.g.classList.toggle("faulty", own(box).some((node) => current.faulty.has(node)));
  }
  const legend = [["first", "NaN begins here"], ["nan", "has NaN"], ["blamed", "the run failed here"], ["faulty", "departs from the standard"]];
  $("marks").replaceChildren(...legend.filter(([name]) => canvas.svg.querySelector(`.box.${name}`)).map(([name, text]) =>
    element("li", {}, element("span", { class: `key ${name}`, "aria-hidden": "true" }), text)));
}

/** The shape and the range of what leaves a box. */
function below(box, values, known) {
  const flow = canvas.svg.querySelector(`text.flow[data-from="${box.number}"]`);
  const [x, y] = flow ? ["x", "y"].map((name) => Number(flow.getAttribute(name))) : [middle(box) + 5, box.y + box.height + 12];
  const only = known.length === 1 && values.length === 1 ? known[0] : null;
  const nan = known.reduce((sum, { statistics }) => sum + (statistics?.nan ?? 0), 0);
  const lines = [];
  if (only) {
    const shape = only.shape ? `[${only.shape.join(", ")}]` : "";
    if (flow) {
      flow.dataset.declared ??= flow.textContent;
      if (shape) flow.textContent = shape;
    } else if (shape) lines.push([shape, ""]);
    const text = range(only);
    if (text) lines.push([text, nan > 0 ? "bad" : ""]);
  } else if (values.length <= MAX_LINES) {
    for (const value of known) lines.push([`${tail(value.name)}: ${range(value)}`, value.nan ? "bad" : ""]);
  } else {
    lines.push([`${known.length} values${nan > 0 ? `, ${nan.toLocaleString("en")} NaN` : ""}`, nan > 0 ? "bad" : ""]);
  }
  lines.forEach(([text, style], k) => {
    const at = y + (flow ? 11.5 : 0) + k * 11.5;
    canvas.svg.querySelector("g.graph").append(drawn("text", { class: `flow mark ${style}`, "data-from": box.number, x, y: at }, text));
  });
}

/** The picture as a file of its own. */
function svgFile() {
  const copy = canvas.svg.cloneNode(true);
  for (const [name, value] of canvas.natural) copy.setAttribute(name, value);
  copy.querySelectorAll(".grip").forEach((grip) => grip.remove());
  copy.querySelectorAll("[data-box]").forEach((g) => ["id", "role", "tabindex", "aria-label"].forEach((name) => g.removeAttribute(name)));
  copy.querySelectorAll(".chosen, .hit").forEach((g) => g.classList.remove("chosen", "hit"));
  copy.append(drawn("style", {}, ".flow.bad { fill: #c0392b; } .box.nan rect, .box.blamed rect, .box.faulty rect { stroke: #c0392b; stroke-width: 2; } .box.first rect, .box.blamed rect { fill: #fbd0d0; }"));
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}`;
}
