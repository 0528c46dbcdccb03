// The page comes to life.

function prepareTabs() {
  for (const [k, name] of TABS.entries()) {
    $(`tab-${name}`).onclick = () => reveal(name);
    $(`tab-${name}`).onkeydown = ({ key }) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[key];
      if (!by) return;
      const next = TABS[(k + by + TABS.length) % TABS.length];
      reveal(next);
      $(`tab-${next}`).focus();
    };
  }
  $("sheet-close").onclick = closeSheet;
  $("side").onkeydown = ({ key }) => {
    if (key !== "Escape") return;
    if (!isNarrow()) canvas.active?.g.focus();
    else if (!$("sheet-close").hidden) closeSheet();
  };
  $("badge").onclick = () => reveal("model");
  $("toggle").onclick = () => {
    const wide = $("stage").parentElement.classList.toggle("wide");
    $("toggle").setAttribute("aria-expanded", String(!wide));
  };
}

function prepareFiles() {
  for (const id of ["files", "files-too"]) {
    $(id).onchange = ({ target }) => {
      receive(target.files);
      target.value = "";
    };
  }
  // The whole page takes files.
  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, (event) => {
      event.preventDefault();
      document.body.classList.add("over");
    });
  }
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("over");
    receive(event.dataTransfer.files);
  });
}

function start() {
  prepareTabs();
  prepareFiles();
  prepareCanvas();
  prepareSearch();
  $("run").onsubmit = run;
  $("stop").onclick = () => engine.stop("stopped");
  $("randomize").onclick = () => current.fields.filter(({ input }) => input.tensor).forEach(randomize);
  // The list of nodes has the same switch, for phones.
  const switches = [$("computed"), $("listed")];
  for (const each of switches) each.onchange = () => {
    for (const other of switches) other.checked = each.checked;
    search();
    follow([]);
  };
  // Groups have no boxes if nothing is folded.
  $("folded").onchange = () => follow(canvas.steps.filter(({ body }) => body));
  $("save-svg").onclick = () => canvas.svg && download(`${fileName(stem(current.name))}.svg`, svgFile(), "image/svg+xml");
  $("wrong").onclick = () => {
    $("indices").value = example.wrong;
    runExample();
  };
  $("reset").onclick = () => choose(example);
  for (const name of ["data", "indices"]) {
    $(name).oninput = () => (current.name === `${example.operator}: ${short(example.case)}` ? runExample() : null);
  }
  addEventListener("popstate", restore);
  prepareExamples().catch((error) => fail($("example-failure"), { message: error.message }));
}

start();
