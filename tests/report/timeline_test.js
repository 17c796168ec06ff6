/* The timeline of the HTML report in a real browser:
 *     node timeline_test.js REPORT_TOOL SQL_FOLDER WORK_FOLDER [PICTURE_FOLDER]
 * Exit 77 (skipped) where chromium or chromedriver is missing. */
'use strict';
const assert = require('assert');
const { report, load, isQuiet, runTests } = require('./page.js');

const tests = {
  async 'the timeline searches, selects and zooms by keyboard'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    await browser.run(`document.querySelector('.timeline-scroll').focus()`);
    await browser.keys('/softmax\uE007');
    const state = () => browser.run(`const v = perfkit.timelineView.view; return { from: v.from, to: v.to,
      found: document.getElementById('timeline-found').textContent,
      details: document.getElementById('timeline-details').textContent }`);
    let now = await state();
    assert.strictEqual(now.found, '1 of 40 matches');
    assert.ok(now.details.startsWith('softmaxkernel'), now.details);
    assert.ok(now.details.includes('asked for by cudaLaunchKernel'), now.details);
    assert.ok(now.details.includes('grid 512\u00d71\u00d71'), now.details);
    await browser.run(`document.querySelector('.timeline-scroll').focus()`);
    await browser.keys('nf');
    now = await state();
    assert.strictEqual(now.found, '2 of 40 matches');
    assert.ok(now.to - now.from < 200000, 'zoomed to the event');
    const before = now;
    await browser.keys('g'); /* to the call that launched it */
    now = await state();
    assert.ok(now.details.startsWith('cudaLaunchKernelcall'), now.details);
    await browser.keys('.');
    assert.notStrictEqual((await state()).details, now.details);
    await browser.keys('0');
    now = await state();
    assert.strictEqual(now.to - now.from, 60000000);
    await browser.keys('+');
    assert.ok((await state()).to - (await state()).from < now.to - now.from);
    assert.ok(before);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const inView = await browser.run(`perfkit.timelineView.show(0, 60000000);
      return perfkit.timelineView.model.within(0, 60000000)[0]`);
    assert.strictEqual(inView.count, 160);
    await isQuiet(browser, url);
  },

  async 'a click selects, a drag moves, a wheel with control zooms'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    const result = await browser.run(`
      const v = perfkit.timelineView, canvas = document.querySelector('.timeline-scroll canvas');
      const box = canvas.getBoundingClientRect();
      const at = v.draw.box(v.view, { t: 0, r: 0, i: 0 });
      const point = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, { bubbles: true, button: 0, pointerId: 1,
        clientX: box.left + x, clientY: box.top + y }));
      canvas.setPointerCapture = () => {};
      point('pointerdown', at.x + 5, at.y + 5); point('pointerup', at.x + 5, at.y + 5);
      const details = document.getElementById('timeline-details').textContent;
      const before = v.view.to - v.view.from;
      canvas.dispatchEvent(new WheelEvent('wheel', { bubbles: true, cancelable: true, ctrlKey: true, deltaY: -60,
        clientX: box.left + at.x + 50, clientY: box.top + at.y }));
      const after = v.view.to - v.view.from, from = v.view.from;
      point('pointerdown', 500, 60); point('pointermove', 400, 60); point('pointerup', 400, 60);
      return { details, before, after, moved: v.view.from > from };`);
    assert.ok(result.details.startsWith('epochrange'), result.details);
    assert.ok(result.after < result.before);
    assert.ok(result.moved);
    await isQuiet(browser, url);
  },

  async 'too many events are merged, none is lost'(browser) {
    const { url } = report('many');
    await load(browser, url);
    const dom = await browser.run(`const v = perfkit.timelineView; let sum = 0, shown = 0, overlap = false;
      v.model.tracks.forEach((t) => t.rows.forEach((row) => { for (let i = 0; i < row.n; i++) { sum += row.count[i]; shown++;
        if (i && row.start[i] < row.end[i - 1]) overlap = true; } }));
      return { sum, shown, overlap, counts: document.getElementById('timeline-counts').textContent,
        merged: document.getElementById('timeline-merged').textContent, within: v.model.within(v.model.begin, v.model.end) }`);
    assert.strictEqual(dom.counts, '500,001 events: 250,000 kernels, 250,000 calls, 1 range.');
    assert.strictEqual(dom.sum, 500001);
    assert.ok(dom.shown <= 200000 && dom.shown > 80000, String(dom.shown));
    assert.strictEqual(dom.overlap, false);
    assert.ok(dom.merged.startsWith('Too many events for one page'), dom.merged);
    assert.deepStrictEqual(dom.within.map((sum) => [sum.kind, sum.count]),
      [['device operation', 250000], ['call', 250000], ['range', 1]]);
    await isQuiet(browser, url);
  },
};

runTests(tests);
