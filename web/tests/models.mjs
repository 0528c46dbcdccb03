// Small models, written message by message.

const varint = (value) => {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
    if (rest < 128n) return Buffer.from(bytes);
  }
};

/** A field with a text, bytes or messages. */
const bytes = (number, ...parts) => {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.concat([varint((number << 3) | 2), varint(content.length), content]);
};

const int = (number, value) => Buffer.concat([varint(number << 3), varint(value)]);

export const FLOAT = 1;
export const BOOL = 9;

export const tensor = (name, dims, floats) => Buffer.concat([
  ...dims.map((size) => int(1, size)), int(2, FLOAT), bytes(8, name), bytes(9, Buffer.from(new Float32Array(floats).buffer)),
]);

export const ints = (name, list) => bytes(5, bytes(1, name), ...list.map((value) => int(8, value)), int(20, 7));
export const one = (name, value) => bytes(5, bytes(1, name), int(3, value), int(20, 2));
export const body = (name, graph) => bytes(5, bytes(1, name), bytes(6, graph), int(20, 5));

export const node = (operator, inputs, outputs, name = "", attributes = []) =>
  bytes(1, ...inputs.map((input) => bytes(1, input)), ...outputs.map((output) => bytes(2, output)), bytes(3, name), bytes(4, operator), ...attributes);

/** A value with its element type and shape, whose symbols are texts; no shape if `dims` is null. */
const value = (number, [name, type, dims]) => {
  const dim = (size) => bytes(1, typeof size === "string" ? bytes(2, size) : int(1, size));
  const shape = dims === null ? [] : [bytes(2, ...dims.map(dim))];
  return bytes(number, bytes(1, name), bytes(2, bytes(1, int(1, type), ...shape)));
};

export const graph = (nodes, inputs, outputs, initializers = []) => Buffer.concat([
  ...nodes, bytes(2, "graph"), ...initializers.map((tensor) => bytes(5, tensor)),
  ...inputs.map((input) => value(11, input)), ...outputs.map((output) => value(12, output)),
]);

export const model = (graph, opset = 17, ...more) => Buffer.concat([int(1, 8), bytes(7, graph), bytes(8, bytes(1, ""), int(2, opset)), ...more]);

/** An image through a Conv whose weights are given, then a Log: negative numbers become NaN. */
export const LOGARITHM = model(graph(
  [
    node("Conv", ["image", "weights"], ["c"], "filter", [ints("kernel_shape", [1, 1]), one("group", 1), ints("strides", [1, 1])]),
    node("Log", ["c"], ["l"], "logarithm"),
    node("Cast", ["l"], ["k"], "same", [one("to", FLOAT)]),
    node("Relu", ["k"], ["y"], "positive"),
  ],
  [["image", FLOAT, [1, 3, 2, 2]]], [["y", FLOAT, null]], [tensor("weights", [1, 3, 1, 1], [1, 0, 0])],
));

export const CHOICE = model(graph(
  [node("If", ["c"], ["y"], "choose", [
    body("then_branch", graph([node("Add", ["x", "x"], ["a"], "double")], [], [["a", FLOAT, null]])),
    body("else_branch", graph([node("Neg", ["x"], ["b"], "minus")], [], [["b", FLOAT, null]])),
  ])],
  [["c", BOOL, []], ["x", FLOAT, [3]]], [["y", FLOAT, null]],
));

/** 400 nodes in four scopes. */
export const LARGE = model(graph(
  Array.from({ length: 400 }, (_, k) => node("Relu", [k === 0 ? "x" : `v${k - 1}`], [k === 399 ? "y" : `v${k}`], `/net/layer.${Math.floor(k / 100)}/Relu_${k}`)),
  [["x", FLOAT, ["N", 2]]], [["y", FLOAT, ["N", 2]]],
));

/** The declared shape of its output isn't the one that follows. */
export const WRONG = model(graph(
  [node("Transpose", ["x"], ["y"], "turn", [ints("perm", [1, 0])])], [["x", FLOAT, [2, 3]]], [["y", FLOAT, [2, 3]]],
));

/** A node of a family of operators that is a feature of the library, for each of them. */
export const FAMILIES = model(graph(
  [
    node("Binarizer", ["x"], ["a"], "", [bytes(7, "ai.onnx.ml")]), node("Resize", ["x", "", "s"], ["b"]), node("DFT", ["x"], ["c"]),
    node("RegexFullMatch", ["t"], ["d"], "", [bytes(5, bytes(1, "pattern"), bytes(4, "a+"), int(20, 3))]),
  ],
  [["x", FLOAT, [1, 2, 1]], ["s", FLOAT, [3]], ["t", 8, [1]]], [["a", FLOAT, null]],
), 20, bytes(8, bytes(1, "ai.onnx.ml"), int(2, 1)));

/** A value of two parts, of which one leaves through another node. */
export const SPLIT = model(graph(
  [node("Split", ["x"], ["first", "second"], "halves", [one("num_outputs", 2)]), node("Neg", ["second"], ["z"], "minus")],
  [["x", FLOAT, [4]]], [["first", FLOAT, [2]], ["z", FLOAT, [2]]],
), 18);

/** The text form of a model with external data. */
export const TEXT = `<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y) <float[2] w = ["location": "w.bin"]> { y = Add (x, w) }
`;

/** Ten nodes that are computed at load, and one that runs. */
export const CONSTANTS = model(graph(
  [
    ...Array.from({ length: 10 }, (_, k) => node("Neg", [`c${k}`], [`c${k + 1}`], `minus ${k}`)), node("Add", ["x", "c10"], ["y"], "sum"),
  ],
  [["x", FLOAT, [2]]], [["y", FLOAT, [2]]], [tensor("c0", [2], [1, 2])],
));
