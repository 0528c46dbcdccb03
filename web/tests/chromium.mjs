// Speaks to headless Chromium by the DevTools protocol, over a pipe.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-quic",
  "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
  "--mute-audio", "--disable-renderer-backgrounding", "--remote-debugging-pipe",
];

/** Opens a page. `act` gets what it needs to use and to look at it; `folder` is for downloads. */
export async function withPage(program, url, act) {
  const folder = mkdtempSync(join(tmpdir(), "onnxref-"));
  const browser = spawn(program, [...FLAGS, `--user-data-dir=${folder}`, "about:blank"], {
    stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    env: { ...process.env, HOME: folder },
  });
  const waiting = new Map();
  const errors = [];
  let [last, rest] = [0, ""];
  browser.on("exit", (code) => waiting.forEach(({ reject }) => reject(new Error(`Chromium ended with ${code}`))));
  browser.on("error", (error) => waiting.forEach(({ reject }) => reject(error)));
  browser.stdio[3].on("error", () => {});
  browser.stdio[4].setEncoding("utf8").on("data", (text) => {
    const parts = (rest + text).split("\0");
    rest = parts.pop();
    for (const part of parts) {
      const { id, result, error, method, params } = JSON.parse(part);
      const { resolve, reject } = waiting.get(id) ?? {};
      waiting.delete(id);
      if (error) reject?.(new Error(error.message));
      else resolve?.(result);
      // Errors of scripts, and what the page's policy refuses.
      if (method === "Runtime.exceptionThrown") errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
      if (method === "Log.entryAdded" && params.entry.level === "error") errors.push(params.entry.text);
    }
  });
  let session;
  const send = (method, params = {}) =>
    new Promise((resolve, reject) => {
      waiting.set((last += 1), { resolve, reject });
      browser.stdio[3].write(`${JSON.stringify({ id: last, method, params, sessionId: session })}\0`);
    });
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  const until = async (expression) => {
    for (const end = Date.now() + 60_000; Date.now() < end; await new Promise((done) => setTimeout(done, 50))) {
      if (await evaluate(expression)) return;
    }
    throw new Error(`after 60 s this is still not so: ${expression}`);
  };
  const picture = async (path) => {
    const { data } = await send("Page.captureScreenshot", { format: "png" });
    writeFileSync(path, Buffer.from(data, "base64"));
  };
  /** Presses a key where the focus is. */
  const press = async (key) => {
    const text = key === "Enter" ? "\r" : key.length === 1 ? key : undefined;
    const windowsVirtualKeyCode = { Enter: 13, Tab: 9 }[key] ?? 0;
    await send("Input.dispatchKeyEvent", { type: "keyDown", key, text, windowsVirtualKeyCode });
    await send("Input.dispatchKeyEvent", { type: "keyUp", key, windowsVirtualKeyCode });
  };
  /** Presses the mouse in the middle of an element, moves it, and lets it go. */
  const drag = async (selector, dx = 0, dy = 0) => {
    const [x, y] = await evaluate(`(() => { const { x, y, width, height } = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect(); return [x + width / 2, y + height / 2]; })()`);
    const mouse = (type, x, y, buttons) => send("Input.dispatchMouseEvent", { type, x, y, button: "left", buttons, clickCount: 1 });
    await mouse("mousePressed", x, y, 1);
    if (dx !== 0 || dy !== 0) for (const part of [0.5, 1]) await mouse("mouseMoved", x + dx * part, y + dy * part, 1);
    await mouse("mouseReleased", x + dx, y + dy, 0);
    return [x, y];
  };
  try {
    const { targetInfos } = await send("Target.getTargets");
    const { targetId } = targetInfos.find(({ type }) => type === "page");
    ({ sessionId: session } = await send("Target.attachToTarget", { targetId, flatten: true }));
    for (const domain of ["Page", "Runtime", "Log", "DOM"]) await send(`${domain}.enable`);
    await send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: folder });
    await send("Page.navigate", { url });
    await until(`location.href === ${JSON.stringify(url)} && document.readyState === "complete"`);
    return await act({ send, evaluate, until, picture, press, drag, folder, errors });
  } finally {
    const gone = new Promise((done) => browser.on("exit", done));
    browser.kill("SIGKILL");
    await gone;
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
