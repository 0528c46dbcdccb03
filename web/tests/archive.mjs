// Zip archives as the page reads and writes them. node archive.mjs
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { deflateRawSync } from "node:zlib";

const page = readFileSync(new URL("../page/archive.js", import.meta.url), "utf8");
const { unzip, zip, npy } = new Function(`${page}; return { unzip, zip, npy };`)();

/** An archive of one file that is compressed, with the size that it declares. */
function archive(content, declared = content.length) {
  const [packed, name] = [deflateRawSync(content), Buffer.from("x.npy")];
  const common = (signature, length, at) => {
    const header = Buffer.alloc(length);
    header.writeUInt32LE(signature);
    header.writeUInt16LE(8, at + 4);
    header.writeUInt32LE(packed.length, at + 14);
    header.writeUInt32LE(declared, at + 18);
    header.writeUInt16LE(name.length, at + 22);
    return header;
  };
  const [local, directory, end] = [common(0x04034b50, 30, 4), common(0x02014b50, 46, 6), Buffer.alloc(22)];
  end.writeUInt32LE(0x06054b50);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(local.length + name.length + packed.length, 16);
  return new Uint8Array(Buffer.concat([local, name, packed, directory, name, end]));
}

const content = npy("<f4", [2], new Float32Array([1, 2]));
assert.deepEqual(await unzip(archive(content)), [["x.npy", content]]);
const stored = zip([["a.npy", content], ["b.npy", content]]);
assert.deepEqual(await unzip(new Uint8Array(await stored.arrayBuffer())), [["a.npy", content], ["b.npy", content]]);

// The declared size is the most that is unpacked, whatever the stream holds.
await assert.rejects(unzip(archive(content, content.length + 1)), /^Error: x\.npy has 136 bytes, but 137 are declared$/);
const bomb = archive(Buffer.alloc(1 << 28), 100);
const own = process.resourceUsage().maxRSS;
await assert.rejects(unzip(bomb), /^Error: x\.npy has more than the 100 bytes that are declared$/);
assert.ok(process.resourceUsage().maxRSS - own < 64 << 10, `${own} KiB became ${process.resourceUsage().maxRSS}`);
await assert.rejects(unzip(archive(content, 2 ** 30 + 1)), /^Error: it unpacks to more than 1 GiB$/);
console.log("archives: sizes are kept");
