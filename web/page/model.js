// The model that is open.

let current = null;

/** Models that were opened, for the browser's buttons back and forward: `#model=2` is the third. */
const opened = [];

/** From so many nodes that are computed at load on, they are hidden at first. */
const MANY_COMPUTED = 10;

/** The endings of a model file's name. */
const MODEL = /\.(onnx|xml|onnxtxt)$/i;

const INPUT = /\.(npy|npz|pb|png|jpe?g|webp|gif|bmp)$/i;

/** Takes files that were dropped or picked: a model with what belongs to it, or inputs for the model that is open. */
function receive(files) {
  files = [...files];
  if (files.length === 0) return;
  const isModel = files.some((file) => MODEL.test(file.name));
  if (!isModel && current?.fields.length > 0 && files.every((file) => INPUT.test(file.name))) {
    reveal("run");
    return giveAll(files);
  }
  // The model that is open lacked them.
  if (!isModel && current?.lacks) files = [...current.lacks, ...files];
  document.body.classList.add("opened");
  opened.push(files);
  history.pushState(null, "", `#model=${opened.length - 1}`);
  return open(files);
}

/** Opens the model among files. */
async function open(files, allow = []) {
  const main = files.find((file) => MODEL.test(file.name)) ?? files[0];
  const others = files.filter((file) => file !== main);
  const bytes = async (file) => new Uint8Array(await file.arrayBuffer());
  const model = new Model(async () => {
    for (const file of others) await engine.ask({ file: { name: file.name } }, await bytes(file), true);
    return engine.ask({ load: { allow } }, await bytes(main), true);
  });
  const content = async () => {
    // A case has the model as model.onnx.
    if (/\.xml$/i.test(main.name)) return Promise.all(files.map(async (file) => [file.name, await bytes(file)]));
    const own = await bytes(main);
    const binary = /\.onnxtxt$/i.test(main.name) ? (await engine.ask("binary", own)).file : own;
    return [["model.onnx", binary], ...await Promise.all(others.map(async (file) => [file.name, await bytes(file)]))];
  };
  const mine = await enter(model, main.name, content, (more) => open(files, [...allow, ...more]), files);
  if (!mine) return;
  reveal(mine.failed ? "model" : isNarrow() ? "nodes" : "run");
  $("model-name").focus();
}

/** Shows a model, which was opened from `files`. Returns it, or null if another was opened meanwhile. */
async function enter(model, name, content, accept, files = null) {
  say(`Loading ${name}`);
  $("loading").hidden = false;
  current?.model.close();
  const mine = (current = { model, name, content, fields: [], nodes: [], faulty: new Set(), outputs: [] });
  let answer;
  try {
    answer = await model.open();
  } catch (error) {
    answer = { error: { message: error.message, causes: [] } };
  }
  if (mine !== current) return null;
  $("loading").hidden = true;
  $("model-name").textContent = name;
  document.title = `${name} · onnxref`;
  mine.failed = Boolean(answer.error);
  mine.lacks = answer.files ? files : null;
  const { findings = [] } = answer.description ?? {};
  // What departs from the standard is listed by itself, with its nodes.
  const listed = answer.error && !answer.error.needs && !answer.allow?.length && (answer.error.causes ?? []).length > 0 &&
    answer.error.causes.every(({ message }) => findings.some(({ text }) => text === message));
  fail($("failure"), listed ? null : answer.error, answer.allow, accept);
  clearMarks();
  chosen = {};
  $("details").replaceChildren(element("p", { class: "soft" }, "Choose a node or a line of the graph."));
  await describe(answer.description);
  if (mine === current) say(answer.error ? `${name}: ${answer.error.message}` : `${name} is open: ${mine.nodes.length} nodes`);
  return mine === current ? mine : null;
}

async function describe(description) {
  const { inputs = [], tables = [], notes = [], nodes = [], findings = [], computed = 0 } = description ?? {};
  const runs = description && !current.failed;
  current.nodes = nodes.map(rowOf);
  current.faulty = new Set(findings.map(({ node }) => node).filter((node) => node !== null));
  $("notes").replaceChildren(...notes.map((note) => element("li", {}, note)));
  showFindings(description, findings);
  $("tables").replaceChildren(
    ...tables.filter(({ rows }) => rows.length > 0).map(({ title, columns, rows, more }) => {
      const summary = element("summary", {}, `${title} `, element("span", {}, String(rows.length + more)));
      const body = element("div", { class: "scroll" }, list(columns, rows));
      if (more > 0) body.append(element("p", {}, `and ${more} more`));
      return element("details", { open: rows.length <= 12 }, summary, body);
    }),
  );
  $("run").hidden = !runs;
  $("run-none").hidden = Boolean(runs);
  $("outputs").replaceChildren();
  $("time").textContent = "";
  fail($("run-failure"), null);
  // Many of them drown what runs.
  $("computed-switch").hidden = computed === 0;
  $("computed").checked = computed < MANY_COMPUTED;
  $("folded").checked = true;
  $("computed-count").textContent = `Computed at load: ${computed.toLocaleString("en")}`;
  $("listed-switch").hidden = computed === 0;
  $("listed").checked = $("computed").checked;
  $("listed-count").textContent = $("computed-count").textContent;
  $("search").value = "";
  makeFields(runs ? inputs : []);
  search();
  showGraph(null);
  if (description) await follow([]);
  // What somebody entered meanwhile stays.
  const free = ({ input, text, file }) => input.tensor && !input.default && !file && !text.value;
  if (runs) for (const field of current.fields.filter(free)) randomize(field);
}

/** What `check` finds, each with its node. */
function showFindings(description, findings) {
  const text = !description ? "" : findings.length === 0 ? (current.failed ? "Can't run" : "No findings") : findings.length === 1 ? "1 finding" : `${findings.length} findings`;
  $("badge").textContent = text;
  $("badge").hidden = !text;
  $("badge").classList.toggle("bad", findings.length > 0 || current.failed);
  $("badge").title = "What departs from the standard, as onnxref check says";
  const item = ({ node, text }) => element("li", {}, text, " ", node === null ? "" : button("Show the node", () => goTo(node), { class: "link" }));
  $("findings").hidden = findings.length === 0;
  $("findings").firstElementChild.textContent = current.failed ? "The model can't run, as it departs from the standard:" : "What departs from the standard:";
  $("findings").lastElementChild.replaceChildren(...findings.map(item));
}

/** Whether there is no room for a graph: the list of nodes stands for it. */
const isNarrow = () => matchMedia("(max-width: 48rem)").matches;

const TABS = ["run", "details", "nodes", "model", "examples"];

/** Shows a tab of the panel. */
function reveal(name, focus = false) {
  // On a phone the details lie over the list.
  const sheet = name === "details" && isNarrow();
  $("side").classList.toggle("sheet-open", sheet);
  if (!sheet) $("sheet-close").hidden = true;
  for (const tab of TABS) {
    const is = tab === name;
    $(`tab-${tab}`).setAttribute("aria-selected", String(is));
    $(`tab-${tab}`).tabIndex = is ? 0 : -1;
    $(`${tab}-panel`).hidden = !is && !(sheet && tab === reveal.last);
  }
  $("sheet-close").hidden = !sheet;
  if (name !== "details") reveal.last = name;
  $("stage").parentElement.classList.remove("wide");
  $("toggle").setAttribute("aria-expanded", "true");
  if (focus) $(`${name}-panel`).querySelector("h2, [tabindex]")?.focus();
}
reveal.last = "examples";

/** Closes the details that lie over the list on a phone: the node in the list has the focus again. */
function closeSheet() {
  reveal(reveal.last);
  const row = [...$("nodes-list").querySelectorAll(".node")].find(({ dataset }) => dataset.place === chosen.node);
  (row ?? $(`tab-${reveal.last}`)).focus();
}
