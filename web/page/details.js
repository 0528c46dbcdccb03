// The panel with all about a node or a value.

/** What the panel shows: `{ node }` or `{ value }`, by place. */
let chosen = {};

/** Attributes that are defaults are hidden, unless somebody asks. */
let defaults = false;

/** Shows the part of the graph that steps lead to, or with `show` the part in which a node has a box of its own. */
async function follow(steps, show = null) {
  const mine = current;
  const answer = await mine.model.ask((model) => ({ draw: { model, steps, computed: $("computed").checked, unfolded: !$("folded").checked, show } }));
  if (mine !== current) return;
  if (answer.error) return say(answer.error.message);
  showGraph(answer);
  mine.steps = answer.steps;
  if (steps !== canvas.steps || show) say(canvas.names.length > 0 ? `In ${canvas.names.at(-1)}` : "The whole graph");
  highlight();
}

function chooseBox(box, focus = false) {
  if (box.group) follow([...canvas.steps, { group: Number(box.number.split(".").at(-1)) }]).then(() => canvas.active && activate(canvas.active));
  else if (box.node !== null) chooseNode(box.node, focus);
  else chooseValues(box.values, focus);
}

function chooseValues(places, focus = false) {
  if (places.length > 0) chooseValue(places[0], focus, places);
}

/** Marks the box of what is shown. */
function highlight() {
  for (const { g, node, values } of canvas.boxes.values()) {
    g.classList.toggle("chosen", (chosen.node ?? null) !== null && node === chosen.node || values.includes(chosen.value));
  }
  for (const { g, values } of canvas.edges) g.classList.toggle("chosen", values.includes(chosen.value));
}

/** Goes to a node's box, and shows all about it. */
async function goTo(place) {
  const own = () => [...canvas.boxes.values()].find(({ node }) => node === place);
  if (!own()) await follow([], place);
  await chooseNode(place, isNarrow());
  const box = own() ?? [...canvas.boxes.values()].find(({ group }) => group?.includes(place));
  if (!box) return;
  activate(box, false);
  centre(box);
}

async function chooseNode(place, focus = false) {
  const mine = current;
  const answer = await mine.model.ask((model) => ({ node: { model, place } }));
  if (mine !== current) return;
  if (answer.error) return say(answer.error.message);
  chosen = { node: place };
  highlight();
  const { operator, name, index, fate, macs, findings, about, bodies } = answer;
  const facts = [["node", `#${index}`], ["", fate], ["in function", answer.function], ["multiply-adds", macs]];
  $("details").replaceChildren(
    heading(operator, name || "without a name"),
    element("p", { class: "lead" }, about?.sentence ?? "Not an operator of the standard.", " ",
      about ? element("a", { href: about.link, target: "_blank", rel: "noopener noreferrer" }, "The standard's text") : ""),
    findings.length > 0 ? element("ul", { class: "failure" }, ...findings.map((text) => element("li", {}, text))) : "",
    element("p", { class: "type" }, facts.filter(([, value]) => value).map(([key, value]) => `${key} ${value}`.trim()).join(" · ")),
    attributesOf(answer.attributes),
    ...bodies.map(({ name, nodes, step }) => element("p", {}, button(`Open ${name}: ${nodes} ${nodes === 1 ? "node" : "nodes"}`, () => openBody(place, step)))),
    valuesOf("Inputs", answer.inputs),
    valuesOf("Outputs", answer.outputs),
    about ? differencesOf(about) : "",
  );
  reveal("details", focus);
  say(`${operator} ${name}`);
}

function heading(title, name) {
  return element("header", {}, element("h2", { id: "details-name", tabindex: "-1" }, title), name ? element("p", { class: "type" }, name) : "");
}

/** Opens a subgraph of a node: the steps of the node's own graph come before. */
function openBody(place, [node, body]) {
  const steps = [];
  const numbers = place.split(".").map(Number);
  for (let k = 0; k + 1 < numbers.length; k += 2) steps.push({ body: [numbers[k], numbers[k + 1]] });
  if (isNarrow()) {
    // There is no graph: the list of its nodes stands for it.
    const prefix = [...place.split(".").slice(0, -1), node, body, ""].join(".");
    listNodes(current.nodes.filter((node) => node.place.startsWith(prefix)));
    return reveal("nodes");
  }
  return follow([...steps, { body: [node, body] }]);
}

function attributesOf(attributes) {
  if (attributes.length === 0) return "";
  const hidden = attributes.filter((attribute) => attribute.default).length;
  const rows = attributes.filter((attribute) => defaults || !attribute.default).map(({ name, text, default: same }) =>
    element("div", { class: same ? "soft" : false }, element("dt", {}, name), element("dd", {}, text)));
  const turn = element("input", { type: "checkbox", id: "show-defaults", onchange: ({ target }) => {
    defaults = target.checked;
    chooseNode(chosen.node).then(() => $("show-defaults")?.focus());
  } });
  turn.checked = defaults;
  return element("section", {}, element("h3", {}, "Attributes"), element("dl", { class: "pairs" }, ...rows),
    hidden > 0 ? element("label", { class: "switch" }, turn, `Show ${hidden} with default values`) : "");
}

/** The values that a node reads or gives. */
function valuesOf(title, values) {
  if (values.length === 0) return "";
  const row = ({ parameter, place, name, type, shape, constant }) => {
    if (!place) return element("li", {}, element("span", { class: "parameter" }, parameter), element("span", { class: "type" }, "omitted"));
    const seen = marks.seen[place];
    return element("li", {}, element("span", { class: "parameter" }, parameter),
      button(name, () => chooseValue(place), { class: "link" }),
      element("code", { class: "type" }, ` ${type} ${seen?.shape ? `[${seen.shape.join(", ")}]` : shape}${constant ? " · constant" : ""}`),
      seen?.statistics ? element("span", { class: seen.nan ? "range bad" : "range" }, range(seen)) : "");
  };
  return element("section", {}, element("h3", {}, title), element("ul", { class: "values" }, ...values.map(row)));
}

function differencesOf({ differences, engines }) {
  const parts = [];
  if (engines.length > 0) {
    const cells = engines.map(([name, text]) => element("div", {}, element("dt", {}, name), element("dd", {}, text)));
    parts.push(element("h3", {}, "Official cases that engines pass"), element("dl", { class: "facts" }, ...cells));
  }
  if (differences.length > 0) parts.push(element("h3", {}, "Where engines differ"));
  for (const { versions, text, onnxruntime, reference, onnxref } of differences) {
    const said = [["onnxruntime", onnxruntime], ["reference", reference], ["onnxref", onnxref]].filter(([, what]) => what);
    parts.push(element("div", { class: "difference" }, element("p", {}, coded(`${versions === "all" ? "all versions" : `versions ${versions}`}: ${text}`)),
      element("dl", { class: "pairs" }, ...said.map(([name, what]) => element("div", {}, element("dt", {}, name), element("dd", {}, coded(what)))))));
  }
  return parts.length > 0 ? element("section", {}, ...parts) : "";
}

/** Saves a constant. */
function saveButtons(place, name) {
  const fault = element("p", { class: "fault", role: "alert", hidden: true });
  const save = (form) => button(`.${form}`, async () => {
    const { error, file } = await current.model.ask((model) => ({ constant: { model, place, form } }));
    fault.textContent = error?.message ?? "";
    fault.hidden = !error;
    if (!error) download(`${fileName(name)}.${form}`, file);
  }, { class: "small", "aria-label": `Save ${name} as .${form}` });
  return element("div", {}, element("p", { class: "buttons" }, save("npy"), save("pb")), fault);
}

async function chooseValue(place, focus = false, others = []) {
  const mine = current;
  const answer = await mine.model.ask((model) => ({ value: { model, place } }));
  if (mine !== current) return;
  if (answer.error) return say(answer.error.message);
  const beside = others.filter((other) => other !== place).slice(0, 12);
  const names = await Promise.all(beside.map(async (other) => (await mine.model.ask((model) => ({ value: { model, place: other } }))).name ?? other));
  chosen = { value: place };
  highlight();
  const { name, type, shape, bytes, origin, from, readers, leaves, numbers } = answer;
  const link = ({ place, title }) => element("li", {}, button(title, () => goTo(place), { class: "link" }));
  const seen = marks.seen[place];
  const facts = [from ? "" : origin, leaves ? "an output of the graph" : "", bytes ? `${bytes} bytes` : ""].filter(Boolean).join(" · ");
  $("details").replaceChildren(
    heading(name, ""),
    element("p", {}, element("code", {}, `${type} ${shape}`), facts ? element("span", { class: "type" }, ` · ${facts}`) : ""),
    others.length > 1 ? element("p", { class: "type" }, "Beside it: ", ...beside.map((other, k) =>
      button(names[k], () => chooseValue(other, true, others), { class: "link" }))) : "",
    seen ? element("section", {}, element("h3", {}, `In the last run${seen.shape ? `: [${seen.shape.join(", ")}]` : ""}`), showNumbers(seen)) : "",
    numbers ? element("section", {}, element("h3", {}, origin === "initializer" ? "Weights" : "Computed at load"), showNumbers(numbers), saveButtons(place, name)) : "",
    from ? element("section", {}, element("h3", {}, "Comes from"), element("ul", { class: "values" }, link(from))) : "",
    readers.length > 0 ? element("section", {}, element("h3", {}, "Read by"), element("ul", { class: "values" }, ...readers.map(link))) : "",
  );
  reveal("details", focus);
  say(`value ${name}, ${type} ${shape}`);
}
