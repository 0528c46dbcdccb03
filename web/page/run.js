// Running the model, and what it gives.

async function run(event) {
  event?.preventDefault();
  const mine = current;
  const files = [];
  const inputs = mine.fields.map(({ input, text, file }, k) => {
    if (!file) return feed(input.name, text.value);
    files.push([`input ${k}`, file]);
    return { file: [input.name, `input ${k}`] };
  }).filter(Boolean);
  for (const { text, fault } of mine.fields) mark(text, fault, null);
  fail($("run-failure"), null);
  $("go").disabled = true;
  $("stop").hidden = false;
  $("time").textContent = "running …";
  const watch = $("watch").checked;
  const answer = await mine.model.ask((model) => ({ run: { model, inputs, watch } }), files);
  $("go").disabled = false;
  $("stop").hidden = true;
  if (mine !== current) return;
  for (const { input, message } of answer.fields ?? []) {
    const field = mine.fields.find((field) => field.input.name === input);
    if (field) mark(field.text, field.fault, message);
  }
  $("time").textContent = answer.error ? "" : `${answer.milliseconds.toFixed(answer.milliseconds < 10 ? 2 : 0)} ms`;
  fail($("run-failure"), answer.fields ? null : answer.error);
  setMarks(answer);
  search();
  if (answer.blamed) $("run-failure").append(button("Show the node", () => goTo(answer.blamed)));
  if (answer.error) {
    $("outputs").replaceChildren();
    document.querySelector("#fields [aria-invalid=true]:not([hidden])")?.focus();
    $("run-failure").scrollIntoView({ block: "nearest" });
    return say(answer.error.message);
  }
  mine.outputs = answer.outputs.map(({ name, value }) => ({ name, tensor: Boolean(value.shape) }));
  showOutputs(answer);
  say(`The run took ${Math.ceil(answer.milliseconds)} ms and gave ${answer.outputs.length} ${answer.outputs.length === 1 ? "output" : "outputs"}${answer.first?.length > 0 ? "; there is NaN" : ""}`);
}

function showOutputs(answer) {
  const parts = answer.outputs.map(({ name, value }, number) => element("section", { class: "output" },
    element("h3", {}, `${name} `, element("code", { class: "type" }, `${value.type ?? ""} ${value.shape ? `[${value.shape.join(", ")}]` : ""}`)),
    element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `Values of ${name}` }, show(value).shown),
    element("p", { class: "buttons" },
      value.shape ? button(".npy", () => saveOne(number, "npy"), { class: "small", "aria-label": `Save ${name} as .npy` }) : "",
      button(".pb", () => saveOne(number, "pb"), { class: "small", "aria-label": `Save ${name} as .pb` })),
  ));
  const first = answer.first ?? [];
  const node = (place) => current.nodes.find((node) => node.place === place);
  const nan = first.length === 0 ? "" : element("div", { class: "failure" }, element("p", {}, "NaN begins at"),
    element("ul", {}, ...first.slice(0, 8).map((place) => element("li", {}, button(`${node(place)?.operator ?? ""} ${node(place)?.name ?? place}`, () => goTo(place), { class: "link" })))));
  $("outputs").replaceChildren(nan, ...parts,
    element("p", { class: "buttons" },
      current.outputs.some(({ tensor }) => tensor) ? button(current.outputs.every(({ tensor }) => tensor) ? "Outputs as .npz" : "Tensors as .npz", saveOutputs, { class: "small" }) : "",
      button("Save as a test case", saveCase, { class: "small", title: "The model with these inputs and outputs, in the layout of ONNX's cases: onnxref test reads the archive" })),
    ...answer.notes.map((note) => element("p", { class: "type" }, note)),
    element("p", { class: "type hash", title: "SHA-256 of the outputs, the same on every machine" }, `onnxref hash: ${answer.hash}`));
}

/** An input or an output of the last run as the bytes of a file. */
async function valueFile(output, number, form) {
  const answer = await current.model.ask((model) => ({ save: { model, output, number, form } }));
  if (answer.error) throw new Error(answer.error.message);
  return answer.file;
}

/** A name that is safe for a file. */
const fileName = (name) => name.replace(/[^\w.-]+/g, "_").slice(0, 100) || "value";

/** Shows why something can't be saved. */
const orFail = (save) => async (...given) => {
  try {
    await save(...given);
  } catch (error) {
    fail($("run-failure"), { message: error.message });
  }
};

const saveOne = orFail(async (number, form) => download(`${fileName(current.outputs[number].name)}.${form}`, await valueFile(true, number, form)));

const saveOutputs = orFail(async () => {
  const files = [];
  for (const [number, { name, tensor }] of current.outputs.entries()) if (tensor) files.push([`${escaped(name)}.npy`, await valueFile(true, number, "npy")]);
  download("outputs.npz", zip(files));
});

const saveCase = orFail(async () => {
  const { fields, outputs, name } = current;
  const folder = fileName(stem(name)) || "case";
  const files = [];
  for (const [own, bytes] of await current.content()) files.push([`${folder}/${own}`, bytes]);
  const fed = fields.map(({ input, text, file }, k) => ({ k, name: input.name, given: file || text.value.trim() })).filter(({ given }) => given);
  for (const [number, { k }] of fed.entries()) files.push([`${folder}/test_data_set_0/input_${k}.pb`, await valueFile(false, number, "pb")]);
  for (const number of outputs.keys()) files.push([`${folder}/test_data_set_0/output_${number}.pb`, await valueFile(true, number, "pb")]);
  download(`${folder}.zip`, zip(files));
});
