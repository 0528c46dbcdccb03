// Values as tables.

/** A tensor as matrices of cells; another value as text. Returns the element and its cells in order. */
function show(value) {
  const { shape, values, text } = value;
  if (!values) return { shown: text !== undefined ? element("span", {}, text) : composite(value), cells: [] };
  if (values.length === 0) return { shown: element("span", { class: "type" }, "no elements"), cells: [] };
  const [rows, columns] = [shape.at(-2) ?? 1, shape.at(-1) ?? 1];
  const cells = values.map((text) => element("td", { class: "cell" }, text));
  const matrices = element("div", { class: "matrices" });
  for (let at = 0; at < cells.length; at += rows * columns) {
    const table = element("table");
    if (shape.length > 2) table.append(element("caption", {}, `[${lead(shape.slice(0, -2), at / (rows * columns))}, :, :]`));
    for (let row = 0; row < rows; row += 1) {
      const from = at + row * columns;
      table.append(element("tr", {}, ...cells.slice(from, from + columns)));
    }
    matrices.append(table);
  }
  return { shown: matrices, cells };
}

/** The position of the k-th entry of a shape. */
function lead(shape, k) {
  const position = [];
  for (const size of [...shape].reverse()) {
    position.unshift(k % size);
    k = Math.floor(k / size);
  }
  return position.join(", ");
}

function composite({ sequence, optional, map, keys }) {
  if (optional !== undefined) return optional ? show(optional).shown : element("span", {}, "none");
  const entry = (key, value) => element("tr", {}, element("td", {}, key), element("td", {}, show(value).shown));
  return element("table", {}, ...(sequence ?? map ?? []).map((value, k) => entry(keys?.[k] ?? String(k), value)));
}

/** A number in few digits. */
function brief(number, digits = 4) {
  if (typeof number !== "number") return String(number);
  if (Number.isInteger(number) && Math.abs(number) < 1e7) return String(number);
  const text = number.toPrecision(digits);
  return String(text.includes("e") ? Number(text).toExponential() : Number(text));
}

/** The range of a value's numbers, and how many are NaN or infinite. */
function range({ type, statistics }) {
  if (!statistics) return "";
  if (type === "bool" && statistics.elements > 0) {
    const all = statistics.elements;
    const yes = all - statistics.zeros;
    return all === 1 ? String(yes === 1) : `${yes.toLocaleString("en")} of ${all.toLocaleString("en")} true`;
  }
  const { least, greatest, elements, nan, infinite } = statistics;
  const parts = [];
  if (least !== null) parts.push(least === greatest ? `all ${brief(least, 3)}` : `${brief(least, 3)} .. ${brief(greatest, 3)}`);
  if (elements === 1 && least !== null) parts[0] = brief(least);
  if (nan) parts.push(`${nan.toLocaleString("en")} NaN`);
  if (infinite) parts.push(`${infinite.toLocaleString("en")} infinite`);
  return elements === 0 ? "no elements" : parts.join(", ");
}

/** Statistics, histogram and first elements of a value. */
function showNumbers({ statistics, bars, text, times }) {
  const shown = element("div", { class: "numbers" });
  if (statistics && statistics.elements > 0) {
    const facts = [["least", statistics.least], ["greatest", statistics.greatest], ["mean", statistics.mean], ["zeros", statistics.zeros],
      ["NaN", statistics.nan], ["infinite", statistics.infinite], ["beyond float16", statistics.beyond_float16]];
    const worth = ([name, value]) => value !== null && value !== undefined && (value !== 0 || ["least", "greatest", "mean"].includes(name));
    shown.append(element("dl", { class: "facts" }, ...facts.filter(worth).map(([name, value]) =>
      element("div", { class: name === "NaN" || name === "infinite" ? "bad-fact" : false }, element("dt", {}, name), element("dd", {}, brief(value))))));
  }
  if (bars?.length > 0) shown.append(histogram(bars, statistics));
  if (times > 1) shown.append(element("p", { class: "type" }, `of the last of ${times.toLocaleString("en")} trips`));
  if (text) shown.append(element("pre", { tabindex: "0", "aria-label": "First elements" }, text));
  return shown;
}

function histogram(bars, { least, greatest }) {
  const most = Math.max(...bars);
  const height = (count) => (count > 0 ? Math.max(1, (count / most) * 46) : 0);
  const bar = (count, k) => drawn("rect", { x: k * 8, y: 48 - height(count), width: 7, height: height(count) }, drawn("title", {}, count.toLocaleString("en")));
  const label = `Histogram from ${brief(least)} to ${brief(greatest)}, most in the ${bars.indexOf(most) + 1}. of ${bars.length} bars`;
  const svg = drawn("svg", { class: "histogram", viewBox: `0 0 ${bars.length * 8} 48`, preserveAspectRatio: "none", role: "img", "aria-label": label }, ...bars.map(bar));
  return element("figure", {}, svg, element("figcaption", {}, element("span", {}, brief(least)), element("span", {}, brief(greatest))));
}

/** A text whose parts between backticks are code. */
const coded = (text) => element("span", {}, ...text.split("`").map((part, k) => (k % 2 === 1 ? element("code", {}, part) : part)));
