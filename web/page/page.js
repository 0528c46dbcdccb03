// The page. Texts from models are only ever set as textContent.
"use strict";

const $ = (id) => document.getElementById(id);

/** An element with attributes and children; texts become text nodes. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

// --- The engine: a worker, so that a long run can be stopped and doesn't freeze the page.

const engine = {
  worker: null,
  /** Increases with each worker: models are loaded again after a stop. */
  generation: 0,
  waiting: new Map(),
  last: 0,

  async start() {
    this.wasm ??= unpack($("wasm").textContent);
    const wasm = await this.wasm;
    if (this.worker) return;
    const script = new Blob([$("engine").textContent], { type: "text/javascript" });
    this.worker = new Worker(URL.createObjectURL(script));
    this.generation += 1;
    this.worker.onmessage = ({ data: { id, answer, milliseconds, crash } }) => {
      const { resolve, reject } = this.waiting.get(id) ?? {};
      this.waiting.delete(id);
      if (crash !== undefined) {
        reject?.(new Error(crash));
        this.stop("the engine stopped");
      } else {
        resolve?.({ ...answer, milliseconds });
      }
    };
    this.worker.onerror = (event) => this.stop(event.message || "the engine doesn't start");
    this.worker.postMessage({ wasm });
  },

  async ask(request, data) {
    await this.start();
    return new Promise((resolve, reject) => {
      const id = (this.last += 1);
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, request, data }, data ? [data.buffer] : []);
    });
  },

  stop(why) {
    this.worker?.terminate();
    this.worker = null;
    for (const { reject } of this.waiting.values()) reject(new Error(why));
    this.waiting.clear();
  },
};

/** Base64 of gzip to bytes. */
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A model that is loaded when it is first used, and again after a stop. */
class Model {
  constructor(load) {
    this.load = load;
  }

  async open() {
    await engine.start();
    if (this.generation !== engine.generation) {
      this.generation = engine.generation;
      this.answer = this.load();
    }
    return this.answer;
  }

  /** `request` gets the number of the model. An error is an answer with `error`. */
  async ask(request) {
    try {
      const { model, error } = await this.open();
      return error ? { error } : await engine.ask(request(model));
    } catch (error) {
      return { error: { message: error.message, causes: [] } };
    }
  }

  async close() {
    if (this.generation !== engine.generation) return;
    const { model } = await this.answer.catch(() => ({}));
    if (model) engine.ask({ unload: { model } }).catch(() => {});
  }
}

// --- Values

/** A tensor as matrices of cells; another value as text. Returns the element and its cells in order. */
function show(value) {
  const { shape, values, text } = value;
  if (!values) return { shown: text !== undefined ? element("span", {}, text) : composite(value), cells: [] };
  if (values.length === 0) return { shown: element("span", { class: "type" }, "no elements"), cells: [] };
  const [rows, columns] = [shape.at(-2) ?? 1, shape.at(-1) ?? 1];
  const cells = values.map((text) => element("td", { class: "cell" }, text));
  const matrices = element("div", { class: "matrices" });
  for (let at = 0; at < cells.length; at += rows * columns) {
    const table = element("table");
    if (shape.length > 2) table.append(element("caption", {}, `[${lead(shape.slice(0, -2), at / (rows * columns))}, :, :]`));
    for (let row = 0; row < rows; row += 1) {
      const from = at + row * columns;
      table.append(element("tr", {}, ...cells.slice(from, from + columns)));
    }
    matrices.append(table);
  }
  return { shown: matrices, cells };
}

/** The position of the k-th entry of a shape. */
function lead(shape, k) {
  const position = [];
  for (const size of [...shape].reverse()) {
    position.unshift(k % size);
    k = Math.floor(k / size);
  }
  return position.join(", ");
}

function composite({ sequence, optional, map, keys }) {
  if (optional !== undefined) return optional ? show(optional).shown : element("span", {}, "none");
  const entry = (key, value) => element("tr", {}, element("td", {}, key), element("td", {}, show(value).shown));
  return element("table", {}, ...(sequence ?? map ?? []).map((value, k) => entry(keys?.[k] ?? String(k), value)));
}

function list(columns, rows) {
  const cell = (name) => (child) => element(name, {}, child);
  return element(
    "table",
    { class: "list" },
    element("thead", {}, element("tr", {}, ...columns.map(cell("th")))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell("td"))))),
  );
}

/** Shows an error, or hides it if there is none. `accept` loads with a departure from the standard allowed. */
function fail(place, error, allow = [], accept = null) {
  place.replaceChildren();
  place.hidden = !error;
  if (!error) return;
  const causes = error.causes ?? [];
  // The message of several faults begins with the gravest, which is in the list too.
  const several = causes.length > 1 && causes.some(({ message }) => error.message.startsWith(`${message}\n`));
  place.append(element("p", {}, several ? `${error.faults} faults` : error.message));
  if (error.needs) {
    const row = ({ domain, operator, version, nodes, reason, first }) => [
      `${domain ? `${domain}::` : ""}${operator}${version === null ? "" : `-${version}`}`, String(nodes),
      first.node ?? `#${first.node_index}`, reason,
    ];
    place.append(list(["operator", "nodes", "first node", "why it can't run"], error.needs.missing.map(row)));
  }
  const others = causes.filter((cause) => cause.message !== error.message && !(error.needs && cause.kind === "unsupported"));
  if (others.length > 0) place.append(element("ul", {}, ...others.map((cause) => element("li", {}, cause.message))));
  if (causes.length > 0 && error.faults > causes.length) place.append(element("p", {}, `${error.faults} faults in all`));
  if (accept && allow.length > 0) {
    const text = `Accept ${allow.map((name) => name.replaceAll("_", " ")).join(", ")}`;
    place.append(element("button", { type: "button", onclick: () => accept(allow) }, text));
  }
}

/** Marks a field as wrong, or as right if there is no message. */
function mark(field, place, message) {
  field.setAttribute("aria-invalid", String(Boolean(message)));
  place.textContent = message ?? "";
  place.hidden = !message;
}

// --- The model

let current = null;

/** Loads the model among files. This is what drag and drop and the file picker call. */
async function open(files, allow = []) {
  files = [...files];
  const main = files.find((file) => /\.(onnx|xml)$/i.test(file.name)) ?? files[0];
  if (!main) return;
  $("status").textContent = `Loading ${main.name} …`;
  current?.model.close();
  const bytes = async (file) => new Uint8Array(await file.arrayBuffer());
  const model = new Model(async () => {
    for (const file of files.filter((file) => file !== main)) {
      await engine.ask({ file: { name: file.name } }, await bytes(file));
    }
    return engine.ask({ load: { allow } }, await bytes(main));
  });
  const mine = (current = { model, fields: [] });
  let answer;
  try {
    answer = await model.open();
  } catch (error) {
    answer = { error: { message: error.message, causes: [] } };
  }
  if (mine !== current) return;
  $("status").textContent = "";
  $("model").hidden = false;
  $("model-name").textContent = main.name;
  fail($("failure"), answer.error, answer.allow, (more) => open(files, [...allow, ...more]));
  describe(answer.description, Boolean(answer.model));
  $("model-name").focus();
  $("model").scrollIntoView();
}

function describe(description, runs) {
  const { inputs = [], tables = [], notes = [], picture } = description ?? {};
  $("notes").replaceChildren(...notes.map((note) => element("li", {}, note)));
  $("tables").replaceChildren(
    ...tables.filter(({ rows }) => rows.length > 0).map(({ title, columns, rows, more }) => {
      const summary = element("summary", {}, `${title} `, element("span", {}, String(rows.length + more)));
      const body = element("div", { class: "scroll" }, list(columns, rows));
      if (more > 0) body.append(element("p", {}, `and ${more} more`));
      const wide = columns.length > 3 || rows.length > 12;
      return element("details", { open: rows.length <= 20, class: wide ? "wide" : "" }, summary, body);
    }),
  );
  showPicture(picture);
  $("run").hidden = !runs;
  $("outputs").replaceChildren();
  $("time").textContent = "";
  fail($("run-failure"), null);
  makeFields(inputs);
}

/** A field for each input, and one for each symbol of their shapes. */
function makeFields(inputs) {
  current.fields = inputs.map((input, k) => {
    const fault = element("p", { class: "fault", id: `fault-${k}`, hidden: true });
    const text = element("textarea", {
      id: `input-${k}`, spellcheck: "false", autocomplete: "off", "aria-describedby": `fault-${k}`,
      placeholder: input.default ? "default" : input.tensor ? "[[1, 2], [3, 4]]" : "[[1, 2], [3]]",
    });
    const label = element(
      "label", { for: `input-${k}` }, input.label, " ", element("code", { class: "type" }, `${input.type} ${input.shape}`),
    );
    const random = element("button", { type: "button", class: "small", "aria-label": `Random values for ${input.label}`, onclick: () => randomize(field) }, "Random");
    const field = { input, text, fault, holder: element("div", {}, label, text, fault, input.tensor ? random : "") };
    return field;
  });
  $("fields").replaceChildren(...current.fields.map((field) => field.holder));
  const symbols = new Set(inputs.flatMap(({ sizes }) => (sizes ?? []).filter((size) => typeof size === "string")));
  const number = (name, id, value, least) =>
    element("label", {}, name, element("input", { type: "number", id, value, min: least, step: "1" }));
  const names = [...symbols];
  const integers = inputs.some(({ type }) => /^u?int/.test(type));
  current.symbols = new Map(names.map((name, k) => [name, `symbol-${k}`]));
  $("randomness").replaceChildren(
    element("legend", {}, "Random values"),
    ...names.map((name, k) => number(`${name} =`, `symbol-${k}`, "2", "0")),
    ...(integers ? [number("integers from", "low", "0", "-2147483648"), number("to", "high", "1", "-2147483648")] : []),
  );
  const free = current.fields.filter(({ input }) => input.tensor);
  $("randomness").hidden = names.length === 0 && !integers;
  $("randomize").hidden = free.length === 0;
  for (const field of free) if (!field.input.default) randomize(field);
}

const whole = (id, otherwise) => {
  const value = Number.parseInt($(id)?.value, 10);
  return Number.isNaN(value) ? otherwise : value;
};

/** Longer random tensors are a text such as `random [1, 3, 224, 224] seed 5`. */
const MAX_TYPED = 512;
const RANDOM = /^\s*random\s*\[([\d\s,]*)\]\s*(?:seed\s*(\d+))?\s*$/;

function randomSpec(shape, seed) {
  return { shape, seed, low: whole("low", 0), high: whole("high", 1) };
}

async function randomize(field) {
  const { input, text, fault } = field;
  const shape = (input.sizes ?? [2]).map((size) =>
    typeof size === "number" ? size : size === null ? 2 : Math.max(0, whole(current.symbols.get(size), 2)));
  const seed = Math.floor(Math.random() * 1e6);
  mark(text, fault, null);
  if (shape.reduce((product, size) => product * size, 1) > MAX_TYPED) {
    text.value = `random [${shape.join(", ")}] seed ${seed}`;
    return;
  }
  const random = randomSpec(shape, seed);
  const answer = await current.model.ask((model) => ({ random: { model, input: input.name, random } }));
  if (answer.error) mark(text, fault, answer.error.message);
  else text.value = answer.text;
}

/** The value of a field as a request has it; null if it is empty. */
function feed(name, text) {
  const random = RANDOM.exec(text);
  if (random) {
    const shape = random[1].split(",").filter((size) => size.trim()).map(Number);
    return { random: [name, randomSpec(shape, Number(random[2] ?? 0) >>> 0)] };
  }
  return text.trim() ? { literal: [name, text] } : null;
}

async function run(event) {
  event.preventDefault();
  const mine = current;
  const inputs = mine.fields.map(({ input, text }) => feed(input.name, text.value)).filter(Boolean);
  for (const { text, fault } of mine.fields) mark(text, fault, null);
  fail($("run-failure"), null);
  $("go").disabled = true;
  $("stop").hidden = false;
  $("time").textContent = "running …";
  const answer = await mine.model.ask((model) => ({ run: { model, inputs } }));
  $("go").disabled = false;
  $("stop").hidden = true;
  if (mine !== current) return;
  for (const { input, message } of answer.fields ?? []) {
    const field = mine.fields.find((field) => field.input.name === input);
    if (field) mark(field.text, field.fault, message);
  }
  $("time").textContent = answer.error ? "" : `${answer.milliseconds.toFixed(answer.milliseconds < 10 ? 2 : 0)} ms`;
  fail($("run-failure"), answer.fields ? null : answer.error);
  if (answer.error) {
    $("outputs").replaceChildren();
    document.querySelector("#fields [aria-invalid=true]")?.focus();
    return;
  }
  const rows = answer.outputs.map(({ name, value }) =>
    [name, value.type ?? "", value.shape ? `[${value.shape.join(", ")}]` : "", show(value).shown]);
  $("outputs").replaceChildren(list(["output", "type", "shape", "values"], rows),
    ...answer.notes.map((note) => element("p", { class: "type" }, note)),
    element("p", { class: "type", title: "SHA-256 of the outputs, the same on every machine" }, `onnxref hash: ${answer.hash}`));
}

// --- The picture

let zoom = 1;
let natural = [0, 0];

/** Shows an SVG made by the engine, which escapes names. The policy of the page lets no script in it run. */
function showPicture(text) {
  $("picture").hidden = !text;
  $("canvas").replaceChildren();
  if (!text) return;
  const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (svg.localName !== "svg" || svg.querySelector("parsererror")) {
    $("picture").hidden = true;
    return;
  }
  $("canvas").append(document.importNode(svg, true));
  const box = svg.viewBox?.baseVal;
  natural = box?.width ? [box.width, box.height] : [Number.parseFloat(svg.getAttribute("width")) || 800, Number.parseFloat(svg.getAttribute("height")) || 600];
  fit();
}

function setZoom(to) {
  const canvas = $("canvas");
  const svg = canvas.firstElementChild;
  if (!svg) return;
  const middle = [(canvas.scrollLeft + canvas.clientWidth / 2) / zoom, (canvas.scrollTop + canvas.clientHeight / 2) / zoom];
  zoom = Math.min(8, Math.max(0.02, to));
  svg.style.width = `${natural[0] * zoom}px`;
  svg.style.height = `${natural[1] * zoom}px`;
  canvas.scrollTo(middle[0] * zoom - canvas.clientWidth / 2, middle[1] * zoom - canvas.clientHeight / 2);
}

/** The whole width, at most at natural size, at least legible. */
function fit() {
  setZoom(Math.max(0.25, Math.min(1, ($("canvas").clientWidth - 4) / natural[0])));
  $("canvas").scrollTo(Math.max(0, ($("canvas").scrollWidth - $("canvas").clientWidth) / 2), 0);
}

function preparePicture() {
  const canvas = $("canvas");
  $("zoom-in").onclick = () => setZoom(zoom * 1.25);
  $("zoom-out").onclick = () => setZoom(zoom / 1.25);
  $("zoom-fit").onclick = fit;
  canvas.onkeydown = (event) => {
    if (event.key === "+" || event.key === "=") setZoom(zoom * 1.25);
    else if (event.key === "-") setZoom(zoom / 1.25);
    else if (event.key === "0") fit();
  };
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    setZoom(zoom * Math.exp(-event.deltaY / 300));
  }, { passive: false });
  canvas.onpointerdown = (event) => {
    if (event.pointerType === "touch" || event.button !== 0) return;
    const from = [event.clientX + canvas.scrollLeft, event.clientY + canvas.scrollTop];
    canvas.classList.add("dragging");
    canvas.setPointerCapture(event.pointerId);
    canvas.onpointermove = (move) => canvas.scrollTo(from[0] - move.clientX, from[1] - move.clientY);
  };
  canvas.onpointerup = canvas.onpointercancel = () => {
    canvas.classList.remove("dragging");
    canvas.onpointermove = null;
  };
}

// --- The examples

let example = null;

async function prepareExamples() {
  const { examples } = await engine.ask("examples");
  const groups = new Map();
  examples.forEach((each, number) => {
    each.model = new Model(() => engine.ask({ example: { number } }));
    const radio = element("input", { type: "radio", name: "case", value: String(number), onchange: () => choose(each) });
    if (!groups.has(each.operator)) groups.set(each.operator, element("div", {}, element("b", {}, each.operator)));
    groups.get(each.operator).append(element("label", {}, radio, short(each.case)));
  });
  $("cases").append(...groups.values());
  document.querySelector("#cases input").checked = true;
  await choose(examples[0]);
}

/** `test_gather_2d_indices` as `2d indices`. */
const short = (name) => name.replace(/^test_(gathernd_example|gather_elements|gather)_/, "").replaceAll("_", " ").replace(/^(\d)$/, "case $1");

function choose(chosen) {
  example = chosen;
  $("formula").textContent = chosen.formula;
  $("attributes").textContent = `${chosen.attributes} · ${chosen.case}`;
  for (const [name, literal] of chosen.inputs) $(name).value = literal;
  return runExample();
}

let typed = 0;

async function runExample() {
  const mine = (typed += 1);
  const { model } = example;
  const [data, indices] = ["data", "indices"].map((name) => $(name).value);
  const ask = (data) =>
    model.ask((model) => ({ run: { model, inputs: [feed("data", data), feed("indices", indices)].filter(Boolean) } }));
  const answer = await ask(data);
  // Data that are their own positions show where each entry of the output comes from.
  const shape = answer.inputs?.find(({ name }) => name === "data").value.shape;
  const origins = shape ? (await ask(positions(shape)))?.outputs?.[0].value.values : null;
  if (mine !== typed) return;
  for (const name of ["data", "indices"]) {
    const fault = (answer.fields ?? []).find(({ input }) => input === name);
    mark($(name), $(`${name}-fault`), fault?.message ?? null);
  }
  fail($("example-failure"), answer.fields ? null : answer.error);
  $("example-grids").replaceChildren();
  if (answer.error) return;
  const shown = [...answer.inputs, ...answer.outputs].map(({ name, value }) => ({ name, value, ...show(value) }));
  for (const { name, value, shown: grid } of shown) {
    const head = element("h4", {}, `${name} `, element("code", { class: "type" }, `${value.type} [${value.shape.join(", ")}]`));
    $("example-grids").append(element("div", {}, head, grid));
  }
  link(shown[0].cells, shown.at(-1).cells, origins);
}

/** The literal of a tensor whose elements are 0, 1, 2, .. */
function positions(shape) {
  let next = 0;
  const fill = (depth) => (depth === shape.length ? (next += 1) - 1 : Array.from({ length: shape[depth] }, () => fill(depth + 1)));
  return JSON.stringify(fill(0));
}

/** Lights each entry of the output together with the entry of the data that it comes from. */
function link(sources, entries, origins) {
  if (!origins) return;
  const light = (cells, on) => cells.forEach((cell) => cell.classList.toggle("lit", on));
  const pairs = entries.map((entry, k) => [entry, sources[Number(origins[k])]]).filter(([, source]) => source);
  for (const [entry, source] of pairs) {
    entry.tabIndex = 0;
    for (const cell of [entry, source]) {
      const together = pairs.filter((pair) => pair.includes(cell)).flat();
      cell.onpointerenter = cell.onfocus = () => light(together, true);
      cell.onpointerleave = cell.onblur = () => light(together, false);
    }
  }
}

// --- Start

function start() {
  $("files").onchange = (event) => open(event.target.files);
  // The whole page takes files.
  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, (event) => {
      event.preventDefault();
      $("drop").classList.add("over");
    });
  }
  for (const name of ["dragleave", "drop"]) document.addEventListener(name, () => $("drop").classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    open(event.dataTransfer.files);
  });
  $("run").onsubmit = run;
  $("stop").onclick = () => engine.stop("stopped");
  $("randomize").onclick = () => current.fields.filter(({ input }) => input.tensor).forEach(randomize);
  $("wrong").onclick = () => {
    $("indices").value = example.wrong;
    runExample();
  };
  $("reset").onclick = () => choose(example);
  for (const name of ["data", "indices"]) $(name).oninput = runExample;
  preparePicture();
  prepareExamples().catch((error) => fail($("example-failure"), { message: error.message }));
}

start();
