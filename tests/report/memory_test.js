/* Memory over time as the HTML report draws it, at widths of 600, 900 and 1,400 pixels: at 200 random
 * moments the height that the chart's path and the timeline's canvas have there is the level of that
 * pixel, which is added up from the allocations themselves:
 *     node memory_test.js REPORT_TOOL SQL_FOLDER WORK_FOLDER [PICTURE_FOLDER]
 * Exit 77 (skipped) where chromium or chromedriver is missing. */
'use strict';
const fs = require('fs');
const path = require('path');
const assert = require('assert');
const { execFileSync } = require('child_process');
const { pictures, load, isQuiet, runTests, withBrowser } = require('./page.js');

const [tool, source, work] = process.argv.slice(2);
const WALL = 60e6, MOMENTS = 200, HEIGHT = 160, ROOM = 14;

/* The same numbers each time. */
function random(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * below);
  };
}

/* Bursts of short allocations, each followed by a time in which nothing lives. */
function bursts(count, each) {
  const below = random(7), list = [], burst = WALL / count;
  for (let b = 0; b < count; b++)
    for (let i = 0; i < each; i++) {
      const start = Math.floor(b * burst + below(burst * 0.5));
      list.push([start, start + 1 + below(burst * 0.1), 1 + below(1 << 20)]);
    }
  return list;
}

/* The level after every change, in order of time. */
function levels(allocations) {
  const changes = allocations.flatMap(([start, end, bytes]) => [[start, bytes], [end, -bytes]]).sort((a, b) => a[0] - b[0]);
  const steps = [[0, 0]];
  changes.forEach(([time, bytes]) => {
    const last = steps[steps.length - 1];
    if (last[0] === time) last[1] += bytes;
    else steps.push([time, last[1] + bytes]);
  });
  return steps;
}

/* Least and most of the steps within [from, to). */
function within(steps, from, to) {
  let low = 0, high = steps.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (steps[middle][0] <= from) low = middle; else high = middle;
  }
  let [least, most] = [Infinity, 0];
  for (let i = low; i < steps.length && (i === low || steps[i][0] < to); i++) {
    least = Math.min(least, steps[i][1]);
    most = Math.max(most, steps[i][1]);
  }
  return [least, most];
}

function make(name, allocations) {
  const sql = path.join(work, name + '.sql'), capture = path.join(work, name + '.sqlite'), page = path.join(work, name + '.html');
  fs.writeFileSync(sql, fs.readFileSync(path.join(source, 'normal.sql'), 'utf8') + 'DELETE FROM allocation;' +
    'INSERT INTO allocation(process, thread, device, context, start, "end", bytes, kind) VALUES' +
    allocations.map(([start, end, bytes]) => `(1, 1, 1, 1, ${start}, ${end}, ${bytes}, 3)`).join(',') + ';');
  execFileSync(tool, ['make', sql, capture]);
  execFileSync(tool, ['write', 'html', capture, page]);
  return 'file://' + page;
}

/* The height that is drawn at every pixel of the chart's path. */
function chartHeights(d) {
  const heights = [];
  let y = HEIGHT;
  for (const [, letter, value] of d.matchAll(/([VH])([\d.]+)/g)) {
    if (letter === 'V') y = Number(value);
    else while (heights.length < Number(value)) heights.push(HEIGHT - y);
  }
  return heights;
}

const DRAWN = `const v = perfkit.timelineView, line = v.model.lines[0], canvas = document.querySelector('.timeline-scroll canvas');
  v.view.from = v.model.begin; v.view.to = v.model.end; v.view.top = 0; v.draw.draw(v.view);
  const at = v.draw.plan.lines[0].y + v.draw.RULER, ratio = canvas.width / v.draw.width, wide = v.draw.width - v.draw.gutter;
  const pixels = canvas.getContext('2d').getImageData(0, at * ratio, canvas.width, v.draw.LINE * ratio).data;
  const colour = perfkit.css('--bar').match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16)), heights = [];
  for (let x = 0; x < wide; x++) {
    let high = 0;
    for (let y = 0; y < v.draw.LINE; y++) {
      const k = 4 * (Math.floor(y * ratio) * canvas.width + Math.floor((v.draw.gutter + x + 0.5) * ratio));
      if (colour.every((part, c) => pixels[k + c] === part)) high++;
    }
    heights.push(high);
  }
  return { path: document.querySelector('#memory-chart path').getAttribute('d'), begin: v.model.begin, end: v.model.end,
    line: heights, rows: v.draw.LINE - 2, most: line.most, peak: perfkit.data.memory.peak_bytes,
    thinned: perfkit.data.memory.thinned };`;

/* At each moment the height in pixels lies between those of the least and the most level of its pixel;
 * where changes were joined, also of the pixels beside it. */
function judge(steps, heights, end, beside, heightOf, what) {
  const below = random(11), wide = end / heights.length;
  for (let i = 0; i < MOMENTS; i++) {
    const pixel = below(heights.length);
    const [least, most] = within(steps, (pixel - beside) * wide, (pixel + 1 + beside) * wide);
    const words = `${what}: pixel ${pixel} of ${heights.length} is ${heights[pixel]} high, not ${heightOf(least)} to ${heightOf(most)}`;
    assert.ok(heights[pixel] >= heightOf(least) - 0.01 && heights[pixel] <= heightOf(most) + 0.01, words);
    if (!beside) assert.ok(heights[pixel] >= heightOf(most) - 0.01, words);
  }
}

const cases = { some: bursts(4, 300), many: bursts(6, 3000) };
const tests = [600, 900, 1400].map((width) => ['what is drawn is what was allocated, at ' + width + ' pixels',
  () => withBrowser(width, 1000, false, async (browser) => {
    for (const [name, allocations] of Object.entries(cases)) {
      const url = make(name, allocations), steps = levels(allocations);
      await load(browser, url);
      const drawn = await browser.run(DRAWN), highest = within(steps, 0, WALL)[1];
      assert.strictEqual(drawn.thinned, name === 'many');
      assert.strictEqual(drawn.begin, 0);
      assert.strictEqual(drawn.peak, highest);
      assert.strictEqual(drawn.most, highest);
      const beside = drawn.thinned ? 1 : 0;
      judge(steps, chartHeights(drawn.path), drawn.end, beside, (level) => (level * (HEIGHT - ROOM)) / highest, name + ', chart');
      judge(steps, drawn.line, drawn.end, beside, (level) => Math.ceil((level / highest) * drawn.rows), name + ', timeline');
      if (pictures) await browser.picture(path.join(pictures, `memory-${name}-${width}.png`));
      await isQuiet(browser, url);
    }
  })]);

runTests({}, tests);
