// Python in a thread of its own, so that a page stays alive whatever the code does.
//
// It is told {start}, and then {run} as often as there is something to run. It answers
// with {loaded}, the bytes that came so far, {module}, {ready}, {result} or {failed}.
import { WASI, File, OpenFile, ConsoleStdout, PreopenDirectory, Directory } from "./wasi/index.js";

const CACHE = "head-by-head";
const WASM = { headers: { "Content-Type": "application/wasm" } };
const LIBRARY = "usr/local/lib/python315.zip", BOOK = "book/";
let python;

onmessage = async ({ data }) => {
  try {
    if (data.start) await start(data.start);
    else postMessage({ result: run(data.run) });
  } catch (error) {
    postMessage({ failed: String(error.message ?? error) });
  }
};

async function start({ files, module }) {
  let loaded = 0;
  const count = (more) => postMessage({ loaded: (loaded += more) });
  const [wasm, library, book] = await Promise.all(files.map((file) => load(file, count)));
  postMessage({ loaded, unpacking: true });
  module ??= await WebAssembly.compileStreaming(new Response(unpacked(wasm), WASM));
  postMessage({ module });
  const tree = { [LIBRARY]: await bytes(unpacked(library)) };
  for (const [path, text] of Object.entries(await new Response(unpacked(book)).json()))
    tree[BOOK + path] = new TextEncoder().encode(text);
  python = begin(module, tree);
  turn("import os, sys; os.chdir('/book'); sys.path[:0] = ['/book']; import numpy, mha, runner.page");
  postMessage({ ready: true });
}

// A file is loaded once: its name changes with its content.
async function load(url, count) {
  const kept = globalThis.caches && await caches.open(CACHE).catch(() => null);
  const found = await kept?.match(url);
  const response = found ?? await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  const parts = [];
  for (const reader = response.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    count(value.length);
  }
  const whole = new Blob(parts);
  if (kept && !found) {
    const name = url.replace(/[\da-f]{8}\.gz$/, "");
    for (const old of await kept.keys()) if (old.url.startsWith(name)) await kept.delete(old);
    await kept.put(url, new Response(whole)).catch(() => null); // no room: loaded again
  }
  // A server may have unpacked it already.
  const start = new Uint8Array(await whole.slice(0, 2).arrayBuffer());
  return { whole, packed: start[0] === 0x1f && start[1] === 0x8b };
}

function unpacked({ whole, packed }) {
  return packed ? whole.stream().pipeThrough(new DecompressionStream("gzip")) : whole.stream();
}

async function bytes(stream) {
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Python as a program with files of its own, which keeps its state from turn to turn.
function begin(module, tree) {
  const root = new Map([["tmp", new Directory(new Map())]]);
  for (const [path, content] of Object.entries(tree)) {
    const names = path.split("/"), last = names.pop();
    let folder = root;
    for (const name of names) {
      if (!folder.has(name)) folder.set(name, new Directory(new Map()));
      folder = folder.get(name).contents;
    }
    folder.set(last, new File(content));
  }
  const lines = [], errors = [];
  const wasi = new WASI(["/usr/local/bin/python"], ["TMPDIR=/tmp", "PYTHONDONTWRITEBYTECODE=1", "NO_COLOR=1"], [
    new OpenFile(new File([])),
    ConsoleStdout.lineBuffered((line) => lines.push(line)),
    ConsoleStdout.lineBuffered((line) => errors.push(line)),
    new PreopenDirectory("/", root),
  ], { debug: false });
  const system = { ...wasi.wasiImport };
  // The clocks of the processor, which the shim lacks
  system.clock_time_get = (id, ...rest) => wasi.wasiImport.clock_time_get(Math.min(id, 1), ...rest);
  const imports = { wasi_snapshot_preview1: system, host: { call: () => 0 } };
  for (const { module: home, name } of WebAssembly.Module.imports(module))
    imports[home][name] ??= () => 52; // there is no such call
  wasi.inst = new WebAssembly.Instance(module, imports);
  wasi.inst.exports._initialize?.();
  return { exports: wasi.inst.exports, lines, errors };
}

function turn(code) {
  const { exports, lines, errors } = python, text = new TextEncoder().encode(code);
  lines.length = errors.length = 0;
  const place = exports.host_alloc(text.length);
  new Uint8Array(exports.memory.buffer).set(text, place);
  exports.turn(place, text.length);
  if (errors.length) throw new Error(errors.at(-1));
  return lines.at(-1);
}

function run({ sources, cell }) {
  // A text of JSON is a text of Python too.
  const given = JSON.stringify(JSON.stringify(sources));
  return JSON.parse(turn(`__import__("runner.page").page.answer(${given}, ${cell})`));
}
