// Calls the WebAssembly module. Runs in a worker of the page, and under Node for the tests.
"use strict";

/** Instantiates the module. Returns `call(request, data)`, which returns the answer as an object; bytes beside it are `file`. */
async function onnxref(wasm) {
  const { instance } = await WebAssembly.instantiate(wasm, {});
  const { memory, text, data, call, answer, answer_len, file, file_len } = instance.exports;

  const write = (place, bytes) => {
    const at = place(bytes.length);
    if (bytes.length > 0 && at === 0) {
      throw new Error(`there is no memory for ${bytes.length} bytes`);
    }
    new Uint8Array(memory.buffer, at >>> 0, bytes.length).set(bytes);
  };
  const read = () => new TextDecoder().decode(new Uint8Array(memory.buffer, answer() >>> 0, answer_len() >>> 0));

  return (request, bytes = new Uint8Array()) => {
    write(text, new TextEncoder().encode(JSON.stringify(request)));
    write(data, bytes);
    try {
      call();
    } catch (trap) {
      throw new Error(`${trap.message}: ${read()}`);
    }
    const answered = JSON.parse(read());
    const len = file_len() >>> 0;
    if (len > 0) answered.file = new Uint8Array(memory.buffer, file() >>> 0, len).slice();
    return answered;
  };
}

if (typeof WorkerGlobalScope !== "undefined") {
  // The first message is the module; each other one is a request.
  let ready;
  self.onmessage = async ({ data: { wasm, id, request, data } }) => {
    if (wasm) {
      ready = onnxref(wasm);
      return;
    }
    try {
      const call = await ready;
      const start = performance.now();
      const answer = call(request, data);
      self.postMessage({ id, answer, milliseconds: performance.now() - start });
    } catch (error) {
      self.postMessage({ id, crash: error.message });
    }
  };
} else if (typeof module !== "undefined") {
  module.exports = { onnxref };
}
