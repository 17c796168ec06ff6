/* A small WebDriver client over chromedriver, with nothing but node's http: start a browser, open a
 * page, run scripts in it, press keys, read its console and its network log. */
'use strict';
const http = require('http');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { spawn } = require('child_process');

const DEADLINE_MS = 300000; /* only ends what hangs: other programs may have the processors */

/* Once `holds` returns something, that. */
async function until(what, holds) {
  for (const limit = Date.now() + DEADLINE_MS; ;) {
    const value = await holds();
    if (value) return value;
    if (Date.now() > limit) throw new Error('never: ' + what);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function request(port, method, url, body) {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? '' : JSON.stringify(body);
    const call = http.request({ host: '127.0.0.1', port, method, path: url,
      headers: { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) } }, (answer) => {
      let data = '';
      answer.setEncoding('utf8');
      answer.on('data', (piece) => { data += piece; });
      answer.on('end', () => {
        let value;
        try { value = JSON.parse(data).value; } catch (error) { reject(new Error(data.slice(0, 300))); return; }
        if (value && value.error) reject(new Error(value.error + ': ' + value.message));
        else resolve(value);
      });
    });
    call.setTimeout(DEADLINE_MS, () => call.destroy(new Error('no answer from chromedriver')));
    call.on('error', reject);
    call.end(text);
  });
}

function startDriver(program) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, ['--port=0'], { stdio: ['ignore', 'pipe', 'pipe'] });
    let seen = '';
    const listen = (data) => {
      seen += data;
      const port = seen.match(/started successfully on port (\d+)/);
      if (port) resolve({ child, port: Number(port[1]) });
    };
    child.stdout.on('data', listen);
    child.stderr.on('data', listen);
    child.on('error', reject);
    child.on('exit', () => reject(new Error('chromedriver ended: ' + seen)));
    setTimeout(() => reject(new Error('chromedriver did not start: ' + seen)), DEADLINE_MS).unref();
  });
}

async function open(programs, width, height, dark) {
  const driver = await startDriver(programs.driver);
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'perfkit-browser-'));
  const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync', '--hide-scrollbars',
    '--window-size=' + width + ',' + height, '--user-data-dir=' + profile];
  if (dark) args.push('--blink-settings=preferredColorScheme=0');
  const clean = () => {
    driver.child.kill();
    fs.rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  };
  let session;
  try {
    session = await request(driver.port, 'POST', '/session', { capabilities: { alwaysMatch: {
      browserName: 'chrome', 'goog:chromeOptions': { args, binary: programs.browser },
      'goog:loggingPrefs': { browser: 'ALL', performance: 'ALL' } } } });
  } catch (error) {
    clean();
    throw error;
  }
  const base = '/session/' + session.sessionId;
  const call = (method, url, body) => request(driver.port, method, base + url, body);
  return {
    go: (url) => call('POST', '/url', { url }),
    run: (script, ...args2) => call('POST', '/execute/sync', { script, args: args2 }),
    keys: (text) => call('POST', '/actions', { actions: [{ type: 'key', id: 'k', actions:
      Array.from(text).flatMap((value) => [{ type: 'keyDown', value }, { type: 'keyUp', value }]) }] }),
    /* A command of the browser's own protocol (chromedevtools.github.io). */
    devtools: (cmd, params) => call('POST', '/goog/cdp/execute', { cmd, params: params || {} }),
    /* A PDF of A4 pages. */
    print: async () => Buffer.from(await call('POST', '/print', { page: { width: 21, height: 29.7 }, background: true }), 'base64'),
    log: (type) => call('POST', '/se/log', { type }),
    picture: async (file) => fs.writeFileSync(file, Buffer.from(await call('GET', '/screenshot'), 'base64')),
    close: async () => {
      try { await call('DELETE', ''); } finally { clean(); }
    },
  };
}

module.exports = { open, until };
