// The official cases of the Gather family, read from their files.
import { readFileSync } from "node:fs";

const root = new URL("../../onnx-test-data/gather/onnx-1.12.0/node/", import.meta.url);

export const CASES = [
  "test_gather_0", "test_gather_1", "test_gather_2d_indices", "test_gather_negative_indices",
  "test_gather_elements_0", "test_gather_elements_1", "test_gather_elements_negative_indices",
  "test_gathernd_example_int32", "test_gathernd_example_float32", "test_gathernd_example_int32_batch_dim1",
].map((name) => {
  const file = (path) => readFileSync(new URL(`${name}/${path}`, root));
  const tensor = (path) => decode(file(`test_data_set_0/${path}`));
  return {
    name,
    path: new URL(`${name}/model.onnx`, root),
    model: file("model.onnx"),
    inputs: { data: tensor("input_0.pb"), indices: tensor("input_1.pb") },
    output: tensor("output_0.pb"),
  };
});

/** Decodes a TensorProto with raw data of float, int32 or int64. */
function decode(bytes) {
  const shape = [];
  let [at, type, raw] = [0, 0, null];
  const varint = () => {
    let [value, shift] = [0n, 0n];
    for (;;) {
      const byte = BigInt(bytes[at++]);
      value |= (byte & 127n) << shift;
      if (byte < 128n) return Number(value);
      shift += 7n;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    if ((key & 7) === 0) {
      const value = varint();
      if (key >> 3 === 1) shape.push(value);
      if (key >> 3 === 2) type = value;
    } else {
      const length = varint();
      if (key >> 3 === 9) raw = Uint8Array.from(bytes.subarray(at, at + length));
      at += length;
    }
  }
  const array = { 1: Float32Array, 6: Int32Array, 7: BigInt64Array }[type];
  if (!array || !raw) throw new Error(`element type ${type} without raw data`);
  // A single as the shortest decimal that reads back the same, which is at most nine digits.
  const print = (v) => (type === 1 ? shortest(v) : String(v));
  return { shape, values: [...new array(raw.buffer)].map(print) };
}

function shortest(single) {
  for (let digits = 1; ; digits += 1) {
    const text = String(Number(single.toPrecision(digits)));
    if (digits === 9 || Math.fround(Number(text)) === single) return text;
  }
}

/** The literal of a tensor. */
export function literal({ shape, values }) {
  const nest = (depth, from, size) => {
    if (depth === shape.length) return values[from];
    const each = size / shape[depth];
    return `[${Array.from({ length: shape[depth] }, (_, k) => nest(depth + 1, from + k * each, each)).join(", ")}]`;
  };
  return nest(0, 0, values.length);
}
