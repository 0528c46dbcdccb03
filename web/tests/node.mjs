// The library as WebAssembly under Node: official cases, networks, and errors. node node.mjs MODULE.wasm NETWORKS
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { CASES, literal } from "./cases.mjs";
import { FAMILIES } from "./models.mjs";

const { onnxref } = createRequire(import.meta.url)("../page/engine.js");
const call = await onnxref(readFileSync(process.argv[2]));
const run = (model, inputs) => {
  const feeds = Object.entries(inputs).map(([name, tensor]) => ({ literal: [name, literal(tensor)] }));
  return call({ run: { model, inputs: feeds } });
};

for (const { name, model: bytes, inputs, output } of CASES) {
  const { model, description, error } = call({ load: { allow: [] } }, bytes);
  assert.equal(error, undefined, name);
  assert.deepEqual(description.inputs.map((input) => input.name), ["data", "indices"]);
  const { outputs } = run(model, inputs);
  assert.equal(outputs.length, 1);
  assert.deepEqual(outputs[0].value.shape, output.shape, name);
  assert.deepEqual(outputs[0].value.values.map(Number), output.values.map(Number), name);

  const wrong = { ...inputs, indices: { ...inputs.indices, values: inputs.indices.values.map(() => "99") } };
  assert.match(run(model, wrong).error.message, /= 99 is out of range for axis \d/, name);
  call({ unload: { model } });
  assert.match(run(model, inputs).error.message, /not loaded/);
}

// No family of operators is left out.
const families = call({ load: { allow: [] } }, FAMILIES);
assert.equal(families.error, undefined, JSON.stringify(families.error));
call({ unload: { model: families.model } });

const damaged = call({ load: { allow: [] } }, CASES[0].model.subarray(0, 60));
assert.equal(damaged.error.kind, "model");
// Models nested as deep as the format's limit need no more stack than there is.
const nested = (depth) => {
  let bytes = Buffer.alloc(0);
  const field = (key, content) => {
    const length = [];
    for (let rest = content.length; ; rest >>= 7) {
      length.push(rest > 127 ? (rest & 127) | 128 : rest);
      if (rest < 128) break;
    }
    return Buffer.concat([Buffer.from([key, ...length]), content]);
  };
  // A graph (field 6) in an attribute (5) in a node (1).
  for (let k = 0; k < depth; k += 1) bytes = field(0x0a, field(0x2a, field(0x32, bytes)));
  return field(0x3a, bytes);
};
for (const depth of [10, 30, 1000, 20000]) assert.ok(call({ load: { allow: [] } }, nested(depth)).error, String(depth));
assert.ok(call({ run: { model: 0, inputs: [{ literal: ["x", "[".repeat(1e5)] }] } }).error);

// The hashes of `onnxref hash`.
const folder = process.argv[3];
const hashes = new URL("../../tests/conformance/hashes.txt", import.meta.url);
const known = new Map(readFileSync(hashes, "utf8").trimEnd().split("\n").map((line) => line.split(" ")));
const networks = readdirSync(folder);
for (const name of networks) {
  const { model, description } = call({ load: { allow: [] } }, readFileSync(`${folder}/${name}/model.onnx`));
  const feeds = description.inputs.flatMap((input, k) => {
    const file = `${folder}/${name}/test_data_set_0/input_${k}.pb`;
    if (!existsSync(file)) return [];
    call({ file: { name: `${k}` } }, readFileSync(file));
    return [{ file: [input.name, `${k}`] }];
  });
  const answer = call({ run: { model, inputs: feeds } });
  assert.equal(answer.hash, known.get(name), `${name}: ${JSON.stringify(answer.error)}`);
  call({ unload: { model } });
}
assert.equal(networks.length, 31);
assert.match(call({ run: { model: 0, inputs: [] } }).error.message, /not loaded/);
console.log(`node: ${CASES.length} official cases, ${networks.length} networks bit by bit`);
