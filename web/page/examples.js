// The standard's examples of the Gather operators. They run as somebody types.

let example = null;
let examples = [];

async function prepareExamples() {
  ({ examples } = await engine.ask("examples"));
  const groups = new Map();
  examples.forEach((each, number) => {
    each.number = number;
    const radio = element("input", { type: "radio", name: "case", value: String(number), onchange: () => visit(each) });
    each.radio = radio;
    if (!groups.has(each.operator)) groups.set(each.operator, element("div", {}, element("b", {}, each.operator)));
    groups.get(each.operator).append(element("label", {}, radio, short(each.case)));
  });
  $("cases").append(...groups.values());
  await restore();
}

/** `test_gather_2d_indices` as `2d indices`. */
const short = (name) => name.replace(/^test_(gathernd_example|gather_elements|gather)_/, "").replaceAll("_", " ").replace(/^(\d)$/, "case $1");

/** Shows what the address names: an example, or a model that was opened before. */
async function restore() {
  const [, kind, value] = /^#(example|model)=(.*)$/.exec(location.hash) ?? [];
  if (kind === "model" && opened[value]) return open(opened[value]);
  const named = kind === "example" ? examples.find((each) => each.case === decodeURIComponent(value)) : null;
  if (kind && !named) say("There is no such example or model");
  await choose(named ?? examples[0]);
}

/** Goes to an example, so that the address names it. */
function visit(chosen) {
  history.pushState(null, "", `#example=${chosen.case}`);
  return choose(chosen);
}

async function choose(chosen) {
  example = chosen;
  chosen.radio.checked = true;
  $("formula").textContent = chosen.formula;
  $("attributes").textContent = `${chosen.attributes} · ${chosen.case}`;
  for (const [name, literal] of chosen.inputs) $(name).value = literal;
  const model = new Model(() => engine.ask({ example: { number: chosen.number } }));
  const content = async () => [["model.onnx", (await model.open()).file]];
  const mine = await enter(model, `${chosen.operator}: ${short(chosen.case)}`, content, null);
  if (!mine) return;
  reveal("examples");
  await runExample();
}

let typed = 0;

async function runExample() {
  const mine = (typed += 1);
  const { model, fields } = current;
  const [data, indices] = ["data", "indices"].map((name) => $(name).value);
  // The tab Run has the same inputs.
  for (const { input, text } of fields) text.value = $(input.name)?.value ?? text.value;
  const ask = (data, watch) =>
    model.ask((model) => ({ run: { model, inputs: [feed("data", data), feed("indices", indices)].filter(Boolean), watch } }));
  // Data that are their own positions show where each entry of the output comes from. The last run is what can be saved.
  const probe = await ask(data, false);
  const shape = probe.inputs?.find(({ name }) => name === "data").value.shape;
  const origins = shape ? (await ask(positions(shape), false))?.outputs?.[0].value.values : null;
  const answer = await ask(data, true);
  if (mine !== typed || model !== current.model) return;
  for (const name of ["data", "indices"]) {
    const fault = (answer.fields ?? []).find(({ input }) => input === name);
    mark($(name), $(`${name}-fault`), fault?.message ?? null);
  }
  fail($("example-failure"), answer.fields ? null : answer.error);
  $("example-grids").replaceChildren();
  setMarks(answer);
  if (answer.error) return say(answer.error.message);
  const shown = [...answer.inputs, ...answer.outputs].map(({ name, value }) => ({ name, value, ...show(value) }));
  for (const { name, value, shown: grid } of shown) {
    const head = element("h3", {}, `${name} `, element("code", { class: "type" }, `${value.type} [${value.shape.join(", ")}]`));
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
