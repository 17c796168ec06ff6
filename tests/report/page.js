/* What tests of the HTML report share: making a capture and its page, opening it, and judging that it
 * is quiet. Arguments of the test: REPORT_TOOL SQL_FOLDER WORK_FOLDER [PICTURE_FOLDER]; loading this
 * ends the test with 77 (skipped) where chromium or chromedriver is missing. */
'use strict';
const fs = require('fs');
const path = require('path');
const assert = require('assert');
const { execFileSync } = require('child_process');
const { open, until } = require('./browser.js');

const [tool, source, work, pictures] = process.argv.slice(2);

function find(names) {
  for (const folder of (process.env.PATH || '').split(':'))
    for (const name of names) if (fs.existsSync(path.join(folder, name))) return path.join(folder, name);
  return null;
}

const programs = { driver: find(['chromedriver']), browser: find(['chromium', 'chromium-browser', 'google-chrome']) };
if (!programs.driver || !programs.browser) {
  console.log('SKIP: the page is tested in chromium through chromedriver; missing: ' +
    (programs.driver ? 'chromium' : 'chromedriver') + ' (Debian: chromium chromium-driver)');
  process.exit(77);
}

/* Of a scene, or of one behind another: normal+paused. */
function report(name, ...options) {
  const sql = path.join(work, name + '.sql');
  fs.writeFileSync(sql, name.split('+').map((scene) => fs.readFileSync(path.join(source, scene + '.sql'))).join('\n'));
  const capture = path.join(work, name + '.sqlite'), page = path.join(work, name + '.html');
  execFileSync(tool, ['make', sql, capture]);
  execFileSync(tool, ['write', 'html', capture, page, ...options]);
  const json = JSON.parse(execFileSync(tool, ['write', 'json', capture, '-'], { maxBuffer: 1 << 28 }));
  return { url: 'file://' + page, json };
}

/* No message on the console, no request but for the page itself. */
async function isQuiet(browser, url) {
  const messages = (await browser.log('browser')).filter((entry) => entry.level === 'SEVERE' || entry.level === 'WARNING');
  assert.deepStrictEqual(messages, [], 'console of ' + url);
  const asked = (await browser.log('performance')).map((entry) => JSON.parse(entry.message).message)
    .filter((m) => m.method === 'Network.requestWillBeSent').map((m) => m.params.request.url);
  const foreign = asked.filter((one) => one !== url && !one.startsWith('data:') && one !== 'about:blank');
  assert.deepStrictEqual(foreign, [], 'requests of ' + url);
}

async function load(browser, url) {
  await browser.go('about:blank'); /* not the browser's own first page, whose requests are logged */
  await browser.log('performance');
  await browser.go(url);
  await until('the page is ready', () => browser.run('return document.documentElement.getAttribute("data-ready")'));
}

async function withBrowser(width, height, dark, body) {
  const browser = await open(programs, width, height, dark);
  try {
    await body(browser);
  } finally {
    await browser.close();
  }
}

/* `tests`: name -> function of a browser, all in one browser; `alone`: [name, function] pairs that
 * open browsers of their own. */
async function runTests(tests, alone) {
  let failed = 0;
  const one = async (name, run) => {
    try {
      await run();
      console.log('ok   ' + name);
    } catch (error) {
      failed++;
      console.log('FAIL ' + name + '\n' + error.stack);
    }
  };
  try {
    await withBrowser(1300, 1000, false, async (browser) => {
      for (const [name, test] of Object.entries(tests)) await one(name, () => test(browser));
    });
    for (const [name, test] of alone || []) await one(name, test);
  } catch (error) {
    failed++;
    console.log('FAIL ' + error.stack);
  }
  process.exitCode = failed ? 1 : 0;
}

/* ---- the timeline ---- */

const FOCUS = `document.querySelector('.timeline-scroll').focus();`;
/* What `script` returns, once it is something. */
const given = (browser, script) => until(script, () => browser.run(script));
/* The words below the timeline, once they say this: they come when the view has stood still. */
const inView = (browser, words) => given(browser, `const text = document.getElementById('timeline-in-view').textContent;
  return ${words}.test(text) && text`);

module.exports = { pictures, report, until, load, isQuiet, withBrowser, runTests, FOCUS, given, inView };
