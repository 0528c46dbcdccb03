// Writes the page as one file: node assemble.mjs MODULE.wasm PAGE.html
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const [wasm, output] = process.argv.slice(2);
const read = (name) => readFileSync(new URL(name, import.meta.url), "utf8");
const [page, style, engine] = [read("index.html"), read("style.css"), read("engine.js")];
// One script, so that one hash is enough.
const SCRIPTS = ["elements", "client", "values", "archive", "canvas", "marks", "details", "search", "inputs", "run", "model", "examples", "page"];
const script = `"use strict";\n\n${SCRIPTS.map((name) => read(`${name}.js`)).join("\n")}`;
for (const text of [engine, script]) {
  if (/<\/script/i.test(text)) throw new Error("a script contains its own end");
}

// The page runs these scripts only, and asks no server for anything.
const hash = `'sha256-${createHash("sha256").update(script).digest("base64")}'`;
const policy = [
  "default-src 'none'", `script-src ${hash} 'wasm-unsafe-eval'`, "worker-src blob:", "style-src 'unsafe-inline'",
  "img-src data:", "base-uri 'none'", "form-action 'none'",
].join("; ");
const parts = {
  policy: `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
  style: `<style>${style}</style>`,
  engine:
    `<script type="text/plain" id="engine">${engine}</script>\n` +
    `<script type="text/plain" id="wasm">${gzipSync(readFileSync(wasm), { level: 9 }).toString("base64")}</script>`,
  script: `<script>${script}</script>`,
};
const whole = page.replace(/<!-- (\w+) -->/g, (_, name) => parts[name]);
writeFileSync(output, whole);
console.log(`${output}: ${Math.ceil(whole.length / 1024)} KiB`);
