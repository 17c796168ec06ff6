/* speedscope's own importer, in a browser, on what we write for it and on the pprof profile:
 *     node speedscope_test.js REPORT_TOOL SQL_FOLDER WORK_FOLDER
 * Needs the npm package speedscope, where ../npm.js looks; exit 77
 * (skipped) without it, chromium or chromedriver. */
'use strict';
const fs = require('fs');
const path = require('path');
const assert = require('assert');
const { execFileSync } = require('child_process');
const { open, until } = require('./browser.js');
const roots = require('../npm.js');

const [tool, source, work] = process.argv.slice(2);

function skip(why) {
  console.log('SKIP: ' + why);
  process.exit(77);
}

function find(name) {
  const folder = (process.env.PATH || '').split(':').find((one) => fs.existsSync(path.join(one, name)));
  if (!folder) skip('speedscope runs in chromium through chromedriver; missing: ' + name);
  return path.join(folder, name);
}

function findSpeedscope() {
  const root = roots().find((one) => fs.existsSync(path.join(one, 'speedscope/dist/release/index.html')));
  if (!root) skip('the npm package speedscope is not installed (npm install -g speedscope)');
  return path.join(root, 'speedscope/dist/release/index.html');
}

const programs = { driver: find('chromedriver'), browser: find('chromium') };
const app = 'file://' + findSpeedscope();

/* What its table of frames says, by name: "12.3us" and the like, and the error when it has one. */
async function load(browser, file) {
  const script = path.resolve(work, 'load.js');
  fs.writeFileSync(script, 'speedscope.loadFileFromBase64(' + JSON.stringify(path.basename(file)) + ',' +
    JSON.stringify(fs.readFileSync(file).toString('base64')) + ')');
  await browser.go('about:blank');
  await browser.go(app + '#localProfilePath=' + script);
  let before = '';
  return until(file + ' in speedscope, twice the same', async () => {
    await browser.keys('3'); /* the view with the table */
    const text = await browser.run('return document.body.innerText');
    assert(!/wrong|error|unrecognized/i.test(text.slice(0, 200)), file + ': ' + text.slice(0, 300));
    const rows = await browser.run('return Array.from(document.querySelectorAll("tr")).map((row) => row.innerText.trim()).filter((text) => text.includes("%"))');
    const same = text.includes('Symbol Name') && rows.length > 0 && String(rows) === before;
    before = String(rows);
    return same && rows;
  });
}

async function main() {
  const browser = await open(programs, 1400, 1000);
  try {
    for (const name of ['normal', 'hostile', 'awkward']) {
      const capture = path.join(work, name + '.sqlite');
      execFileSync(tool, ['make', path.join(source, name + '.sql'), capture]);
      const rows = {};
      for (const [format, extension] of [['speedscope', '.speedscope.json'], ['pprof', '.pb.gz'], ['flamegraph', '.folded'], ['chrome-trace', '.json']]) {
        const file = path.join(work, name + extension);
        execFileSync(tool, ['write', format, capture, file]);
        rows[format] = await load(browser, file);
        assert(rows[format].length > 3, file + ' has frames');
      }
      if (name === 'normal') assert.deepStrictEqual(rows.speedscope, rows.pprof, 'both formats say the same');
      console.log('ok', name, rows.speedscope.length, rows.pprof.length, rows.flamegraph.length, rows['chrome-trace'].length);
    }
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
