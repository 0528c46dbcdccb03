// The engine is a worker, so that a long run can be stopped and doesn't freeze the page.

const engine = {
  worker: null,
  /** Increases with each worker: models are loaded again after a stop. */
  generation: 0,
  waiting: new Map(),
  last: 0,

  async start() {
    this.wasm ??= unpack($("wasm").textContent);
    const wasm = await this.wasm;
    if (this.worker) return;
    const script = new Blob([$("engine").textContent], { type: "text/javascript" });
    this.worker = new Worker(URL.createObjectURL(script));
    this.generation += 1;
    this.worker.onmessage = ({ data: { id, answer, milliseconds, crash } }) => {
      const { resolve, reject } = this.waiting.get(id) ?? {};
      this.waiting.delete(id);
      if (crash !== undefined) {
        reject?.(new Error(crash));
        this.stop("the engine stopped");
      } else {
        resolve?.({ ...answer, milliseconds });
      }
    };
    this.worker.onerror = (event) => this.stop(event.message || "the engine doesn't start");
    this.worker.postMessage({ wasm });
  },

  /** Asks the engine. The answer has `file` if bytes came with it. With `away`, `data` is gone afterwards, else copied. */
  async ask(request, data, away = false) {
    await this.start();
    return new Promise((resolve, reject) => {
      const id = (this.last += 1);
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, request, data }, away ? [data.buffer] : []);
    });
  },

  stop(why) {
    this.worker?.terminate();
    this.worker = null;
    for (const { reject } of this.waiting.values()) reject(new Error(why));
    this.waiting.clear();
  },
};

/** Base64 of gzip to bytes. */
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  return inflate(bytes, "gzip");
}

/** A model that is loaded when it is first used, and again after a stop. */
class Model {
  constructor(load) {
    this.load = load;
  }

  async open() {
    await engine.start();
    if (this.generation !== engine.generation) {
      this.generation = engine.generation;
      this.answer = this.load();
    }
    return this.answer;
  }

  /** `request` gets the number of the model. `files` are pairs of a name and bytes. An error is an answer with `error`. */
  async ask(request, files = []) {
    try {
      const { model, error } = await this.open();
      if (!model) return { error };
      for (const [name, bytes] of files) engine.ask({ file: { name } }, bytes).catch(() => {});
      return await engine.ask(request(model));
    } catch (error) {
      return { error: { message: error.message, causes: [] } };
    }
  }

  async close() {
    if (this.generation !== engine.generation) return;
    const { model } = await this.answer.catch(() => ({}));
    if (model) engine.ask({ unload: { model } }).catch(() => {});
  }
}
