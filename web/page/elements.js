// Elements, lists, failures. Texts from models are only ever set as textContent.

const $ = (id) => document.getElementById(id);

/** An element with attributes and children; texts become text nodes. */
function element(name, attributes = {}, ...children) {
  return furnish(document.createElement(name), attributes, children);
}

/** As `element`, of SVG. */
function drawn(name, attributes = {}, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function furnish(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

const button = (text, onclick, attributes = {}) => element("button", { type: "button", onclick, ...attributes }, text);

/** Says something to people who don't see the page change. */
function say(text) {
  $("said").textContent = text;
}

/** A table with a head. */
function list(columns, rows) {
  const cell = (name) => (child) => element(name, {}, child);
  return element(
    "table",
    { class: "list" },
    element("thead", {}, element("tr", {}, ...columns.map((column) => element("th", { scope: "col" }, column)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell("td"))))),
  );
}

/** Shows an error, or hides it if there is none. `accept` loads with a departure from the standard allowed. */
function fail(place, error, allow = [], accept = null) {
  place.replaceChildren();
  place.hidden = !error;
  if (!error) return;
  const causes = error.causes ?? [];
  // The message of several faults begins with the gravest, which is in the list too.
  const several = causes.length > 1 && causes.some(({ message }) => error.message.startsWith(`${message}\n`));
  const { needs } = error;
  const lacking = needs && `${needs.missing_operators} of the ${needs.operators} operators that the model needs aren't implemented, in ${needs.missing_nodes} of ${needs.nodes} nodes:`;
  place.append(element("p", {}, several ? `${error.faults} faults` : lacking ?? error.message));
  if (needs) {
    const item = ({ domain, operator, version, nodes, reason, first }) => {
      const label = `${domain ? `${domain}::` : ""}${operator}${version === null ? "" : `-${version}`}`;
      return element("li", {}, element("b", {}, label), ` in ${nodes} ${nodes === 1 ? "node" : "nodes"}, first ${first.node ?? `#${first.node_index}`}: ${reason}`);
    };
    place.append(element("ul", {}, ...needs.missing.map(item)));
  }
  const others = causes.filter((cause) => cause.message !== error.message && !(needs && cause.kind === "unsupported"));
  if (others.length > 0) place.append(element("ul", {}, ...others.map((cause) => element("li", {}, cause.message))));
  if (causes.length > 0 && error.faults > causes.length) place.append(element("p", {}, `${error.faults} faults in all`));
  if (accept && allow.length > 0) {
    const text = `Accept ${allow.map((name) => name.replaceAll("_", " ")).join(", ")}`;
    place.append(button(text, () => accept(allow)));
  }
}

/** Marks a field as wrong, or as right if there is no message. */
function mark(field, place, message) {
  field.setAttribute("aria-invalid", String(Boolean(message)));
  place.textContent = message ?? "";
  place.hidden = !message;
}

/** Gives a file to the user. */
function download(name, content, type = "application/octet-stream") {
  const link = element("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
