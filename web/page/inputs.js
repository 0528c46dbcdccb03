// Inputs: a field for each, random values, and files: .npy, .npz, .pb, pictures.

/** Longer random tensors are a text such as `random [1, 3, 224, 224] seed 5`. */
const MAX_TYPED = 512;
const RANDOM = /^\s*random\s*\[([\d\s,]*)\]\s*(?:seed\s*(\d+))?\s*$/;

/** What a picture's bytes become: a name, and what is done to a number from 0 to 255 of a channel. */
const MEAN = [0.485, 0.456, 0.406];
const DEVIATION = [0.229, 0.224, 0.225];
const SCALES = {
  "0 to 1: x / 255": (x) => x / 255,
  "0 to 255, as it is": (x) => x,
  "-1 to 1: x / 127.5 - 1": (x) => x / 127.5 - 1,
  "ImageNet: (x / 255 - mean) / std": (x, channel) => (x / 255 - MEAN[channel % 3]) / DEVIATION[channel % 3],
};

/** A field for each input, and one for each symbol of their shapes. */
function makeFields(inputs) {
  current.fields = inputs.map(makeField);
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
}

function makeField(input, k) {
  const fault = element("p", { class: "fault", id: `fault-${k}`, hidden: true });
  const text = element("textarea", {
    id: `input-${k}`, spellcheck: "false", autocomplete: "off", "aria-describedby": `fault-${k}`, oninput: () => mark(text, fault, null),
    placeholder: input.default ? "default" : input.tensor ? "[[1, 2], [3, 4]]" : "[[1, 2], [3]]",
  });
  // A sequence that many models take.
  if (/^seq\((b?float|double|u?int)\d*\)$/.test(input.type)) text.value = "[[1, 2], [3, 4]]";
  const label = element("label", { for: `input-${k}` }, input.label, " ", element("code", { class: "type" }, `${input.type} ${input.shape}`));
  const random = button("Random", () => randomize(field), { class: "small", "aria-label": `Random values for ${input.label}` });
  const pick = element("input", { type: "file", accept: ".npy,.npz,.pb,image/*", onchange: ({ target }) => {
    if (target.files.length > 0) give(field, target.files[0]);
    target.value = "";
  } });
  const file = element("label", { class: "pick" }, pick, "File…", element("span", { class: "hidden" }, ` for ${input.label}: picture, .npy, .npz or .pb`));
  const chip = element("div", { class: "chip", hidden: true });
  const field = { input, text, fault, chip, file: null, holder: element("div", { class: "field" }, label, text, chip, fault, element("p", { class: "buttons" }, input.tensor ? random : "", file)) };
  return field;
}

const whole = (id, otherwise) => {
  const value = Number.parseInt($(id)?.value, 10);
  return Number.isNaN(value) ? otherwise : value;
};

function randomSpec(shape, seed) {
  return { shape, seed, low: whole("low", 0), high: whole("high", 1) };
}

async function randomize(field) {
  const { input, text, fault } = field;
  const shape = (input.sizes ?? [2]).map((size) =>
    typeof size === "number" ? size : size === null ? 2 : Math.max(0, whole(current.symbols.get(size), 2)));
  const seed = Math.floor(Math.random() * 1e6);
  take(field, null);
  mark(text, fault, null);
  if (shape.reduce((product, size) => product * size, 1) > MAX_TYPED) {
    text.value = `random [${shape.join(", ")}] seed ${seed}`;
    return;
  }
  const random = randomSpec(shape, seed);
  const before = text.value;
  const answer = await current.model.ask((model) => ({ random: { model, input: input.name, random } }));
  // What somebody entered meanwhile stays.
  if (field.file || text.value !== before) return;
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

/** A field takes a file's value instead of a text; with null it takes a text again. */
function take(field, file, ...shown) {
  field.file = file;
  field.text.hidden = Boolean(file);
  field.chip.hidden = !file;
  field.chip.replaceChildren(...shown);
  if (file) field.chip.append(button("Remove", () => take(field, null), { class: "small", "aria-label": `Remove the file for ${field.input.label}` }));
  mark(field.text, field.fault, null);
}

const stem = (name) => name.replace(/^.*\//, "").replace(/\.[^.]*$/, "");

/** Gives a file to a field. A .npz file also gives its other arrays to the inputs of their names. */
async function give(field, file) {
  try {
    if (/^image\//.test(file.type) || /\.(png|jpe?g|webp|gif|bmp)$/i.test(file.name)) return await givePicture(field, file);
    const bytes = new Uint8Array(await file.arrayBuffer());
    if (!/\.npz$/i.test(file.name)) return take(field, bytes, element("p", {}, `${file.name}, ${bytes.length.toLocaleString("en")} bytes`));
    const arrays = (await unzip(bytes)).filter(([name]) => name.endsWith(".npy"));
    const is = (entry, name) => [`${name}.npy`, `${escaped(name)}.npy`].includes(entry);
    const all = current.fields.map((own) => [own, arrays.find(([entry]) => is(entry, own.input.name))]).filter(([, array]) => array);
    if (all.length === 0 && arrays.length === 1) all.push([field, arrays[0]]);
    if (all.length === 0) throw new Error(`it has no array of the name of an input: ${arrays.map(([name]) => stem(name)).join(", ") || "it is empty"}`);
    for (const [own, [name, array]] of all) take(own, array, element("p", {}, `${stem(name)} of ${file.name}, ${array.length.toLocaleString("en")} bytes`));
  } catch (error) {
    mark(field.text, field.fault, `${file.name}: ${error.message}`);
  }
}

/** Files that were dropped on an open model go to the inputs of their names, to `input_0` and so on, or to the only one. */
async function giveAll(files) {
  for (const file of files) {
    const number = /^input_(\d+)$/.exec(stem(file.name))?.[1];
    const named = current.fields.find(({ input }) => input.name === stem(file.name)) ?? current.fields[Number(number)];
    const field = named ?? current.fields.find(({ file, text }) => !file && !text.value) ?? current.fields[0];
    if (field) await give(field, file);
  }
}

/** Which axes of an input's shape are rows, columns and channels. */
function axesOf(sizes, last) {
  const rank = sizes?.length ?? 4;
  if (rank !== 3 && rank !== 4) return null;
  const at = rank - 3;
  return last ? { rows: at, columns: at + 1, channels: at + 2 } : { rows: at + 1, columns: at + 2, channels: at };
}

async function givePicture(field, file) {
  const { input } = field;
  const arrays = { float32: [Float32Array, "<f4"], float64: [Float64Array, "<f8"], uint8: [Uint8Array, "|u1"], any: [Float32Array, "<f4"] };
  const sizes = input.sizes ?? [1, 3, null, null];
  const known = arrays[input.type];
  if (!known) throw new Error(`a picture can be float32, float64 or uint8, but the input is ${input.type}`);
  if (!axesOf(sizes)) throw new Error(`a picture has 3 axes, or 4 with a batch, but the input has ${sizes.length}`);
  const bitmap = await createImageBitmap(file);
  const isChannels = (size) => [1, 3, 4].includes(size);
  const lastFits = isChannels(sizes.at(-1)) && !isChannels(sizes.at(-3));
  const options = (name, texts, choice) => {
    const select = element("select", { onchange: fill, "aria-label": name }, ...texts.map((text) => element("option", { value: text }, text)));
    select.value = choice;
    return select;
  };
  const batch = sizes.length === 4 ? "N" : "";
  const layouts = [`${batch}CHW`, `${batch}HWC`];
  const layout = options("Layout", layouts, layouts[lastFits ? 1 : 0]);
  const scale = options("Scale", Object.keys(SCALES), Object.keys(SCALES)[input.type === "uint8" ? 1 : 0]);
  const view = element("canvas", { class: "preview", role: "img", "aria-label": `Preview of ${file.name}` });
  const note = element("p", { class: "type" });
  fill();
  function fill() {
    const axes = axesOf(sizes, layout.value.endsWith("C"));
    const size = (axis, otherwise) => (typeof sizes[axis] === "number" ? sizes[axis] : otherwise);
    const [height, width, channels] = [size(axes.rows, bitmap.height), size(axes.columns, bitmap.width), size(axes.channels, 3)];
    const shape = sizes.map((_, axis) => (axis === axes.rows ? height : axis === axes.columns ? width : axis === axes.channels ? channels : 1));
    if (!isChannels(channels) || !(width > 0 && height > 0) || width * height > 1 << 26) {
      take(field, null);
      return mark(field.text, field.fault, `${file.name}: a picture has 1, 3 or 4 channels, but ${layout.value} gives ${channels} of ${width} x ${height}: choose another layout`);
    }
    [view.width, view.height] = [width, height];
    const context = view.getContext("2d", { willReadFrequently: true });
    context.drawImage(bitmap, 0, 0, width, height);
    const pixels = context.getImageData(0, 0, width, height).data;
    const numbers = new known[0](width * height * channels);
    const map = SCALES[scale.value];
    const last = axes.channels === sizes.length - 1;
    for (let at = 0; at < width * height; at += 1) {
      const [r, g, b] = [pixels[4 * at], pixels[4 * at + 1], pixels[4 * at + 2]];
      const of = channels === 1 ? [0.299 * r + 0.587 * g + 0.114 * b] : [r, g, b, pixels[4 * at + 3]];
      for (let c = 0; c < channels; c += 1) numbers[last ? at * channels + c : c * width * height + at] = map(of[c], c);
    }
    const moved = width !== bitmap.width || height !== bitmap.height ? `, resized from ${bitmap.width} x ${bitmap.height}` : "";
    note.textContent = `${file.name}: ${input.type === "any" ? "float32" : input.type} [${shape.join(", ")}]${moved}${channels === 1 ? ", grey" : ", RGB"}`;
    take(field, npy(known[1], shape, numbers), view, note, element("p", { class: "buttons" }, layout, scale));
  }
}
