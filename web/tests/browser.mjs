// The page in headless Chromium, opened from its file: node browser.mjs PAGE.html CHROMIUM [PICTURES [ONNXREF]]
// With a folder for PICTURES it also takes screenshots. With the program ONNXREF, a case that the page saved is tested by it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { deflateSync } from "node:zlib";
import { CASES } from "./cases.mjs";
import { withPage } from "./chromium.mjs";
import { CHOICE, CONSTANTS, LARGE, LOGARITHM, SPLIT, TEXT, WRONG, tensor } from "./models.mjs";

const [page, chromium, pictures, onnxref] = process.argv.slice(2);
if (pictures) mkdirSync(pictures, { recursive: true });
const scratch = mkdtempSync(join(tmpdir(), "onnxref-"));
const official = CASES.find(({ name }) => name === "test_gather_2d_indices");
const model = fileURLToPath(official.path);
const file = (name, content, encoding) => {
  writeFileSync(join(scratch, name), content, encoding);
  return join(scratch, name);
};
const strange = file("strange <img src=x onerror=alert(1)>.onnx", "This is not a model.");
// The same model with an operator of the standard that isn't implemented.
const missing = file("missing.onnx", official.model.toString("latin1").replace("Gather*", "Resize*"), "latin1");
const logarithm = file("logarithm.onnx", LOGARITHM);

const address = pathToFileURL(resolve(page)).href;

try {
  await withPage(chromium, address, async (tools) => {
    const use = helpers(tools);
    await tools.send("Emulation.setFocusEmulationEnabled", { enabled: true });
    await use.size(1400, 900);
    for (const test of [examples, addresses, refused, running, walking, panel, nan, scopes, large, unfolded, computed, findings, textForm, several, files, saving, phone, scripts]) {
      await test({ ...tools, ...use });
      assert.deepEqual(tools.errors, [], test.name);
    }
  });
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
console.log("chromium: the page works");

function helpers({ send, evaluate, until, picture }) {
  const quoted = JSON.stringify;
  const use = {
    size: (width, height, mobile = false) => send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile }),
    media: (name, value) => send("Emulation.setEmulatedMedia", { features: [{ name, value }] }),
    text: (selector) => evaluate(`document.querySelector(${quoted(selector)}).textContent`),
    hidden: (selector) => evaluate(`document.querySelector(${quoted(selector)}).hidden`),
    count: (selector) => evaluate(`document.querySelectorAll(${quoted(selector)}).length`),
    click: (selector) => evaluate(`document.querySelector(${quoted(selector)}).click()`),
    cells: (selector) => evaluate(`[...document.querySelectorAll(${quoted(`${selector} .cell`)})].map((cell) => cell.textContent).join(" ")`),
    type: (id, value) => evaluate(
      `{ const field = document.getElementById("${id}"); field.value = ${quoted(value)}; field.dispatchEvent(new Event("input", { bubbles: true })); }`),
    shot: async (name) => pictures && picture(join(pictures, `${name}.png`)),
    drop: async (files) => {
      const data = { items: [], files, dragOperationsMask: 1 };
      for (const kind of ["dragEnter", "dragOver", "drop"]) await send("Input.dispatchDragEvent", { type: kind, x: 200, y: 300, data });
    },
    open: async (path, boxes) => {
      const name = path.split("/").at(-1);
      await evaluate(`current.name = ""`);
      await use.drop([path]);
      await until(`current.name === ${quoted(name)} && document.getElementById("loading").hidden && canvas.boxes.size >= ${boxes}`);
      await until(`current.fields.every(({ input, text }) => !input.tensor || text.value !== "")`);
    },
    run: async () => {
      await use.click("#go");
      await until(`document.getElementById("go").disabled === false && document.getElementById("time").textContent !== "running …"`);
    },
    /** Texts below a box. */
    below: (head) => evaluate(
      `[...document.querySelectorAll("#canvas text.flow")].filter((flow) => canvas.boxes.get(flow.dataset.from).head === ${quoted(head)}).map((flow) => flow.textContent)`),
    box: (head) => `[...canvas.boxes.values()].find((box) => box.head === ${quoted(head)})`,
  };
  return use;
}

/** The examples run on their own, and refuse an index that is out of range. */
async function examples({ evaluate, until, text, cells, count, type, click, below, shot }) {
  await until(`document.querySelectorAll("#example-grids .cell").length > 0`);
  assert.equal(await count("#cases input"), 9);
  assert.equal(await cells("#example-grids > :last-child"), official.output.values.join(" "));
  // The graph is there at once, with the values of the run on its edges.
  assert.equal(await count("#canvas .box[data-box]"), 4);
  assert.deepEqual(await below("indices"), ["[1, 2]", "0 .. 2"]);
  assert.match(await text("#drop"), /Drop an \.onnx file/);
  await shot("start");
  await type("indices", "[[1, -1]]");
  const second = official.inputs.data.values[1];
  await until(`document.querySelector("#example-grids > :last-child .cell").textContent === "${second}"`);
  await evaluate(`document.querySelector("#example-grids > :last-child .cell").focus()`);
  assert.equal(await text("#example-grids > :first-child .lit"), second);
  await click("#wrong");
  await until(`!document.getElementById("example-failure").hidden`);
  assert.match(await text("#example-failure"), /indices\[0, 1\] = 3 is out of range for axis 1 of "data", which has 3 entries: allowed -3\.\.=2/);
  // The node that failed is marked.
  assert.equal(await count("#canvas .box.blamed"), 1);
  assert.match(await text("#marks"), /the run failed here/);
  await type("indices", "[[1, ");
  await until(`!document.getElementById("indices-fault").hidden`);
  for (const number of [3, 6]) {
    await evaluate(`document.querySelectorAll("#cases input")[${number}].click()`);
    await until(`document.querySelectorAll("#example-grids .cell").length > 0 && document.getElementById("indices-fault").hidden`);
  }
  await until(`document.querySelector("#formula").textContent.includes("indices[i, 1]")`);
}

/** An example has an address; the browser's buttons go back and forward. */
async function addresses({ evaluate, until }) {
  assert.equal(await evaluate("location.hash"), "#example=test_gathernd_example_int32");
  await evaluate("history.back()");
  await until(`document.getElementById("attributes").textContent.includes("test_gather_elements_0")`);
  await evaluate("history.forward()");
  await until(`document.getElementById("attributes").textContent.includes("test_gathernd_example_int32")`);
  await evaluate(`location.hash = "#example=test_gather_0"`);
  await until(`document.getElementById("attributes").textContent.includes("test_gather_0") && document.querySelectorAll("#cases input")[2].checked`);
}

/** What is no model, and what can't run. */
async function refused({ drop, until, text, hidden, shot }) {
  // Its name is shown, not run.
  await drop([strange]);
  await until(`!document.getElementById("failure").hidden`);
  assert.match(await text("#failure"), /not an ONNX model/);
  assert.match(await text("#model-name"), /<img src=x/);
  assert.ok(await hidden("#run"));
  await drop([missing]);
  await until(`document.getElementById("model-name").textContent === "missing.onnx" && canvas.boxes.size > 0`);
  assert.match(await text("#findings"), /can't run, as it departs from the standard:node #0 \(Resize-13\): attribute "axis"/);
  assert.match(await text("#nodes-list"), /Resize-13/);
  assert.ok(await hidden("#run"));
  await shot("refused");
}

/** A model by drag and drop runs, and faults stand where they belong. */
async function running({ evaluate, until, open, run, text, cells, count, hidden, type, click, press, shot }) {
  await open(model, 4);
  assert.ok(await hidden("#failure"));
  const tables = await text("#tables");
  for (const shown of ["data", "float32", "[3, 3]", "ai.onnx", "backend-test"]) assert.ok(tables.includes(shown), `${shown} is not in the tables`);
  assert.match(await text("#nodes-list"), /Gather-13/);
  await type("input-0", "[[1, 2, 3], [4, 5, 6], [7, 8, 9]]");
  await type("input-1", "[[0, -1]]");
  await run();
  assert.equal(await cells("#outputs"), "1 3 4 6 7 9");
  await shot("model");
  // A fault of a value stands at its field, one of the run below the button.
  await type("input-1", "[[0, 0.5]]");
  await run();
  assert.match(await text("#fault-1"), /0\.5 at \[0, 1\] is not a valid int64/);
  assert.equal(await evaluate("document.activeElement.id"), "input-1");
  assert.equal(await cells("#outputs"), "");
  await type("input-1", "[[0, 7]]");
  await run();
  assert.match(await text("#run-failure"), /= 7 is out of range/);
  assert.match(await text("#said"), /= 7 is out of range/);
  // After a stop a new engine takes over.
  await evaluate(`engine.stop("stopped")`);
  await type("input-1", "random [1, 2] seed 3");
  await run();
  assert.equal(await count("#outputs .cell"), 6);
  await evaluate(`history.back()`);
  await until(`current.name === "missing.onnx"`);
  await evaluate(`history.forward()`);
  await until(`current.name === "model.onnx" && canvas.boxes.size === 4`);
}

/** The graph is moved by mouse, wheel and keys, and found by a search. */
async function walking({ send, evaluate, until, open, drag, press, text, count, type, box, shot }) {
  await open(logarithm, 6);
  const view = () => evaluate("[canvas.x, canvas.y, canvas.scale]");
  const [x, y, scale] = await view();
  await drag("#canvas", 60, 40);
  const moved = await view();
  assert.ok(Math.abs(x - moved[0] - 60 / scale) < 1 && Math.abs(y - moved[1] - 40 / scale) < 1, `${moved} from ${[x, y, scale]}`);
  await send("Input.dispatchMouseEvent", { type: "mouseWheel", x: 500, y: 400, deltaX: 0, deltaY: -300 });
  await until(`canvas.scale > ${scale * 1.2}`);
  await evaluate("fit()");
  assert.equal(await evaluate(`document.querySelector("#canvas .box[tabindex='0']").dataset.box === canvas.active.number`), true);
  // Arrow keys follow the edges.
  await evaluate(`activate(${box("image")})`);
  const heads = [];
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"]) {
    await press(key);
    heads.push(await evaluate("canvas.boxes.get(document.activeElement.dataset.box).head"));
  }
  assert.deepEqual(heads, ["Conv-11", "Log-13", "Cast-13", "Log-13"]);
  assert.match(await evaluate(`document.activeElement.getAttribute("aria-label")`), /^node Log-13, logarithm/);
  await press("Enter");
  await until(`document.getElementById("details-name")?.textContent === "Log-13"`);
  // The focus is where the details are.
  await until(`document.activeElement.id === "details-name"`);
  await press("/");
  assert.equal(await evaluate("document.activeElement.id"), "search");
  await type("search", "cast");
  assert.equal(await text("#found"), "1 node");
  assert.equal(await count("#canvas .box.hit"), 1);
  await press("Enter");
  await until(`document.getElementById("details-name").textContent === "Cast-13"`);
  const middle = await evaluate(`(() => { const box = ${box("Cast-13")}; return [box.x + box.width / 2 - canvas.x, box.y + box.height / 2 - canvas.y]; })()`);
  assert.deepEqual(middle, [0, 0]);
  assert.equal(await count("#canvas .box.chosen"), 1);
  await type("search", "weights");
  assert.match(await text("#nodes-list"), /^Conv-11filter/);
  await type("search", "nothing of the sort");
  assert.equal(await text("#nodes-more"), "No such node.");
  await type("search", "");
  await shot("search");
}

/** A click shows all about a node, and about a value. */
async function panel({ evaluate, until, drag, text, count, click, box, folder, shot }) {
  await evaluate("fit()");
  const number = await evaluate(`${box("Conv-11")}.number`);
  await drag(`#canvas [data-box="${number}"] rect`);
  await until(`document.getElementById("details-name").textContent === "Conv-11"`);
  const shown = await text("#details");
  assert.match(shown, /kernel_shape\[1, 1\]/);
  // Defaults are hidden until somebody asks.
  assert.ok(!shown.includes("group") && !shown.includes("strides"), shown);
  const lines = await evaluate(`[...document.querySelectorAll('#canvas [data-box="${number}"] .line')].map((line) => line.textContent)`);
  assert.deepEqual(lines, ["filter", "kernel_shape = [1, 1]", "weights: float32[1, 3, 1, 1]"]);
  await click("#show-defaults");
  await until(`document.getElementById("details").textContent.includes("group1")`);
  await evaluate(`document.getElementById("show-defaults").click()`);
  assert.equal(await evaluate(`document.querySelector("#details a").href`), "https://onnx.ai/onnx/operators/onnx__Conv.html");
  await evaluate(`[...document.querySelectorAll("#details .values button")].find((each) => each.textContent === "weights").click()`);
  await until(`document.getElementById("details-name").textContent === "weights"`);
  assert.match(await text("#details"), /initializer · 12 bytes/);
  assert.match(await text("#details .facts"), /least0greatest1mean0\.3333zeros2/);
  assert.match(await evaluate(`document.querySelector("#details .histogram").getAttribute("aria-label")`), /^Histogram from 0 to 1/);
  await shot("weights");
  // Weights are saved.
  await evaluate(`document.querySelector('[aria-label="Save weights as .npy"]').click()`);
  const weights = join(folder, "weights.npy");
  for (const end = Date.now() + 10_000; !existsSync(weights) && Date.now() < end;) await new Promise((done) => setTimeout(done, 50));
  assert.deepEqual([...new Float32Array(Uint8Array.from(readFileSync(weights).subarray(-12)).buffer)], [1, 0, 0]);
  await evaluate(`[...document.querySelectorAll("#details .values button")].find((each) => each.textContent.startsWith("Conv")).click()`);
  await until(`document.getElementById("details-name").textContent === "Conv-11"`);
  // An element type has its name.
  assert.match(await evaluate(`${box("Cast-13")}.g.textContent`), /to = float32/);
  await evaluate(`document.querySelector("#canvas .edge .grip").dispatchEvent(new MouseEvent("click", { bubbles: true }))`);
  await until(`document.querySelectorAll("#canvas .edge.chosen").length > 0`);
}

/** After a run, ranges stand at the edges, and the node where NaN begins is marked. */
async function nan({ evaluate, open, run, text, below, type, until, shot }) {
  await open(logarithm, 6);
  await type("input-0", "[[[[1, 2], [3, -4]], [[0, 0], [0, 0]], [[0, 0], [0, 0]]]]");
  await run();
  assert.deepEqual(await below("image"), ["[1, 3, 2, 2]", "-4 .. 3"]);
  assert.deepEqual(await below("Log-13"), ["[1, 1, 2, 2]", "0 .. 1.1, 1 NaN"]);
  const marked = (style) => evaluate(`[...canvas.boxes.values()].filter(({ g }) => g.classList.contains("${style}")).map(({ head }) => head)`);
  assert.deepEqual(await marked("first"), ["Log-13"]);
  assert.ok((await marked("nan")).includes("Cast-13"));
  assert.match(await text("#marks"), /NaN begins here/);
  assert.match(await text("#outputs"), /NaN begins atLog-13 logarithm/);
  await shot("nan");
  await evaluate(`goTo("1")`);
  await until(`document.getElementById("details-name")?.textContent === "Log-13"`);
  assert.match(await text("#details"), /1 NaN/);
  // Without the switch, values are not looked at.
  await evaluate(`document.getElementById("watch").click()`);
  await run();
  assert.deepEqual(await below("Log-13"), ["[1, 1, 2, 2]"]);
  await evaluate(`document.getElementById("watch").click()`);
}

/** Subgraphs open, and lead back. */
async function scopes({ evaluate, until, open, run, type, text, below, hidden, press, shot }) {
  await open(file("choice.onnx", CHOICE), 6);
  await type("input-0", "true");
  await type("input-1", "[1, 2, -3]");
  await run();
  assert.deepEqual(await below("Add-14"), ["[3]", "-6 .. 4"]);
  await evaluate(`goTo("0")`);
  await until(`document.getElementById("details-name")?.textContent === "If-16"`);
  await evaluate(`[...document.querySelectorAll("#details button")].find((each) => each.textContent.startsWith("Open else_branch")).click()`);
  await until(`canvas.steps.length === 1`);
  assert.deepEqual(await evaluate("[...canvas.boxes.values()].map(({ head }) => head)"), ["Neg-13", "x", "b"]);
  assert.equal(await text("#crumbs"), "graphelse_branch of If-16 choose");
  await shot("scope");
  await evaluate(`document.querySelector("#crumbs button").click()`);
  await until(`canvas.steps.length === 0`);
  assert.ok(await hidden("#crumbs"));
}

/** Many nodes are folded; a group opens, and a search finds what is in it. */
async function large({ evaluate, until, open, text, count, type, press, drag, run, below, shot }) {
  await open(file("large.onnx", LARGE), 6);
  assert.match(await text("#caption"), /400 nodes, folded into 4 boxes/);
  assert.equal(await count("#canvas .box[data-box]"), 6);
  const number = await evaluate(`[...canvas.boxes.values()].find(({ head }) => head.startsWith("layer.2")).number`);
  await evaluate(`chooseBox(canvas.boxes.get("${number}"))`);
  await until(`canvas.steps.length === 1 && canvas.boxes.size === 102`);
  assert.equal(await text("#crumbs"), "graphlayer.2");
  await evaluate(`canvas.active.g.focus()`);
  await press("Escape");
  await until(`canvas.steps.length === 0 && canvas.boxes.size === 6`);
  await type("search", "layer.3/Relu_350");
  await evaluate(`document.getElementById("search").focus()`);
  await press("Enter");
  await until(`canvas.names.at(-1) === "layer.3" && document.getElementById("details-name")?.textContent === "Relu-14"`);
  assert.equal(await count("#canvas .box.chosen"), 1);
  // The map shows where the window is, and moves it.
  assert.equal(await evaluate(`document.getElementById("map").hidden`), false);
  const before = await evaluate("canvas.y");
  await drag("#map", 0, -60);
  assert.ok(await evaluate("canvas.y") < before);
  await run();
  await evaluate("follow([])");
  await until(`canvas.boxes.size === 6`);
  assert.equal((await below("layer.2 (100 nodes)")).length, 2);
  await shot("large");
  await type("search", "");
}

/** Nodes have boxes of their own if that is asked for. */
async function unfolded({ evaluate, until, count, hidden, text, click }) {
  assert.ok(!await hidden("#folded-switch"));
  await click("#folded");
  await until(`canvas.boxes.size === 402`);
  assert.equal(await text("#caption"), "");
  await evaluate(`goTo("350")`);
  await until(`document.getElementById("details-name")?.textContent === "Relu-14"`);
  assert.deepEqual(await evaluate("canvas.steps"), []);
  assert.equal(await count("#canvas .box.chosen"), 1);
  // The map of what is long shows the window, and no more.
  const [map, frame] = await evaluate(`[document.getElementById("map"), document.querySelector("#map .window")].map((each) => { const { left, right } = each.getBoundingClientRect(); return [left, right]; })`);
  assert.ok(frame[0] >= map[0] && frame[1] <= map[1] && map[1] - map[0] >= 48, `${frame} in ${map}`);
  await click("#folded");
  await until(`canvas.boxes.size === 6`);
}

/** Many nodes that are computed at load are hidden at first. */
async function computed({ evaluate, until, open, text, count, click }) {
  await open(file("constants.onnx", CONSTANTS), 3);
  assert.equal(await count("#canvas .box[data-box]"), 3);
  assert.equal(await count("#nodes-list .node"), 1);
  assert.equal(await text("#computed-count"), "Computed at load: 10");
  await click("#computed");
  await until(`canvas.boxes.size === 13`);
  assert.equal(await count("#nodes-list .node"), 11);
}

/** What `check` finds stands in the header, in the model's tab, and at the node. */
async function findings({ evaluate, until, open, text, click, press, shot }) {
  await open(file("wrong.onnx", WRONG), 3);
  assert.equal(await text("#badge"), "1 finding");
  await click("#badge");
  assert.match(await text("#findings"), /output "y" has shape \[3, 2\], but is declared as \[2, 3\]/);
  await shot("findings");
  await evaluate(`document.querySelector("#findings button").click()`);
  await until(`document.getElementById("details-name")?.textContent === "Transpose-13"`);
  assert.match(await text("#details .failure"), /declared as \[2, 3\]/);
  // The node is marked, in the graph and in the list.
  assert.deepEqual(await evaluate(`[...canvas.boxes.values()].filter(({ g }) => g.classList.contains("faulty")).map(({ head }) => head)`), ["Transpose-13"]);
  assert.equal(await text("#marks"), "departs from the standard");
  assert.match(await text("#nodes-list"), /departs from the standard/);
  // Escape leads from the details back to the graph.
  await evaluate(`document.getElementById("details-name").focus()`);
  await press("Escape");
  assert.equal(await evaluate(`canvas.boxes.get(document.activeElement.dataset.box).head`), "Transpose-13");
}

/** The text form of a model; what it lacks can be dropped later, and it is saved as an .onnx file. */
async function textForm({ evaluate, until, drop, run, text, cells }) {
  await evaluate(`current.name = ""`);
  await drop([file("model.onnxtxt", TEXT)]);
  await until(`current.name === "model.onnxtxt" && document.getElementById("loading").hidden && current.failed`);
  assert.match(await text("#failure"), /w\.bin.*drop the model's other files together with it/s);
  assert.equal(await text("#badge"), "Can't run");
  await drop([file("w.bin", Buffer.from(new Float32Array([10, 20]).buffer))]);
  await until(`current.name === "model.onnxtxt" && !current.failed && current.fields.length === 1`);
  // Random values that come later don't replace what was typed.
  await evaluate(`(async () => { const [field] = current.fields; const random = randomize(field); field.text.value = "[1, 2]"; await random; })()`);
  await run();
  assert.equal(await cells("#outputs"), "11 22");
  const saved = await evaluate("current.content().then((files) => files.map(([name, bytes]) => [name, bytes[0]]))");
  assert.deepEqual(saved, [["model.onnx", 8], ["w.bin", 0]]);
}

/** Each of a few values that leave a box has a range; a wide graph is shown whole. */
async function several({ evaluate, open, run, type, below, text, box }) {
  await open(file("split.onnx", SPLIT), 4);
  await type("input-0", "[1, 2, 3, -4]");
  await run();
  assert.deepEqual(await below("Split-18"), ["first: 1 .. 2", "second: -4 .. 3"]);
  assert.match(await evaluate(`${box("Split-18")}.g.getAttribute("aria-label")`), /^node Split-18, .*; gives first: 1 \.\. 2, second: -4 \.\. 3$/);
  // Edges are no part of what a reader of the page goes through.
  assert.equal(await evaluate(`document.querySelectorAll('#canvas .edge:not([aria-hidden="true"])').length`), 0);
  assert.match(await text("#outputs"), /Tensors as \.npz|Outputs as \.npz/);
}

/** Inputs from .npy, .npz, .pb and pictures. */
async function files({ evaluate, until, open, run, text, cells, drop, shot }) {
  await open(logarithm, 6);
  const numbers = Array.from({ length: 12 }, (_, k) => k + 1);
  const message = file("image.pb", tensor("image", [1, 3, 2, 2], numbers));
  await drop([message]);
  await until(`current.fields[0].file !== null`);
  await run();
  assert.equal(await cells("#outputs"), ["0", "0.6931472", "1.0986123", "1.3862944"].join(" "));
  const header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 2, 2), }".padEnd(117) + "\n";
  const npy = Buffer.concat([Buffer.from("\x93NUMPY\x01\x00", "latin1"), Buffer.from([118, 0]), Buffer.from(header), Buffer.from(new Float32Array(numbers).buffer)]);
  for (const [name, content] of [["x.npy", npy], ["x.npz", npz("image.npy", npy, false)], ["y.npz", npz("image.npy", npy, true)]]) {
    await evaluate(`take(current.fields[0], null)`);
    await drop([file(name, content)]);
    await until(`current.fields[0].file !== null`);
    assert.match(await text("#fields .chip"), name === "x.npy" ? /^x\.npy, 176 bytes/ : /^image of [xy]\.npz/);
    await run();
    assert.match(await cells("#outputs"), /^0 0\.6931472/, name);
  }
  await drop([file("cut.npz", npz("image.npy", npy, true).subarray(0, 40))]);
  await until(`!document.getElementById("fault-0").hidden`);
  assert.match(await text("#fault-0"), /cut\.npz: it is not a zip archive, or it is cut short/);
  // A picture of 2 x 2, whose first channel is 255, 0, 51, 102.
  await evaluate(`(async () => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 2, height: 2 });
    const context = canvas.getContext("2d");
    const data = context.createImageData(2, 2);
    data.data.set([255, 0, 0, 255, 0, 255, 0, 255, 51, 0, 0, 255, 102, 0, 255, 255]);
    context.putImageData(data, 0, 0);
    const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
    await giveAll([new File([blob], "image.png", { type: "image/png" })]);
  })()`);
  assert.match(await text("#fields .chip"), /image\.png: float32 \[1, 3, 2, 2\], RGB/);
  await run();
  assert.deepEqual((await cells("#outputs")).split(" ").map(Number), [0, 0, 0, 0]);
  const given = (values) => evaluate(`[...new Float32Array(current.fields[0].file.slice(128).buffer)].slice(0, 4).map((v) => Number(v.toFixed(3)))`);
  assert.deepEqual(await given(), [1, 0, 0.2, 0.4]);
  await evaluate(`{ const scale = document.querySelectorAll("#fields .chip select")[1]; scale.value = scale.options[1].value; scale.dispatchEvent(new Event("change")); }`);
  assert.deepEqual(await given(), [255, 0, 51, 102]);
  await shot("picture");
}

/** A zip archive of one file. */
function npz(name, content, deflated) {
  const packed = deflated ? deflateSync(content).subarray(2, -4) : content;
  const common = (at, bytes) => {
    bytes.writeUInt16LE(deflated ? 8 : 0, at + 4);
    bytes.writeUInt32LE(packed.length, at + 14);
    bytes.writeUInt32LE(content.length, at + 18);
    bytes.writeUInt16LE(name.length, at + 22);
    return bytes;
  };
  const [local, central, end] = [Buffer.alloc(30), Buffer.alloc(46), Buffer.alloc(22)];
  local.writeUInt32LE(0x04034b50, 0);
  central.writeUInt32LE(0x02014b50, 0);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(46 + name.length, 12);
  end.writeUInt32LE(30 + name.length + packed.length, 16);
  return Buffer.concat([common(4, local), Buffer.from(name), packed, common(6, central), Buffer.from(name), end]);
}

/** The picture, the outputs and a case are saved. */
async function saving({ evaluate, open, run, type, folder, until }) {
  await open(model, 4);
  await type("input-0", "[[1, 2, 3], [4, 5, 6], [7, 8, 9]]");
  await type("input-1", "[[0, -1]]");
  await run();
  const saved = async (name, act) => {
    await evaluate(act);
    for (const end = Date.now() + 10_000; Date.now() < end; await new Promise((done) => setTimeout(done, 50))) {
      if (existsSync(join(folder, name))) return join(folder, name);
    }
    throw new Error(`${name} was not saved`);
  };
  const press = (label) => `[...document.querySelectorAll("#outputs button")].find((each) => each.textContent === "${label}").click()`;
  const svg = readFileSync(await saved("model.svg", `document.getElementById("save-svg").click()`), "utf8");
  assert.match(svg, /^<\?xml .*\?>\n<svg [^>]*viewBox="0 0 \d+ \d+"/);
  assert.ok(svg.includes("1 .. 9") && !svg.includes("tabindex") && !svg.includes("grip"), "the picture has the values, and nothing of the page");
  const npy = readFileSync(await saved("y.npy", press(".npy")));
  assert.match(npy.toString("latin1"), /^\x93NUMPY\x01\x00.*'descr': '<f4', 'fortran_order': False, 'shape': \(3, 1, 2\)/s);
  assert.deepEqual([...new Float32Array(Uint8Array.from(npy.subarray(-24)).buffer)], [1, 3, 4, 6, 7, 9]);
  assert.match(readFileSync(await saved("outputs.npz", press("Outputs as .npz"))).toString("latin1"), /^PK.*y\.npy/s);
  const kept = readFileSync(await saved("model.zip", press("Save as a test case"))).toString("latin1");
  for (const name of ["model.onnx", "test_data_set_0/input_0.pb", "test_data_set_0/input_1.pb", "test_data_set_0/output_0.pb"]) {
    assert.ok(kept.includes(`model/${name}`), name);
  }
  if (onnxref) {
    assert.match(execFileSync(onnxref, ["test", join(folder, "model.zip")], { encoding: "utf8" }), /^1 passed \(1 bit by bit\)/);
  }
}

/** On a phone the list of nodes stands for the graph, and details lie over it. All is legible in the dark. */
async function phone({ evaluate, until, size, media, click, text, open, count, shot }) {
  await media("prefers-color-scheme", "dark");
  await shot("dark");
  await size(390, 844, true);
  await open(logarithm, 0);
  assert.equal(await evaluate(`getComputedStyle(document.getElementById("stage")).display`), "none");
  await until(`document.querySelectorAll("#nodes-list .node").length === 4`);
  assert.equal(await evaluate(`document.getElementById("nodes-panel").hidden`), false);
  assert.match(await text("#nodes-list"), /Log-13logarithmfloat32 \[1, 1, 2, 2\]/);
  await shot("phone");
  await evaluate(`document.querySelectorAll("#nodes-list .node")[1].click()`);
  await until(`document.getElementById("details-name")?.textContent === "Log-13" && !document.getElementById("sheet-close").hidden`);
  // The sheet lies over the lower part.
  const top = await evaluate(`document.getElementById("details-panel").getBoundingClientRect().top`);
  assert.ok(top > 150 && top < 844, String(top));
  await shot("sheet");
  assert.equal(await evaluate(`document.activeElement.id`), "details-name");
  await click("#sheet-close");
  assert.equal(await evaluate(`document.getElementById("details-panel").hidden`), true);
  assert.equal(await evaluate(`document.activeElement.dataset.place`), "1");
  for (const tab of ["run", "model", "examples", "nodes"]) {
    await click(`#tab-${tab}`);
    for (const width of [390, 320]) {
      await size(width, 844, true);
      assert.ok(await evaluate(`document.documentElement.scrollWidth <= innerWidth`), `${tab} is wider than ${width}`);
    }
  }
  // Nodes that are computed at load are not listed, unless somebody asks.
  await open(file("constants.onnx", CONSTANTS), 0);
  assert.equal(await count("#nodes-list .node"), 1);
  assert.equal(await text("#listed-switch"), "Computed at load: 10");
  await click("#listed");
  assert.equal(await count("#nodes-list .node"), 11);
  await open(logarithm, 0);
  await media("prefers-color-scheme", "light");
  // A wider window has the graph.
  await size(1400, 900);
  await until(`canvas.bounds.width > 50 && canvas.svg.getBoundingClientRect().width > 500 && canvas.scale >= LEGIBLE`);
  const inside = await evaluate(`(() => { const { left, right } = [...canvas.boxes.values()][0].g.getBoundingClientRect(); return left > 0 && right < 1000; })()`);
  assert.ok(inside, "the first box is in the window");
  // Every field and button has a name.
  const nameless = await evaluate(`[...document.querySelectorAll("button, input, textarea, select")].filter((each) =>
    !each.textContent.trim() && !each.labels?.length && !each.getAttribute("aria-label")).map((each) => each.outerHTML)`);
  assert.deepEqual(nameless, []);
}

/** Scripts in a picture don't run. */
async function scripts({ evaluate, errors }) {
  await evaluate(`showGraph({ svg: '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" onload="window.ran = 1"><script>window.ran = 1</script></svg>' })`);
  await new Promise((done) => setTimeout(done, 100));
  assert.equal(await evaluate(`window.ran === undefined`), true);
  // The policy of the page says so.
  assert.ok(errors.splice(0).every((error) => /Content Security Policy|inline/.test(error)));
}
