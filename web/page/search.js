// The list of nodes, and the search among them: names, operators, values.

/** Maximum number of nodes that are listed. */
const MAX_LISTED = 400;

let hits = [];
let hit = -1;

const rowOf = ([place, operator, name, outputs, inputs, shape, fate]) => ({ place, operator, name, outputs, inputs, shape, fate });

function findNodes(text) {
  const wanted = text.trim().toLowerCase();
  const has = (part) => part.toLowerCase().includes(wanted);
  return current.nodes.filter(({ operator, name, outputs, inputs }) => !wanted || has(operator) || has(name) || outputs.some(has) || inputs.some(has));
}

function search() {
  const text = $("search").value;
  const found = findNodes(text);
  [hits, hit] = [text.trim() ? found : [], -1];
  listNodes(text.trim() || $("computed").checked ? found : found.filter(({ fate }) => fate !== "computed at load"));
  for (const { g, node, group } of canvas.boxes.values()) {
    const is = hits.length > 0 && hits.some(({ place }) => place === node || group?.includes(place));
    g.classList.toggle("hit", is);
  }
  $("found").textContent = !text.trim() ? "" : hits.length === 1 ? "1 node" : `${hits.length.toLocaleString("en")} nodes`;
}

/** Goes to the next or the last hit. */
async function nextHit(by) {
  if (hits.length === 0) return;
  hit = (hit + by + hits.length) % hits.length;
  const { place, operator, name } = hits[hit];
  $("found").textContent = `${hit + 1} of ${hits.length.toLocaleString("en")}`;
  await goTo(place);
  $("search").focus();
  say(`${hit + 1} of ${hits.length}: ${operator} ${name}`);
}

/** The nodes with the types that they give. This is the graph of a phone. */
function listNodes(found) {
  const row = ({ place, operator, name, outputs, shape, fate }) => {
    const is = marks.first.includes(place) ? "NaN begins here" : place === marks.blamed ? "the run failed here" : current.faulty.has(place) ? "departs from the standard" : fate;
    return element("li", {}, element("button", { type: "button", class: is && is !== fate ? "node bad" : "node", "data-place": place, onclick: () => goTo(place) },
      element("b", {}, operator), element("span", {}, name || outputs[0] || ""), element("code", { class: "type" }, [shape, is].filter(Boolean).join(" · "))));
  };
  const rows = found.slice(0, MAX_LISTED).map(row);
  $("nodes-list").replaceChildren(...rows);
  const more = found.length - rows.length;
  $("nodes-more").textContent = more > 0 ? `and ${more.toLocaleString("en")} more: search for them` : found.length === 0 ? "No such node." : "";
}

function prepareSearch() {
  $("search").oninput = search;
  $("search").onkeydown = (event) => {
    if (event.key === "Enter") nextHit(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") {
      $("search").value = "";
      search();
      canvas.active?.g.focus();
    } else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select");
    if ((event.key === "/" && !typing) || (event.key === "f" && (event.ctrlKey || event.metaKey) && !typing)) {
      event.preventDefault();
      $("search").focus();
      $("search").select();
    }
  });
}
