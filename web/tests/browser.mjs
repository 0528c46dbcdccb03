// The page in headless Chromium, opened from its file: node browser.mjs PAGE.html CHROMIUM [PICTURES]
// With a folder for PICTURES it also takes screenshots.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { CASES } from "./cases.mjs";

const [page, chromium, pictures] = process.argv.slice(2);
if (pictures) mkdirSync(pictures, { recursive: true });
const scratch = mkdtempSync(join(tmpdir(), "onnxref-"));
const official = CASES.find(({ name }) => name === "test_gather_2d_indices");
const model = fileURLToPath(official.path);
const strange = join(scratch, "strange <img src=x onerror=alert(1)>.onnx");
writeFileSync(strange, "This is not a model.");
// The same model with an operator of the standard that isn't implemented.
const missing = join(scratch, "missing.onnx");
writeFileSync(missing, official.model.toString("latin1").replace("Gather*", "Resize*"), "latin1");

try {
  await withPageOpen();
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function withPageOpen() {
  const { withPage } = await import("./chromium.mjs");
  await withPage(chromium, pathToFileURL(resolve(page)).href, async ({ send, evaluate, until, picture, errors }) => {
    const size = (width, mobile = false) =>
      send("Emulation.setDeviceMetricsOverride", { width, height: 900, deviceScaleFactor: 1, mobile });
    const scheme = (value) => send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value }] });
    const text = (selector) => evaluate(`document.querySelector(${JSON.stringify(selector)}).textContent`);
    const type = (id, value) => evaluate(
      `{ const field = document.getElementById("${id}"); field.value = ${JSON.stringify(value)}; field.dispatchEvent(new Event("input", { bubbles: true })); }`);
    const click = (selector) => evaluate(`document.querySelector(${JSON.stringify(selector)}).click()`);
    const cells = (selector) => evaluate(`[...document.querySelectorAll(${JSON.stringify(`${selector} .cell`)})].map((cell) => cell.textContent).join(" ")`);
    const drop = async (files) => {
      const data = { items: [], files, dragOperationsMask: 1 };
      for (const kind of ["dragEnter", "dragOver", "drop"]) await send("Input.dispatchDragEvent", { type: kind, x: 400, y: 150, data });
    };
    await send("Emulation.setFocusEmulationEnabled", { enabled: true });
    await size(1100);

    // The examples run on their own, and refuse an index that is out of range.
    await until(`document.querySelectorAll("#example-grids .cell").length > 0`);
    assert.equal(await evaluate(`document.querySelectorAll("#cases input").length`), 9);
    assert.equal(await cells("#example-grids > :last-child"), official.output.values.join(" "));
    await type("indices", "[[1, -1]]");
    const second = official.inputs.data.values[1];
    await until(`document.querySelector("#example-grids > :last-child .cell").textContent === "${second}"`);
    await evaluate(`document.querySelector("#example-grids > :last-child .cell").focus()`);
    assert.equal(await text("#example-grids > :first-child .lit"), second);
    if (pictures) await picture(join(pictures, "start.png"));
    await click("#wrong");
    await until(`!document.getElementById("example-failure").hidden`);
    assert.match(await text("#example-failure"), /indices\[0, 1\] = 3 is out of range for axis 1 of "data", which has 3 entries: allowed -3\.\.=2/);
    await type("indices", "[[1, ");
    await until(`!document.getElementById("indices-fault").hidden`);
    for (const number of [3, 6]) {
      await evaluate(`document.querySelectorAll("#cases input")[${number}].click()`);
      await until(`document.querySelectorAll("#example-grids .cell").length > 0 && document.getElementById("indices-fault").hidden`);
    }
    await until(`document.querySelector("#formula").textContent.includes("indices[i, 1]")`);

    // A file that is no model, by drag and drop; its name is shown, not run.
    await drop([strange]);
    await until(`!document.getElementById("failure").hidden`);
    assert.match(await text("#failure"), /not an ONNX model/);
    assert.match(await text("#model-name"), /<img src=x/);
    assert.ok(await evaluate(`document.getElementById("run").hidden`));

    // A model that can't run is described, with the reason.
    await drop([missing]);
    await until(`document.getElementById("model-name").textContent === "missing.onnx"`);
    assert.match(await text("#failure"), /Resize/);
    assert.match(await text("#tables"), /Resize-13/);
    assert.ok(await evaluate(`document.getElementById("run").hidden`));
    if (pictures) await picture(join(pictures, "missing.png"));

    // A model, by drag and drop.
    await drop([model]);
    await until(`document.getElementById("model-name").textContent === "model.onnx" && !document.getElementById("run").hidden`);
    assert.ok(await evaluate(`document.getElementById("failure").hidden`));
    const tables = await text("#tables");
    for (const shown of ["Gather-13", "data", "float32", "[3, 3]", "ai.onnx", "backend-test"]) {
      assert.ok(tables.includes(shown), `${shown} is not in the tables`);
    }
    await until(`document.getElementById("input-0").value !== "" && document.getElementById("input-1").value !== ""`);
    await type("input-0", "[[1, 2, 3], [4, 5, 6], [7, 8, 9]]");
    await type("input-1", "[[0, -1]]");
    await click("#go");
    await until(`document.querySelectorAll("#outputs .cell").length > 0`);
    assert.equal(await cells("#outputs"), "1 3 4 6 7 9");
    if (pictures) {
      await size(1100);
      await picture(join(pictures, "model.png"));
      await scheme("dark");
      await picture(join(pictures, "dark.png"));
      await size(360, true);
      await picture(join(pictures, "phone.png"));
      await size(1100);
      await scheme("light");
    }
    await size(320, true);
    assert.ok(await evaluate(`document.documentElement.scrollWidth <= innerWidth`), "the page is wider than a phone");
    await size(1100);

    // A fault of a value stands at its field, one of the run below the button.
    await type("input-1", "[[0, 0.5]]");
    await click("#go");
    await until(`!document.getElementById("fault-1").hidden`);
    assert.match(await text("#fault-1"), /0\.5 at \[0, 1\] is not a valid int64/);
    assert.equal(await cells("#outputs"), "");
    await type("input-1", "[[0, 7]]");
    await click("#go");
    await until(`!document.getElementById("run-failure").hidden`);
    assert.match(await text("#run-failure"), /= 7 is out of range/);
    if (pictures) await picture(join(pictures, "failure.png"));

    // After a stop a new engine takes over.
    await evaluate(`engine.stop("stopped")`);
    await type("input-1", "random [1, 2] seed 3");
    await click("#go");
    await until(`document.querySelectorAll("#outputs .cell").length === 6`);

    // Scripts in a picture don't run.
    await evaluate(`showPicture('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100"><rect width="200" height="100" fill="none" stroke="currentColor"/><text x="20" y="50">Gather</text></svg>')`);
    assert.equal(await text("#canvas text"), "Gather");
    const before = await evaluate(`document.querySelector("#canvas svg").clientWidth`);
    await click("#zoom-in");
    assert.ok(await evaluate(`document.querySelector("#canvas svg").clientWidth`) > before);
    assert.deepEqual(errors, []);
    await evaluate(`showPicture('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" onload="window.ran = 1"><script>window.ran = 1</script></svg>')`);
    await new Promise((done) => setTimeout(done, 100));
    assert.equal(await evaluate(`window.ran === undefined`), true);
  });
  console.log("chromium: the page works");
}
