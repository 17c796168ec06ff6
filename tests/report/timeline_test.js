/* The timeline of the HTML report in a real browser; what leads to it from other sections is in
 * timeline_links_test.js:
 *     node timeline_test.js REPORT_TOOL SQL_FOLDER WORK_FOLDER [PICTURE_FOLDER]
 * Exit 77 (skipped) where chromium or chromedriver is missing. */
'use strict';
const fs = require('fs');
const path = require('path');
const assert = require('assert');
const { pictures, report, load, isQuiet, runTests, withBrowser, FOCUS, given, inView } = require('./page.js');

const STATE = `const v = perfkit.timelineView.view, text = (id) => document.getElementById(id).textContent;
  return { from: v.from, to: v.to, selected: v.selected, range: v.range, found: text('timeline-found'),
    details: text('timeline-details'), hash: location.hash };`;
/* Whether events of one row overlap, which none may. */
const OVERLAPS = `const m = perfkit.timelineView.model, e = m.events;
  return m.rows.some((row) => { for (let i = row.first + 1; i < row.first + row.n; i++) if (e.start[i] < e.end[i - 1]) return true;
    return false; });`;
const DRAG = `const canvas = document.querySelector('.timeline-scroll canvas'), box = canvas.getBoundingClientRect();
  canvas.setPointerCapture = () => {};
  const point = (type, x, y, more) => canvas.dispatchEvent(new PointerEvent(type, Object.assign({ bubbles: true, button: 0,
    pointerId: 1, clientX: box.left + x, clientY: box.top + y }, more)));`;
const [LEFT, UP, RIGHT, DOWN, ENTER, ESCAPE] = ['\uE012', '\uE013', '\uE014', '\uE015', '\uE007', '\uE00C'];

const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const tests = {
  async 'tracks hold what the capture holds'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    const tracks = await browser.run(`const m = perfkit.timelineView.model;
      return m.tracks.map((t) => [t.label, m.countByKind(t)])`);
    assert.deepStrictEqual(tracks, [
      ['GPU 0 stream 7', { kernel: 160, copy: 10, fill: 40 }], ['GPU 0 stream 7 NVTX', { projected: 121 }], ['GPU 0 stream 13', { copy: 40 }],
      ['GPU 0 stream 13 NVTX', { projected: 41 }],
      ['train 4242 NVTX', { range: 121, mark: 1 }], ['train 4242 API', { call: 253, wait: 40 }],
      ['thread 4250 NVTX', { range: 40 }]]);
    assert.strictEqual(await browser.run(OVERLAPS), false);
    /* every device record of this capture knows its call, and the call comes first */
    assert.deepStrictEqual(await browser.run(`const m = perfkit.timelineView.model; let linked = 0, wrong = 0;
      m.rows.filter((row) => m.tracks[row.t].lane === 'stream').forEach((row) => { for (let i = row.first; i < row.first + row.n; i++) {
        const o = m.other(i); if (o >= 0) linked++; if (o < 0 || m.other(o) !== i || m.events.start[o] > m.events.start[i] || m.kindOf(o) !== 'call') wrong++; } });
      return { linked, wrong }`), { linked: 250, wrong: 0 });
    /* the memory line: three allocations, two of them freed */
    assert.deepStrictEqual(await browser.run(`const l = perfkit.timelineView.model.lines[0];
      return [l.label, l.most, l.value[l.value.length - 1]]`), ['memory', 273678336, 1048576]);
    await isQuiet(browser, url);
  },

  async 'marks what was not recorded'(browser) {
    const { url } = report('normal+paused');
    await load(browser, url);
    assert.deepStrictEqual(await browser.run('return perfkit.timelineView.model.unrecorded'),
      [[20e6, 30e6, 'a pause of --overhead'], [55e6, 60e6, '--delay or --duration']]);
    await inView(browser, /^In view, 60\.0 ms, 15\.0 ms of it not recorded: /);
    const strip = await browser.run(`return document.querySelector('#busy .strip').textContent`);
    assert.match(strip, /not recorded/);
    assert.deepStrictEqual(await browser.run(`const m = perfkit.timelineView.model;
      return [perfkit.within(m, 0, 60e6, true).recorded, m.recorded(25e6, 31e6)]`), [45e6, 1e6]);
    await isQuiet(browser, url);
  },

  async 'times on the ruler are whole'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    assert.deepStrictEqual(await browser.run(`const t = perfkit.timelineView, pen = CanvasRenderingContext2D.prototype, write = pen.fillText;
      const canvas = document.querySelector('.timeline-scroll canvas'), cut = [];
      let n = 0;
      pen.fillText = function (text, x, y, most) {
        if (this.canvas === canvas && most === undefined && / [mun]?s$/.test(text)) {
          n++;
          if (x + this.measureText(text).width > canvas.clientWidth) cut.push(text);
        }
        return write.apply(this, arguments);
      };
      return new Promise((resolve) => {
        let k = 0;
        const next = () => {
          if (k++ < 20) {
            t.show(1e7, 2e7 + k * 23e4);
            requestAnimationFrame(() => requestAnimationFrame(next));
          } else {
            pen.fillText = write;
            resolve([cut, n > 40]);
          }
        };
        next();
      });`), [[], true]);
  },

  async 'searches, selects and zooms by keyboard'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    const state = () => browser.run(STATE);
    await browser.run(FOCUS);
    await browser.keys('/softmax' + ENTER);
    let now = await state();
    assert.strictEqual(now.found, '1 of 40 matches');
    assert.ok(now.details.startsWith('softmaxkernel'), now.details);
    assert.ok(now.details.includes('launched by cudaLaunchKernel'), now.details);
    assert.ok(now.details.includes('grid 512\u00d71\u00d71'), now.details);
    await browser.run(FOCUS);
    await browser.keys('nf');
    now = await state();
    assert.strictEqual(now.found, '2 of 40 matches');
    assert.ok(now.to - now.from < 200000, 'zoomed to the event');
    await browser.keys('g'); /* to the call that launched it */
    now = await state();
    assert.ok(now.details.startsWith('cudaLaunchKernelAPI call'), now.details);
    await browser.keys('.');
    assert.notStrictEqual((await state()).details, now.details);
    await browser.keys('0');
    now = await state();
    assert.strictEqual(now.to - now.from, 60000000);
    for (const key of ['+', 'w']) {
      const before = await state();
      await browser.keys(key);
      now = await state();
      assert.ok(now.to - now.from < before.to - before.from, key);
    }
    await browser.keys('s-');
    now = await state();
    assert.ok(Math.abs(now.to - now.from - 60000000) < 1, 'as far out as in');
    await browser.keys('wd');
    assert.ok((await state()).from > (await (await browser.keys('a'), state())).from);
    await isQuiet(browser, url);
  },

  async 'arrows walk from event to event, enter frames'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    const state = () => browser.run(STATE);
    await browser.run(FOCUS);
    const begin = await state();
    await browser.keys(DOWN + DOWN); /* nothing selected: the next track */
    assert.ok((await state()).details.startsWith('Track GPU 0 stream 13: 40 memcpys'), (await state()).details);
    await browser.keys(ENTER);
    const first = await state();
    assert.ok(first.selected >= 0 && first.details.includes('HtoD pageablememcpy'), first.details);
    await browser.keys(RIGHT);
    assert.strictEqual((await state()).selected, first.selected + 1);
    await browser.keys(LEFT + LEFT);
    assert.strictEqual((await state()).selected, first.selected - 1);
    await browser.keys(DOWN);
    assert.ok((await state()).details.includes('GPU 0 stream 13 NVTX'), (await state()).details);
    await browser.keys(UP + ENTER);
    const framed = await state();
    assert.ok(framed.to - framed.from < (begin.to - begin.from) / 2);
    await browser.keys(ESCAPE + RIGHT);
    const panned = await state();
    assert.ok(panned.selected < 0 && panned.from > framed.from);
    await browser.keys('?');
    assert.ok(await browser.run(`const d = document.getElementById('timeline-help'); return d.open && d.textContent.includes('statistics of what is in view')`));
    await browser.keys(ESCAPE);
    assert.strictEqual(await browser.run(`return document.getElementById('timeline-help').open`), false);
    await isQuiet(browser, url);
  },

  async 'a click selects, a drag moves, a wheel zooms'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    const result = await browser.run(DRAG + `
      const t = perfkit.timelineView, v = t.view, at = t.draw.box(v, t.model.search('epoch').found[0]);
      point('pointerdown', at.x + 5, at.y + 5); point('pointerup', at.x + 5, at.y + 5);
      const details = document.getElementById('timeline-details').textContent, spans = [v.to - v.from];
      const wheel = (more) => { canvas.dispatchEvent(new WheelEvent('wheel', Object.assign({ bubbles: true, cancelable: true, deltaY: -60,
        clientX: box.left + at.x + 50, clientY: box.top + at.y }, more))); spans.push(v.to - v.from); };
      wheel({}); wheel({ ctrlKey: true });
      ${FOCUS} wheel({});
      const from = v.from;
      point('pointerdown', 500, 90); point('pointermove', 400, 90); point('pointerup', 400, 90);
      const moved = v.from > from, before = v.to - v.from;
      const second = { pointerId: 2 };
      point('pointerdown', 500, 90); point('pointerdown', 600, 90, second); point('pointermove', 700, 90, second);
      const pinched = v.to - v.from; point('pointerup', 700, 90, second); point('pointerup', 500, 90);
      point('pointermove', at.x + 5, at.y + 5);
      return { details, spans, moved, pinch: pinched / before };`);
    assert.ok(result.details.startsWith('epochNVTX range'), result.details);
    assert.strictEqual(result.spans[1], result.spans[0], 'without focus the page scrolls');
    assert.ok(result.spans[2] < result.spans[1] && result.spans[3] < result.spans[2], String(result.spans));
    assert.ok(result.moved);
    assert.ok(Math.abs(result.pinch - 0.5) < 1e-6, String(result.pinch));
    await isQuiet(browser, url);
  },

  async 'a range tells counts, sums and unions'(browser) {
    const { url, json } = report('normal');
    await load(browser, url);
    const whole = await browser.run(`${FOCUS} perfkit.timelineView.range(0, 60000000); return perfkit.timelineView.sums`);
    const of = (kind) => whole.kinds.find((k) => k.kind === kind);
    const total = (rows) => rows.reduce((ns, row) => ns + row.total_ns, 0);
    assert.strictEqual(of('kernel').count, 160);
    assert.strictEqual(of('kernel').ns, total(json.kernels.rows));
    assert.strictEqual(of('copy').ns + of('fill').ns, total(json.transfers.rows));
    assert.strictEqual(whole.devices[0].union, json.devices.rows[0].busy_ns, 'the device is busy as in every report');
    const gemm = whole.names.find((n) => n.name.includes('gemm_kernel'));
    const row = json.kernels.rows.find((r) => r.name.includes('gemm_kernel'));
    assert.deepStrictEqual([gemm.count, gemm.ns], [row.count, row.total_ns]);
    /* nested and simultaneous ranges count once: epoch covers all of its thread's */
    const range = of('range');
    assert.ok(range.union < range.ns && range.union >= 57000000, JSON.stringify(range));
    const told = await browser.run(`return document.getElementById('timeline-range').textContent`);
    assert.ok(told.includes('60.0 ms selected') && told.includes('160 kernels') && told.includes('GPU 0 busy 32.7 ms, 54.6 %'), told.slice(0, 200));
    /* half a kernel is half its time */
    const half = await browser.run(`const t = perfkit.timelineView, m = t.model; const i = m.ownRows[1].first;
      const a = m.events.start[i], b = m.events.end[i]; t.range(a, (a + b) / 2); return { ns: t.sums.kinds.find((k) => k.kind === 'copy').ns, want: (b - a) / 2 }`);
    assert.strictEqual(half.ns, half.want);
    /* by mouse: on the ruler, or with Shift */
    const dragged = await browser.run(DRAG + `const t = perfkit.timelineView; t.show(0, 60000000);
      point('pointerdown', 400, 5); point('pointermove', 500, 30); point('pointerup', 500, 30); const first = t.view.range;
      point('pointerdown', 600, 90, { shiftKey: true }); point('pointermove', 500, 90); point('pointerup', 500, 90);
      return { first, second: t.view.range, rows: document.querySelectorAll('#timeline-range-names tbody tr').length }`);
    assert.ok(dragged.first.from < dragged.first.to && dragged.second.from === dragged.first.to, JSON.stringify(dragged));
    assert.ok(dragged.rows > 3);
    await browser.keys(ESCAPE);
    assert.strictEqual(await browser.run(`return document.getElementById('timeline-range').hidden`), true);
    await browser.keys('v');
    assert.strictEqual((await browser.run(STATE)).range.to, 60000000);
    await isQuiet(browser, url);
  },

  async 'counters are lines, and what was not sampled is not zero'(browser) {
    const { url } = report('counters');
    await load(browser, url);
    const dom = await browser.run(`const t = perfkit.timelineView, m = t.model; t.range(1000000, 1300000);
      const line = m.lines.find((l) => l.label === 'GPU 0 tensor'), at = (ns) => P(line.value[m.placeIn(line, ns)] ?? NaN);
      function P(v) { return Number.isNaN(v) ? 'unknown' : Math.round(v * 1000) / 1000; }
      return { labels: m.lines.map((l) => [l.label, l.unit]), at: [0, 1050000, 1200000, 5000000, 8000000].map(at),
        told: document.getElementById('timeline-range-lines').textContent }`);
    assert.deepStrictEqual(dom.labels, [['GPU 0 sm_cycles', 'per second'], ['GPU 0 dram_read_bytes', 'share'],
      ['GPU 0 dram_write_bytes', 'share'], ['GPU 0 tensor', 'share'], ['GPU 0 alu', 'share']]);
    /* gemm: 700 cycles a ns of 528 pipes at 1.75 GHz; copy_rows and the time after them: none */
    assert.deepStrictEqual(dom.at, ['unknown', 0, 0.758, 0, 'unknown']);
    assert.ok(dom.told.includes('GPU 0 tensor 48.0 % of peak (mean), at most 75.8 % of peak') && dom.told.includes('1.75 G/s'), dom.told);
    await isQuiet(browser, url);
  },

  async 'several processes stand apart and fold'(browser) {
    const { url } = report('two_processes');
    await load(browser, url);
    await browser.run(FOCUS);
    const state = () => browser.run(`const t = perfkit.timelineView; return { seen: t.draw.plan.places.map((y) => y >= 0),
      groups: t.draw.plan.groups.map((g) => g.text), height: t.draw.plan.height, selected: t.view.selected,
      details: document.getElementById('timeline-details').textContent }`);
    const open = await state();
    assert.deepStrictEqual(open.groups, ['\u25be process 10  ./rank 0', '\u25be process 11  ./rank 1']);
    assert.deepStrictEqual(open.seen, [true, true, true, true]);
    await browser.keys('c');
    const folded = await state();
    assert.deepStrictEqual(folded.seen, [false, false, true, true]);
    assert.ok(folded.height < open.height && folded.details === 'Process 10 folded', folded.details);
    await browser.keys(DOWN); /* over what is folded */
    assert.ok((await state()).details.includes('process 11'), (await state()).details);
    await browser.run(`perfkit.timelineView.select(0)`); /* what is selected is seen */
    assert.deepStrictEqual((await state()).seen, [true, true, true, true]);
    const clicked = await browser.run(DRAG + `const t = perfkit.timelineView, y = t.draw.RULER + t.draw.plan.groups[1].y + 5;
      point('pointerdown', 60, y); point('pointerup', 60, y); t.range(0, 1000000);
      return { seen: t.draw.plan.places.map((p) => p >= 0), told: document.getElementById('timeline-range-told').textContent }`);
    assert.deepStrictEqual(clicked.seen, [true, true, false, false]);
    assert.ok(clicked.told.includes('GPU 0 (process 10) busy 200 us') && clicked.told.includes('GPU 0 (process 11) busy 300 us'), clicked.told);
    await isQuiet(browser, url);
  },

  async 'the address holds the view'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    assert.strictEqual((await browser.run(STATE)).hash, '', 'nothing was moved yet');
    await browser.run(`const t = perfkit.timelineView; t.setSearch('a&b=softmax'); t.setSearch('softmax'); t.range(3000000, 4000000);
      t.select(7, true); t.show(2000000, 5000000);`);
    const hash = '#t=2000000,5000000&e=7&r=3000000,4000000&q=softmax';
    await given(browser, `return location.hash === '${hash}'`);
    await load(browser, url + hash);
    const now = await browser.run(STATE);
    assert.deepStrictEqual([now.from, now.to, now.selected, now.range], [2000000, 5000000, 7, { from: 3000000, to: 4000000 }]);
    assert.strictEqual(now.found, '40 matches');
    for (const bad of ['#t=,', '#t=x,y&e=1', '#t=5,3&e=99999999&q=%E0%A4%A', '#t=1e999,2', '#tables'])
      await load(browser, url + bad);
    const text = await browser.run('return document.querySelector("main").textContent');
    assert.ok(!/NaN|undefined|Infinity/.test(text), String(text.match(/.{30}(NaN|undefined|Infinity)/)));
    await browser.log('performance');
  },

  async 'what is in view is told after a late frame'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    await inView(browser, /^In view, 60\.0 ms: /);
    await browser.run(`const frame = window.requestAnimationFrame, late = [], t = perfkit.timelineView;
      window.requestAnimationFrame = (draw) => late.push(draw);
      t.show(1e7, 3e7);
      return new Promise((done) => setTimeout(() => {
        t.show(1e7, 2e7);
        window.requestAnimationFrame = frame;
        late.forEach((draw) => draw());
        done();
      }, 300));`); /* longer than the view has to stand still */
    await inView(browser, /^In view, 10\.0 ms: /);
    await isQuiet(browser, url);
  },

  async 'the events in view are a table'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    await browser.run(`document.getElementById('timeline-events').open = true; perfkit.timelineView.show(10000000, 20000000);`);
    await inView(browser, /^In view, 10\.0 ms: /);
    const dom = await browser.run(`const t = perfkit.timelineView, place = document.getElementById('timeline-events');
      const rows = () => document.querySelectorAll('#events-table tbody tr').length;
      const filter = document.getElementById('events-filter'), all = [...place.querySelectorAll('button')].find((b) => b.textContent.startsWith('Show all'));
      all.click();
      const n = rows();
      filter.value = 'softmax'; filter.dispatchEvent(new Event('input'));
      const softmax = rows();
      document.querySelector('#events-table th button[data-column="1"]').click();
      document.querySelector('#events-table button.locate').click();
      const w = perfkit.within(t.model, 10000000, 20000000, true).kinds.reduce((sum, k) => sum + k.count, 0);
      return { n, softmax, selected: t.model.event(t.view.selected).name, w };`);
    assert.strictEqual(dom.n, dom.w);
    assert.ok(dom.softmax > 2 && dom.softmax < dom.n, String(dom.softmax));
    assert.strictEqual(dom.selected, 'softmax');
    await isQuiet(browser, url);
  },

  async 'rows fold low, hide, sort and come back; the window is filled and left'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    await browser.run(FOCUS);
    const plan = () => browser.run(`const p = perfkit.timelineView.draw.plan; return { order: p.order, high: p.high, height: p.height,
      full: document.getElementById('timeline').classList.contains('full'), canvas: perfkit.timelineView.draw.height }`);
    const first = await plan();
    await browser.keys('c');
    const low = await plan();
    assert.ok(low.high[0] < first.high[0] && low.height < first.height);
    assert.deepStrictEqual([first.canvas - first.height, low.canvas - low.height], [24, 24], 'the timeline is as high as its rows and the ruler');
    await browser.keys('>>'); /* small, usual */
    assert.strictEqual((await plan()).high[0], first.high[0]);
    await browser.keys('>');
    assert.strictEqual((await plan()).high[0], 28);
    const dragged = await browser.run(`const t = perfkit.timelineView, canvas = document.querySelector('.timeline-scroll canvas'), box = canvas.getBoundingClientRect();
      const track = t.draw.plan.order[0], rows = t.model.tracks[track].rows.length, edge = 24 + t.draw.plan.places[track] + rows * t.draw.plan.high[track] - 1;
      const point = (type, y) => canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1, button: 0, buttons: 1, clientX: box.left + 50, clientY: box.top + y }));
      canvas.setPointerCapture = () => {};
      point('pointerdown', edge); point('pointermove', edge + 12 * rows); point('pointerup', edge + 12 * rows);
      return t.draw.plan.high[track]`);
    assert.strictEqual(dragged, 40, 'by its lower edge');
    await browser.run(`document.getElementById('timeline-rows').open = true; const s = document.getElementById('timeline-height'); s.value = 12; s.dispatchEvent(new Event('change'))`);
    assert.deepStrictEqual([...new Set((await plan()).high)], [12], 'all of them');
    assert.strictEqual(await browser.run('return perfkit.timelineView.draw.plan.lineHigh'), 32, 'the lines above them, too');
    await browser.run(`const s = document.querySelector('#timeline-rows tbody select'); s.value = 48; s.dispatchEvent(new Event('change'));
      const all = document.getElementById('timeline-height'); all.value = 18; all.dispatchEvent(new Event('change'))`);
    const boxes = () => browser.run(`return [...document.querySelectorAll('#timeline-rows tbody input[aria-label^=Show]')].map((box) => box.checked)`);
    await browser.run(`document.getElementById('timeline-rows').open = true`);
    await browser.keys('h');
    assert.deepStrictEqual((await plan()).order, first.order.slice(1));
    assert.deepStrictEqual(await boxes(), first.order.map((t, k) => k > 0), 'the panel shows what a key changed');
    await browser.keys('H');
    assert.ok((await boxes()).every(Boolean));
    const again = await plan();
    assert.deepStrictEqual([again.order, again.high], [first.order, first.high]);
    await browser.run(`perfkit.timelineView.hideHere(); perfkit.timelineView.select(0)`);
    assert.deepStrictEqual((await plan()).order, first.order, 'what is selected is seen');
    await browser.run(`const s = document.getElementById('timeline-order'); s.value = 'name'; s.dispatchEvent(new Event('change'))`);
    const names = await browser.run(`const t = perfkit.timelineView; return t.draw.plan.order.map((k) => t.model.tracks[k].label)`);
    assert.deepStrictEqual(names, names.slice().sort());
    await browser.run(`const s = document.getElementById('timeline-height'); s.value = 48; s.dispatchEvent(new Event('change'))`);
    await browser.keys('e');
    assert.strictEqual((await plan()).full, true);
    assert.deepStrictEqual(await browser.run(`const scroll = document.querySelector('.timeline-scroll'); return [scroll.clientHeight, scroll.scrollHeight > scroll.clientHeight]`),
      [(await plan()).canvas, true], 'what does not fit is scrolled, and nothing is empty');
    await browser.keys(ESCAPE + ESCAPE);
    assert.strictEqual((await plan()).full, false);
    await isQuiet(browser, url);
  },

  async 'NVTX ranges are projected on the device'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    const dom = await browser.run(`const t = perfkit.timelineView, m = t.model, e = m.events, seen = [], wanted = [];
      const each = (lanes, f) => m.rows.filter((row) => lanes.includes(m.tracks[row.t].lane)).forEach((row) => { for (let i = row.first; i < row.first + row.n; i++) f(i, m.tracks[row.t]); });
      each(['projected'], (i, track) => seen.push([track.stream, m.names[e.name[i]], e.start[i], e.end[i]].join()));
      each(['ranges'], (range, at) => {
        const spans = new Map();
        each(['stream'], (i, track) => {
          const call = m.other(i);
          if (call < 0 || m.trackOf(call).thread !== at.thread || e.start[call] < e.start[range] || e.start[call] >= e.end[range]) return;
          const span = spans.get(track.stream) || [Infinity, -Infinity];
          spans.set(track.stream, [Math.min(span[0], e.start[i]), Math.max(span[1], e.end[i])]);
        });
        spans.forEach((span, stream) => wanted.push([stream, m.names[e.name[range]], ...span].join()));
      });
      return { seen: seen.sort(), wanted: wanted.sort(), searched: m.search('step').found.length, marks: (document.querySelector('#ranges-table button.locate').click(), 0) }`);
    assert.deepStrictEqual(dom.seen, dom.wanted);
    assert.ok(dom.seen.includes('1,step,2020000,3010000'), 'the first step on its stream');
    assert.strictEqual(dom.searched, 40 + 40, 'a search finds what was recorded: step and adam_step, no projection');
    await isQuiet(browser, url);
    await load(browser, report('normal+overlap').url);
    assert.deepStrictEqual(await browser.run(`return [perfkit.timelineView.model.tracks.filter((track) => track.lane === 'projected').length,
      document.getElementById('timeline').textContent.includes('NVTX ranges are not shown on the device')]`), [0, true]);
  },

  async 'samples of the processors are rows of their threads'(browser) {
    const { url, json } = report('host');
    await load(browser, url);
    const dom = await browser.run(`const t = perfkit.timelineView, m = t.model, e = m.events, found = [];
      const rows = m.rows.filter((row) => m.tracks[row.t].lane === 'samples').map((row) => [m.tracks[row.t].label,
        ...Array.from({ length: row.n }, (_, k) => row.first + k).map((i) => [m.kindOf(i), m.names[e.name[i]], e.start[i], e.end[i]])]);
      const buttons = [...document.querySelectorAll('#host-table button.locate')];
      return (async () => {
        for (const button of buttons) {
          button.click();
          await new Promise((done) => setTimeout(done, 0));
          found.push(t.view.marks.found.length);
        }
        return { rows, found, overlap: (() => { ${OVERLAPS} })(), counts: document.getElementById('timeline-counts').textContent };
      })();`);
    const load_batch = 'load_batch_from_the_shuffled_shards';
    assert.deepStrictEqual(dom.rows, [['main 500 CPU', ['running', load_batch, 7e6, 12e6], ['running', load_batch, 12e6, 17e6], ['blocked', 'blocked', 22e6, 42e6],
      ['preempted', 'preempted', 42e6, 54e6], ['preempted', 'preempted', 54e6, 63e6], ['running', 'sort_keys', 63e6, 63e6]],
    ['loader 501 CPU', ['running', dom.rows[1][1][1], 11e6, 20e6]]]);
    assert.strictEqual(dom.overlap, false);
    assert.strictEqual(dom.counts, '9 events: 2 kernels, 4 CPU samples, 1 blocked span, 2 preempted spans.');
    assert.strictEqual(dom.found.length, json.host.rows.length);
    assert.ok(dom.found.every((n) => n > 0), String(dom.found));
    await isQuiet(browser, url);
  },

  async 'a pinned row stays in sight'(browser) {
    const { url } = report('ranks');
    await load(browser, url);
    await browser.run(FOCUS);
    const dom = await browser.run(`const t = perfkit.timelineView, m = t.model, last = t.draw.plan.order[t.draw.plan.order.length - 1];
      document.querySelector('.timeline-scroll').style.maxHeight = '';
      t.draw.resize(900, 200);
      t.view.track = last;
      t.pinHere();
      t.view.top = 300;
      t.draw.resize(900, 200);
      const i = m.tracks[last].rows[0].first, box = t.draw.box(t.view, i), hit = t.draw.hit(t.view, box.x + 1, box.y + 3);
      const order = t.draw.plan.order.slice();
      t.hideHere();
      const hidden = t.draw.plan.order.includes(last);
      t.showRows();
      return { last, y: box.y, hit: hit && hit.t, first: order[0], count: order.filter((k) => k === last).length, hidden, pinned: t.draw.plan.pinned.size }`);
    assert.ok(dom.y > 24 && dom.y < 40, 'below the ruler: ' + dom.y);
    assert.deepStrictEqual([dom.hit, dom.first, dom.count, dom.hidden, dom.pinned], [dom.last, dom.last, 1, false, 0]);
    await browser.run(FOCUS);
    await browser.keys('p');
    assert.strictEqual(await browser.run('return perfkit.timelineView.draw.plan.pinned.size'), 1);
    await isQuiet(browser, url);
  },

  async 'a colour is the same at every zoom'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    const dom = await browser.run(`const t = perfkit.timelineView, m = t.model, canvas = document.querySelector('.timeline-scroll canvas');
      const ratio = window.devicePixelRatio, seen = [];
      for (const name of ['softmax', 'HtoD pageable', 'epoch', 'cudaLaunchKernel']) {
        const i = m.search(name).found[0], length = m.events.end[i] - m.events.start[i];
        for (const times of [3, 300]) {
          t.show(m.events.start[i] - length * times / 2, m.events.end[i] + length * times / 2);
          t.draw.draw(t.view);
          const box = t.draw.box(t.view, i);
          const at = canvas.getContext('2d').getImageData(Math.floor(box.x + 1) * ratio, (box.y + box.high - 4) * ratio, 1, 1).data;
          seen.push([name, '#' + [...at.slice(0, 3)].map((v) => v.toString(16).padStart(2, '0')).join(''), perfkit.css('--' + m.family(i))]);
        }
      }
      return seen;`);
    dom.forEach(([name, colour, wanted]) => assert.strictEqual(colour, wanted, name));
    await browser.log('browser'); /* of reading the canvas back */
    await browser.log('performance');
  },

  async 'names are text on the timeline too'(browser) {
    const { url } = report('hostile');
    await load(browser, url);
    const dom = await browser.run(`const t = perfkit.timelineView; let said = '';
      t.model.rows.forEach((row) => { for (let i = row.first; i < row.first + row.n; i++) { t.select(i);
        t.point({ x: t.draw.box(t.view, i).x + 1, y: t.draw.box(t.view, i).y + 4 });
        said += document.getElementById('timeline-details').textContent + document.querySelector('.timeline-hint').textContent; } });
      t.range(0, 1000000); said += document.getElementById('timeline-range').textContent;
      t.setSearch('</script>');
      return { said, broken: window.broken, scripts: document.scripts.length, images: document.images.length,
        found: document.getElementById('timeline-found').textContent }`);
    assert.strictEqual(dom.broken, null);
    assert.strictEqual(dom.scripts, 2, 'the packed events are taken out once unpacked');
    assert.strictEqual(dom.images, 0);
    assert.ok(dom.said.includes('</script><script>window.broken=1</script>') && dom.said.includes('__proto__') && dom.said.includes('rtl\\u{202e}gpj'));
    assert.ok(!dom.said.includes('\u202e') && !/NaN|undefined/.test(dom.said), String(dom.said.match(/.{40}(NaN|undefined)/)));
    assert.ok(/^[1-9]\d* matches$/.test(dom.found), dom.found);
    await isQuiet(browser, url);
  },

  async 'half a million events are all there'(browser) {
    const { url } = report('many');
    await load(browser, url);
    const dom = await browser.run(`const t = perfkit.timelineView, m = t.model; t.range(m.begin, m.end);
      return { sums: m.countByKind(), n: m.n, counts: document.getElementById('timeline-counts').textContent,
        merged: !!document.getElementById('timeline-merged'), rects: t.draw.draw(t.view), linked: m.events.other.reduce((n, o) => n + (o > 0), 0),
        range: t.sums.kinds.map((k) => [k.kind, k.count]), packed: !!document.getElementById('events') }`);
    assert.strictEqual(dom.counts, '500,001 events: 250,000 kernels, 250,000 API calls, 1 NVTX range.');
    assert.deepStrictEqual(dom.sums, { range: 1, call: 250000, kernel: 250000 });
    assert.strictEqual(dom.merged, false);
    assert.strictEqual(dom.linked, 500000);
    assert.deepStrictEqual(dom.range, [['kernel', 250000], ['call', 250000], ['range', 1]]);
    assert.ok(dom.rects < 4000, 'a frame costs what the screen holds, not ' + dom.rects);
    assert.strictEqual(await browser.run(OVERLAPS), false);
    const size = fs.statSync(url.replace('file://', '')).size;
    assert.ok(size < 500001 * 10, size + ' bytes');
    await isQuiet(browser, url);
  },

  async 'too many events are merged, none is lost'(browser) {
    const { url } = report('many', 'events=100000');
    await load(browser, url);
    const dom = await browser.run(`const t = perfkit.timelineView, m = t.model; t.range(m.begin, m.end);
      return { sum: Object.values(m.countByKind()).reduce((a, b) => a + b, 0), n: m.n, busy: t.sums.kinds.reduce((ns, k) => ns + k.ns, 0),
        counts: document.getElementById('timeline-counts').textContent, merged: document.getElementById('timeline-merged').textContent }`);
    assert.strictEqual(dom.counts, '500,001 events: 250,000 kernels, 250,000 API calls, 1 NVTX range.');
    assert.strictEqual(dom.sum, 500001);
    assert.ok(dom.n <= 100000 && dom.n > 40000, String(dom.n));
    assert.ok(dom.merged.startsWith('Too many events for one page') && dom.merged.includes('500,001 events are ' +
      dom.n.toString().replace(/(\d{3})$/, ',$1') + ' blocks'), dom.merged);
    assert.strictEqual(await browser.run(OVERLAPS), false);
    await isQuiet(browser, url);
  },

  async 'a browser that cannot unpack says so'(browser) {
    const { url } = report('normal');
    const file = url.replace('file://', ''), old = file.replace('.html', '-old.html');
    fs.writeFileSync(old, fs.readFileSync(file, 'utf8').replace('<style>', '<script>delete window.DecompressionStream</script><style>'));
    await load(browser, 'file://' + old);
    const text = await browser.run(`return perfkit_timeline.show({ start: 1 }).then(() => document.getElementById('timeline').textContent)`);
    assert.ok(text.includes('705 events') && text.includes('cannot unpack the events'), text);
    await isQuiet(browser, 'file://' + old);
  },

  async 'awkward times'(browser) {
    const { url } = report('awkward');
    await load(browser, url);
    assert.strictEqual(await browser.run(OVERLAPS), false);
    assert.strictEqual(await browser.run(`return document.getElementById('timeline-counts').textContent`),
      '31 events: 13 kernels, 12 API calls, 6 NVTX ranges.');
    await isQuiet(browser, url);
  },
};

async function picture(width, height, dark, file, script) {
  await withBrowser(width, height, dark, async (browser) => {
    await load(browser, report('normal').url);
    await browser.run(`document.getElementById('timeline').scrollIntoView(); ${FOCUS} const t = perfkit.timelineView; ${script}`);
    assert.ok(await browser.run('return document.documentElement.scrollWidth <= window.innerWidth'), 'fits its width');
    await rest(400);
    await browser.picture(path.join(pictures, file));
  });
}

runTests(tests, pictures ? [[1300, false, 'timeline-light.png', 't.range(1e7, 2e7)'], [1300, true, 'timeline-dark.png', 't.setSearch("gemm"); t.nextMatch(1); t.frame(); t.zoom(3)'],
  [520, false, 'timeline-narrow.png', 't.help()']].map(([width, dark, file, script]) => [file, () => picture(width, 1000, dark, file, script)]) : []);
