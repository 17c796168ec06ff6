/* The live page of perfkit serve in a browser, beside a program that is being recorded: its numbers grow, and when the
 * recording has ended, the report inside it is made again and has all kernels:
 *     node live_page_test.js PERFKIT FEED WORK_FOLDER
 * Exit 77 (skipped) without chromium, chromedriver or libmicrohttpd. */
'use strict';
const fs = require('fs');
const path = require('path');
const assert = require('assert');
const { spawn } = require('child_process');
const { open, until } = require('./browser.js');

const [perfkit, feed, work] = process.argv.slice(2);
const capture = path.join(work, 'live.sqlite');

function skip(why) {
  console.log('SKIP: ' + why);
  process.exit(77);
}

function find(name) {
  const folder = (process.env.PATH || '').split(':').find((one) => fs.existsSync(path.join(one, name)));
  if (!folder) skip('the page is shown in chromium through chromedriver; missing: ' + name);
  return path.join(folder, name);
}

function serve() {
  const server = spawn(perfkit, ['serve', '--refresh', '100ms', '--listen', '127.0.0.1:0', capture], { stdio: ['ignore', 'ignore', 'pipe'] });
  return new Promise((resolve, reject) => {
    server.stderr.on('data', (text) => {
      const url = String(text).match(/http:\S+/);
      if (String(text).includes('libmicrohttpd')) skip(String(text).trim());
      if (url) resolve({ server, url: url[0] });
    });
    server.on('exit', (code) => reject(new Error('perfkit serve ended: ' + code)));
  });
}

async function main() {
  const programs = { driver: find('chromedriver'), browser: find('chromium') };
  fs.rmSync(capture, { force: true });
  const run = spawn(perfkit, ['run', '-q', '-o', capture, '--', feed, '20000', '8'], { stdio: 'ignore' });
  await until('a capture', () => fs.existsSync(capture) && fs.statSync(capture).size > 0);
  const { server, url } = await serve();
  const browser = await open(programs, 1400, 1000);
  try {
    await browser.go(url);
    const numbers = () => browser.run('return document.getElementById("now").textContent');
    const kernels = async () => Number(((await numbers()).match(/, ([\d,]+) kernels/) || [])[1]?.replaceAll(',', ''));
    const first = await until('numbers', kernels);
    await until('more', async () => (await kernels()) > first || (await numbers()).startsWith('finished'));
    await until('the end', async () => (await numbers()).startsWith('finished'));
    assert.strictEqual(await until('all kernels', async () => (await kernels()) === 72000 && 72000), 72000);
    await until('the whole report', () => browser.run(
      'const page = document.getElementById("report").contentDocument;' +
      'return page && page.readyState === "complete" && page.body.innerText.includes("72,000")'));
    const faults = (await browser.log('browser')).filter((one) => one.level === 'SEVERE');
    assert.deepStrictEqual(faults, []);
  } finally {
    await browser.close();
    server.removeAllListeners('exit');
    server.kill();
    run.kill();
  }
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
