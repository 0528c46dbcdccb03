// Zip archives, as .npz files are, and .npy files.

/** The longest that an archive may unpack to. */
const MAX_UNPACKED = 1 << 30;

/** The files in an archive, as pairs of name and bytes. */
async function unzip(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // The end of the directory is at the end, before a comment.
  let end = bytes.length - 22;
  while (end >= 0 && end > bytes.length - 22 - 65536 && view.getUint32(end, true) !== 0x06054b50) end -= 1;
  if (end < 0 || view.getUint32(end, true) !== 0x06054b50) throw new Error("it is not a zip archive, or it is cut short");
  const files = [];
  let [at, left] = [view.getUint32(end + 16, true), MAX_UNPACKED];
  for (let k = view.getUint16(end + 10, true); k > 0; k -= 1) {
    if (view.getUint32(at, true) !== 0x02014b50) throw new Error("its directory is damaged");
    const [method, packed, size, name, extra, comment, start] =
      [view.getUint16(at + 10, true), view.getUint32(at + 20, true), view.getUint32(at + 24, true), view.getUint16(at + 28, true),
        view.getUint16(at + 30, true), view.getUint16(at + 32, true), view.getUint32(at + 42, true)];
    const title = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + name));
    const from = start + 30 + view.getUint16(start + 26, true) + view.getUint16(start + 28, true);
    const content = bytes.subarray(from, from + packed);
    left -= size;
    if (left < 0) throw new Error("it unpacks to more than 1 GiB");
    if (method !== 0 && method !== 8) throw new Error(`${title} is compressed by method ${method}: allowed none and deflate`);
    const unpacked = method === 8 ? await inflate(content, "deflate-raw", size) : content;
    if (unpacked.length > size) throw new Error(`${title} has more than the ${size} bytes that are declared`);
    if (unpacked.length !== size) throw new Error(`${title} has ${unpacked.length} bytes, but ${size} are declared`);
    files.push([title, unpacked]);
    at += 46 + name + extra + comment;
  }
  return files;
}

/** Unpacked bytes. Of more than `most` no more are unpacked than it takes to see that. */
async function inflate(bytes, format, most = Infinity) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format)).getReader();
  const pieces = [];
  for (let length = 0; length <= most;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    pieces.push(value);
    if (length > most) reader.cancel().catch(() => {});
  }
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}

/** An archive of files, not compressed. */
function zip(files) {
  const [parts, directory] = [[], []];
  let at = 0;
  const header = (signature, length, fill) => {
    const bytes = new Uint8Array(length);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, signature, true);
    fill(view);
    return bytes;
  };
  for (const [name, content] of files) {
    const title = new TextEncoder().encode(name);
    const sum = crc32(content);
    // Version 2.0, names in UTF-8, stored, the first day that zip knows.
    const common = (view, from) => {
      view.setUint16(from, 20, true);
      view.setUint16(from + 2, 0x800, true);
      view.setUint16(from + 8, 0x21, true);
      view.setUint32(from + 10, sum, true);
      view.setUint32(from + 14, content.length, true);
      view.setUint32(from + 18, content.length, true);
      view.setUint16(from + 22, title.length, true);
    };
    parts.push(header(0x04034b50, 30, (view) => common(view, 4)), title, content);
    directory.push(header(0x02014b50, 46, (view) => {
      view.setUint16(4, 20, true);
      common(view, 6);
      view.setUint32(42, at, true);
    }), title);
    at += 30 + title.length + content.length;
  }
  const size = directory.reduce((sum, bytes) => sum + bytes.length, 0);
  const end = header(0x06054b50, 22, (view) => {
    view.setUint16(8, files.length, true);
    view.setUint16(10, files.length, true);
    view.setUint32(12, size, true);
    view.setUint32(16, at, true);
  });
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}

/** A value's name as the name of a file, as the program `onnxref` writes it: models may name a value `../../x`. */
function escaped(name) {
  const device = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i.test(name);
  const byte = (code, k) => {
    const c = String.fromCharCode(code);
    const stays = /[\w.-]/.test(c) && !(k === 0 && (device || /[.-]/.test(c)));
    return stays ? c : `%${code.toString(16).toUpperCase().padStart(2, "0")}`;
  };
  return [...new TextEncoder().encode(name)].map(byte).join("") || "%";
}

const CRC = Uint32Array.from({ length: 256 }, (_, k) => {
  for (let bit = 0; bit < 8; bit += 1) k = k & 1 ? (k >>> 1) ^ 0xedb88320 : k >>> 1;
  return k;
});

function crc32(bytes) {
  let sum = ~0;
  for (let k = 0; k < bytes.length; k += 1) sum = CRC[(sum ^ bytes[k]) & 255] ^ (sum >>> 8);
  return ~sum >>> 0;
}

/** A .npy file of numbers. `kind` is NumPy's type string, such as `<f4`. */
function npy(kind, shape, numbers) {
  const dims = shape.join(", ") + (shape.length === 1 ? "," : "");
  let header = `{'descr': '${kind}', 'fortran_order': False, 'shape': (${dims}), }`;
  header = header.padEnd(Math.ceil((header.length + 11) / 64) * 64 - 11) + "\n";
  const bytes = new Uint8Array(10 + header.length + numbers.byteLength);
  bytes.set([0x93, ...new TextEncoder().encode("NUMPY"), 1, 0, header.length & 255, header.length >> 8]);
  bytes.set(new TextEncoder().encode(header), 10);
  bytes.set(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength), 10 + header.length);
  return bytes;
}
