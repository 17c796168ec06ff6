/* The HTML report in a real browser, but for its timeline (timeline_test.js):
 *     node page_test.js REPORT_TOOL SQL_FOLDER WORK_FOLDER [PICTURE_FOLDER]
 * Exit 77 (skipped) where chromium or chromedriver is missing. */
'use strict';
const path = require('path');
const assert = require('assert');
const { pictures, report, load, isQuiet, runTests, withBrowser } = require('./page.js');

const tests = {
  async 'tables of rare things are there'(browser) {
    const { url } = report('more');
    await load(browser, url);
    const text = await browser.run('return document.body.textContent');
    for (const words of ['launches waited for room in the queue', 'GPU page faults', 'compiled', 'copy, "in"',
      'loader <0>', 'cudaGraphAddKernelNode', 'Memory pools', 'green'])
      assert.ok(text.includes(words), words + ' is not on the page');
    assert.strictEqual(await browser.run(`return document.querySelector('#card-kernels .note').textContent`), 'executions; 2 in graphs');
    await isQuiet(browser, url);
    const plain = report('normal');
    await load(browser, plain.url);
    const other = await browser.run('return document.body.textContent');
    for (const words of ['Unified memory', 'Memory pools', 'Overhead'])
      assert.ok(!other.includes(words), words + ' is on a page without it');
  },

  async 'counts equal the database'(browser) {
    const { url, json } = report('normal');
    await load(browser, url);
    const dom = await browser.run(`
      const text = (id) => document.getElementById(id).textContent;
      return { counts: text('timeline-counts'), sum: perfkit.timelineView.model.countByKind(), kernels: document.querySelectorAll('#kernels-table tbody tr').length,
        cards: [...document.querySelectorAll('.card .value')].map((c) => c.textContent),
        nodes: perfkit.flameView.nodes[0].total, memory: !!document.querySelector('#memory-chart path') };`);
    assert.strictEqual(dom.counts, '705 events: 160 kernels, 50 memcpys, 40 memsets, 253 API calls, 40 synchronizations, 161 NVTX ranges, 1 NVTX mark.');
    assert.deepStrictEqual(dom.sum, { kernel: 160, copy: 50, fill: 40, call: 253, wait: 40, range: 161, mark: 1 });
    assert.strictEqual(dom.kernels, json.kernels.total_rows);
    assert.deepStrictEqual(dom.cards, ['60.0 ms', '54.6 %', '160', '160 MiB', '261 MiB', 'complete']);
    const device = json.kernels.rows.concat(json.transfers.rows).reduce((ns, row) => ns + row.total_ns, 0);
    assert.strictEqual(dom.nodes, device);
    assert.ok(dom.memory);
    await isQuiet(browser, url);
  },

  async 'options in the next steps are not broken'(browser) {
    await load(browser, report('normal').url);
    const lines = await browser.run(`document.querySelector('.steps').style.width = '6rem';
      return [...document.querySelectorAll('.steps li')].map((step) => {
        const text = document.createTreeWalker(step, NodeFilter.SHOW_TEXT), range = document.createRange(), found = [];
        while (text.nextNode()) for (const one of text.currentNode.data.matchAll(/--[a-z][a-z=-]*/g)) {
          range.setStart(text.currentNode, one.index);
          range.setEnd(text.currentNode, one.index + one[0].length);
          found.push(range.getClientRects().length);
        }
        return found;
      }).flat()`);
    assert.ok(lines.length > 0 && lines.every((n) => n === 1), String(lines));
  },

  async 'tables sort and filter'(browser) {
    const { url, json } = report('normal');
    await load(browser, url);
    const column = `[...document.querySelectorAll('#kernels-table tbody tr')].map((r) => r.querySelector('td.name').textContent)`;
    const short = (rows) => browser.run('return arguments[0].map(perfkit.short)', rows.map((row) => row.name));
    const byTotal = await short(json.kernels.rows);
    assert.deepStrictEqual(await browser.run('return ' + column), byTotal);
    const click = (title) => browser.run(`[...document.querySelectorAll('#kernels-table th button')]
      .find((b) => b.textContent === ${JSON.stringify(title)}).click(); return ${column}`);
    const names = byTotal.slice().sort();
    assert.deepStrictEqual(await click('Kernel'), names);
    assert.deepStrictEqual(await click('Kernel'), names.slice().reverse());
    assert.deepStrictEqual(await click('Average'),
      await short(json.kernels.rows.slice().sort((a, b) => b.average_ns - a.average_ns)));
    assert.strictEqual(await browser.run(`return document.querySelectorAll('#kernels-table th[aria-sort="descending"]').length`), 1);
    assert.deepStrictEqual(await browser.run(`const f = document.getElementById('kernels-filter');
      f.value = 'SOFT'; f.dispatchEvent(new Event('input')); return ${column}`), ['softmax']);
    await isQuiet(browser, url);
  },

  async 'the flame graph zooms and walks by keyboard'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    await browser.run(`document.querySelector('.flame [tabindex="0"]').focus()`);
    await browser.keys('\uE015\uE015\uE007'); /* down, down, enter */
    const name = await browser.run('return perfkit.flameView.top.name');
    assert.strictEqual(name, 'step');
    await browser.keys('\uE00C');
    assert.strictEqual(await browser.run('return perfkit.flameView.top.name'), 'all');
    await isQuiet(browser, url);
  },

  async 'the flame graph by operations, NVTX first and around one frame'(browser) {
    const { url, json } = report('normal');
    await load(browser, url);
    const dom = await browser.run(`
      const F = perfkit.flameView, view = document.getElementById('flame-view'), sums = {};
      const choose = (value) => { view.value = value; view.dispatchEvent(new Event('change')); };
      const children = () => F.nodes[0].children.map((node) => [node.kind, node.name, node.total]);
      const whole = F.nodes[0].total;
      choose('operations first'); sums.operations = children(); sums.inverted = F.nodes[0].total;
      choose('NVTX ranges first'); sums.ranges = children();
      choose('top down');
      F.sandwich(F.nodes.find((node) => node.name === 'cudaLaunchKernel'));
      sums.callees = F.nodes[0].children[0].children.map((node) => [node.name, node.total]);
      sums.callers = F.callers[0].children[0].children.map((node) => node.name);
      sums.middle = [F.nodes[0].total, F.callers[0].total];
      [...document.querySelectorAll('#flame .details button')].find((b) => b.textContent === 'Whole graph').click();
      sums.back = F.nodes[0].total;
      return Object.assign(sums, { whole });`);
    assert.strictEqual(dom.inverted, dom.whole);
    assert.strictEqual(dom.back, dom.whole);
    const kernels = json.kernels.rows.map((row) => [row.name, row.total_ns]);
    assert.deepStrictEqual(dom.operations.filter(([kind]) => kind === 'kernel').map(([, name, ns]) => [name, ns]), kernels);
    assert.ok(dom.ranges.every(([kind]) => kind === 'range'), JSON.stringify(dom.ranges));
    assert.deepStrictEqual(dom.callees, kernels);
    const launched = kernels.reduce((ns, row) => ns + row[1], 0);
    assert.deepStrictEqual(dom.middle, [launched, launched]);
    assert.ok(dom.callers.includes('forward'), String(dom.callers));
    await isQuiet(browser, url);
  },

  async 'names are text and nothing else'(browser) {
    const { url, json } = report('hostile');
    await load(browser, url);
    const unfold = `[...document.querySelectorAll('#kernels-table td.name button')].map((b) => {
      const short = b.textContent; b.click(); return [short, b.textContent]; })`;
    const [short, whole] = (await browser.run('return ' + unfold)).find(([, name]) => name.includes('xxx'));
    assert.ok(short.length <= 64 && whole.length >= 10000, 'a name in short, and whole when it is selected: ' + short);
    const dom = await browser.run(`return { broken: window.broken, images: document.images.length,
      scripts: document.scripts.length, bold: document.querySelectorAll('main b b, li b').length,
      svg: document.querySelectorAll('svg[onload]').length,
      names: [...document.querySelectorAll('#kernels-table td.name')].map((c) => c.textContent),
      long: document.documentElement.scrollWidth <= window.innerWidth }`);
    assert.strictEqual(dom.broken, null);
    assert.strictEqual(dom.images, 0);
    assert.strictEqual(dom.scripts, 2);
    assert.strictEqual(dom.bold, 0);
    assert.strictEqual(dom.svg, 0);
    assert.strictEqual(dom.names.length, json.kernels.total_rows);
    const shown = dom.names.join('\n');
    ['</script><script>window.broken=1</script>', '<!--<script>', 'a;b;c d', '__proto__', 'rtl\\u{202e}gpj.exe',
      '\ufffd', '\\x1b', 'x'.repeat(10000)].forEach((part) => assert.ok(shown.includes(part), part.slice(0, 40)));
    assert.ok(!shown.includes('\u202e'));
    assert.ok(dom.long, 'no sideways scrolling of the page');
    assert.strictEqual(await browser.run(`perfkit.timelineView.model.search('</script>').found.length > 0
      && perfkit.timelineView.show(0, 300000)`), null);
    await isQuiet(browser, url);
  },

  async 'a moment leads to the timeline'(browser) {
    const { url, json } = report('normal');
    await load(browser, url);
    const view = await browser.run(`document.querySelector('#gaps-table a.place').click();
      return { from: perfkit.timelineView.view.from, to: perfkit.timelineView.view.to,
        focus: document.activeElement.className }`);
    const gap = json.gaps.rows[0];
    assert.ok(view.from < gap.start_ns && view.to > gap.start_ns + gap.duration_ns && view.to - view.from < 3e6);
    assert.strictEqual(view.focus, 'timeline-scroll');
    await isQuiet(browser, url);
  },

  async 'a capture that is still being recorded'(browser) {
    const { url } = report('live');
    await load(browser, url);
    const text = await browser.run('return document.body.innerText');
    assert.ok(text.includes('still running'));
    assert.ok(!/NaN|undefined|Infinity/.test(text), String(text.match(/.{30}(NaN|undefined|Infinity)/)));
    await isQuiet(browser, url);
  },

  async 'only as many rows as asked for'(browser) {
    const { url } = report('normal', 'top=2');
    await load(browser, url);
    const dom = await browser.run(`return { rows: document.querySelectorAll('#kernels-table tbody tr').length,
      told: document.querySelector('#kernels .tools').textContent }`);
    assert.strictEqual(dom.rows, 2);
    assert.ok(dom.told.includes('2 of 4 rows'), dom.told);
    await isQuiet(browser, url);
  },

  async 'an empty capture and an awkward one'(browser) {
    let page = report('empty');
    await load(browser, page.url);
    const text = await browser.run('return document.querySelector("main").textContent');
    ['no kernels', 'no memcpys', 'no API calls', 'no NVTX ranges', 'No events', 'no device work'].forEach((part) =>
      assert.ok(text.includes(part), part));
    assert.ok(!/NaN|undefined|null|Infinity/.test(text), text.match(/.{30}(NaN|undefined|null|Infinity)/));
    await isQuiet(browser, page.url);
    page = report('awkward');
    await load(browser, page.url);
    const dom = await browser.run(`return { main: document.querySelector('main').textContent,
      counts: document.getElementById('timeline-counts').textContent }`);
    assert.ok(dom.main.includes('INCOMPLETE'));
    assert.ok(dom.main.includes('1 event never seen to start'));
    assert.strictEqual(dom.counts, '31 events: 13 kernels, 12 API calls, 6 NVTX ranges.');
    assert.ok(!/NaN|undefined|Infinity/.test(dom.main));
    await isQuiet(browser, page.url);
  },
};

/* Contrast of every text with what is behind it, WCAG AA: 4.5, for large or bold text 3. */
const CONTRAST = `
  const parse = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const channel = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); };
  const light = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const behind = (node) => { for (; node; node = node.parentElement) { const c = parse(getComputedStyle(node).backgroundColor);
    if (c.length === 3 || c[3] > 0) return c; } return [255, 255, 255]; };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || ['SCRIPT', 'STYLE', 'TITLE', 'NOSCRIPT'].includes(node.tagName.toUpperCase()) || !node.offsetParent) continue;
    const style = getComputedStyle(node), a = light(parse(style.color)), b = light(behind(node));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(ratio.toFixed(2) + ' ' + node.tagName + '.' + node.className + ' ' + walker.currentNode.textContent.slice(0, 30));
  }
  const unnamed = [...document.querySelectorAll('button, input, [role=img]')].filter((n) => n.offsetParent !== null &&
    !(n.textContent.trim() || n.getAttribute('aria-label') || (n.id && document.querySelector('label[for="' + n.id + '"]'))));
  return { poor: [...new Set(poor)], unnamed: unnamed.map((n) => n.outerHTML.slice(0, 100)) };`;

/* What stays in sight while a table scrolls covers nothing of one that is not scrolled, and is a name. */
const COVERED = `return [...document.querySelectorAll('td, th')].filter((cell) => getComputedStyle(cell).position === 'sticky' && cell.offsetParent).filter((cell) => {
  const own = cell.getBoundingClientRect();
  return !cell.classList.contains('name') || [...cell.parentElement.children].some((other) => { const box = other.getBoundingClientRect();
    return other !== cell && Math.min(box.right, own.right) - Math.max(box.left, own.left) > 1; });
}).map((cell) => cell.textContent)`;

async function looks(width, height, dark, file) {
  await withBrowser(width, height, dark, async (browser) => {
    const { url } = report('normal');
    await load(browser, url);
    assert.deepStrictEqual(await browser.run(CONTRAST), { poor: [], unnamed: [] }, dark ? 'dark' : 'light');
    assert.ok(await browser.run('return document.documentElement.scrollWidth <= window.innerWidth'), 'fits its width');
    assert.deepStrictEqual(await browser.run(COVERED), []);
    const names = await browser.run(`return [...document.querySelectorAll('#kernels-table tr')].map((line) => [...line.children].findIndex((cell) => cell.classList.contains('name')))`);
    assert.ok(names.length > 1 && names.every((at) => (width < 1100 ? at === 1 : at > 1)), String(names));
    if (pictures) await browser.picture(path.join(pictures, file));
  });
}

runTests(tests, [[1300, false, 'light.png'], [1300, true, 'dark.png'], [520, false, 'narrow.png']].map(
  ([width, dark, file]) => ['contrast, names and width: ' + file, () => looks(width, 2400, dark, file)]));
