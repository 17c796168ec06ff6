/* The panels of the HTML report in a real browser, each held against the JSON report of the same
 * capture, and how the page is used without a mouse, on paper and with scripts off:
 *     node panels_test.js REPORT_TOOL SQL_FOLDER WORK_FOLDER
 * Exit 77 (skipped) where chromium or chromedriver is missing. */
'use strict';
const fs = require('fs');
const path = require('path');
const assert = require('assert');
const { execFileSync } = require('child_process');
const { report, load, isQuiet, runTests } = require('./page.js');

const [tool, source, work] = process.argv.slice(2);
const sum = (list) => list.reduce((a, b) => a + b, 0);
const TAB = '\uE004', RIGHT = '\uE014', ENTER = '\uE007';

const tests = {
  async 'findings are all there, and lead to their places'(browser) {
    const { url, json } = report('normal');
    await load(browser, url);
    const dom = await browser.run(`
      const texts = (selector) => [...document.querySelectorAll(selector)].map((node) => node.textContent);
      return { rules: texts('.finding h3 code'), badges: texts('.finding .badge'), seen: texts('.finding .seen'),
        prices: texts('.finding .price'), top: texts('ol.top li a'), abstained: texts('#abstentions li code'),
        places: [...document.querySelectorAll('.finding ul.places a')].map((a) => a.getAttribute('href')),
        waterfall: texts('.waterfall tbody tr .figure').map(parseFloat) };`);
    const rows = json.findings.rows;
    assert.ok(rows.length >= 3);
    assert.deepStrictEqual(dom.rules, rows.map((row) => row.rule));
    assert.deepStrictEqual(dom.badges, rows.map((row) => row.severity));
    assert.deepStrictEqual(dom.seen, rows.map((row) => row.seen));
    assert.strictEqual(dom.prices.length, rows.filter((row) => row.bound_ns !== null || row.bytes !== null).length);
    rows.filter((row) => row.bound_ns !== null).forEach((row, i) =>
      assert.ok(dom.prices[i].includes((row.bound_share * 100).toFixed(1) + ' %'), dom.prices[i]));
    assert.deepStrictEqual(dom.top, rows.slice(0, 3).map((row) => row.title));
    assert.deepStrictEqual(dom.abstained, json.findings.abstentions.map((row) => row.rule));
    const places = rows.flatMap((row) => row.places);
    assert.deepStrictEqual(dom.places, places.map((at) => '#t=' + at.start_ns + ',' + (at.start_ns + at.duration_ns)));
    assert.ok(Math.abs(sum(dom.waterfall) - 100) < 1, 'the states add up: ' + dom.waterfall);
    const folded = await browser.run(`const open = () => document.querySelectorAll('details.finding[open]').length, before = open();
      location.hash = '#finding-2';
      return new Promise((done) => setTimeout(() => done([before, open(), document.querySelector('#finding-2').open, document.querySelectorAll('.finding summary .fix').length]), 50))`);
    assert.deepStrictEqual(folded, [0, 1, true, rows.length], 'folded to title, price and fix; a link unfolds');
    assert.ok(!(await browser.run(`return document.getElementById('findings').textContent`)).includes('torch.'), 'no PyTorch where there is none');
    const view = await browser.run(`document.querySelector('.finding ul.places a').click();
      return new Promise((done) => setTimeout(() => done({ from: perfkit.timelineView.view.from,
        to: perfkit.timelineView.view.to, focus: document.activeElement.className }), 50))`);
    const first = places[0];
    assert.ok(view.from <= first.start_ns && view.to >= first.start_ns + first.duration_ns, JSON.stringify(view));
    assert.ok(view.focus.includes('timeline-scroll'), view.focus);
    await isQuiet(browser, url);
  },

  async 'a kernel unfolds its histogram and launch configurations'(browser) {
    const { url, json } = report('normal');
    await load(browser, url);
    const data = await browser.run(`return { histograms: perfkit.data.kernel_histograms,
      cells: document.querySelectorAll('#kernels-table svg.spread').length }`);
    assert.strictEqual(data.cells, json.kernels.rows.length);
    assert.deepStrictEqual(data.histograms.map((histogram) => sum(histogram.slice(1))),
      json.kernels.rows.map((row) => row.count));
    const before = await browser.run(`const button = document.querySelector('#kernels button.unfold');
      button.focus(); return [button.getAttribute('aria-expanded'), button.getAttribute('aria-label')]`);
    assert.deepStrictEqual(before, ['false', 'Details of ' + json.kernels.rows[0].name]);
    await browser.keys(ENTER);
    const open = await browser.run(`const box = document.querySelector('.unfolded');
      const bars = [...box.querySelectorAll('.histogram rect title')].map((t) => parseInt(t.textContent.replace(/,/g, ''), 10));
      return { bars, configs: [...box.querySelectorAll('table tbody > tr')].map((r) => r.cells[1].textContent + ' | ' + r.cells[2].textContent),
        expanded: document.querySelector('#kernels button.unfold').getAttribute('aria-expanded') }`);
    assert.strictEqual(sum(open.bars), json.kernels.rows[0].count);
    assert.deepStrictEqual(open.configs, ['16 \u00d7 16 \u00d7 1 | 256 \u00d7 1 \u00d7 1']);
    assert.strictEqual(open.expanded, 'true');
    const sorted = await browser.run(`document.querySelector('#kernels-table th button').click();
      return document.querySelectorAll('.unfolded').length`);
    assert.strictEqual(sorted, 1, 'it stays open when the table is sorted');
    await browser.run(`document.querySelector('#kernels button.unfold[aria-expanded=true]').click()`);
    assert.strictEqual(await browser.run(`return document.querySelectorAll('.unfolded').length`), 0);
    await isQuiet(browser, url);
  },

  async 'a column whose values are all 0 is shown with all columns only'(browser) {
    const { url, json } = report('more');
    await load(browser, url);
    assert.ok(json.api.rows.length && json.api.rows.every((row) => row.failed === 0));
    const headings = () => browser.run(`return [...document.querySelectorAll('#api-table thead th')].map((th) => th.textContent)`);
    const before = await headings();
    assert.ok(!before.includes('Failed') && before.includes('Call'), before);
    await browser.run(`document.querySelector('#api button[aria-pressed]').click()`);
    assert.ok((await headings()).includes('Failed'));
    await isQuiet(browser, url);
  },

  async 'memory at its peak, transfers by size, bytes in the flame graph'(browser) {
    const { url, json } = report('normal');
    await load(browser, url);
    const dom = await browser.run(`
      const rows = (name) => perfkit.data.tables.find((table) => table.name === name);
      const column = (table, key) => table.rows.map((row) => row[table.columns.findIndex((c) => c.key === key)]);
      const alive = rows('alive'), sizes = rows('transfer_sizes');
      const time = perfkit.flameView.nodes[0].total;
      const by = document.getElementById('flame-measure');
      by.value = 'bytes'; by.dispatchEvent(new Event('change'));
      const bytes = perfkit.flameView.nodes[0].total;
      const search = document.getElementById('flame-search');
      search.value = 'memset'; search.dispatchEvent(new Event('input'));
      const lives = rows('lifetimes'), links = [...document.querySelectorAll('#lifetimes tbody a.place')].map((a) => a.getAttribute('href'));
      return { lives: column(lives, 'start_ns').map((start, i) => '#t=' + start + ',' + (start + column(lives, 'duration_ns')[i])), links,
        within: lives.rows.length && column(lives, 'duration_ns').every((ns, i) => ns >= column(lives, 'from_ns')[i] && !(ns >= column(lives, 'to_ns')[i])),
        alive: column(alive, 'bytes'), told: document.querySelector('#alive p').textContent,
        counts: column(sizes, 'count'), bytes: column(sizes, 'bytes'), low: column(sizes, 'low_bytes'),
        high: column(sizes, 'high_bytes'), flame: { time, bytes }, found: document.getElementById('flame-found').textContent };`);
    const peak = Math.max(...json.memory.rows.map((row) => row.peak_bytes));
    assert.strictEqual(sum(dom.alive), peak);
    assert.deepStrictEqual([dom.links, dom.within], [dom.lives, true], 'each class of lifetimes leads to the longest of it');
    assert.ok(dom.told.startsWith('261 MiB in 3 allocations at'), dom.told);
    const transfers = json.transfers.rows;
    assert.strictEqual(sum(dom.counts), sum(transfers.map((row) => row.count)));
    assert.strictEqual(sum(dom.bytes), sum(transfers.map((row) => row.bytes)));
    dom.bytes.forEach((bytes, i) => {
      const mean = bytes / dom.counts[i];
      assert.ok(mean >= dom.low[i] && mean < dom.high[i], 'class ' + i);
    });
    assert.strictEqual(dom.flame.bytes, sum(transfers.map((row) => row.bytes)));
    assert.ok(/^\d+ frames?, \d/.test(dom.found), dom.found);
    await browser.run(`document.querySelector('#memory-chart svg').focus()`);
    const before = await browser.run(`return document.getElementById('memory-told').textContent`);
    await browser.keys(RIGHT);
    assert.notStrictEqual(await browser.run(`return document.getElementById('memory-told').textContent`), before);
    await isQuiet(browser, url);
  },

  async 'the host\'s stack in the flame graph and in a kernel\'s details'(browser) {
    const capture = path.join(work, 'stacks.sqlite'), sql = path.join(work, 'stacks.sql'), out = path.join(work, 'stacks.html');
    fs.writeFileSync(sql, fs.readFileSync(path.join(source, 'normal.sql'), 'utf8') +
      "INSERT INTO string(id, value) VALUES(9001, 'ns::launch<T>(int)'), (9002, '/src/<img src=x>.c'), (9003, 'main');" +
      "INSERT INTO frame(id, process, kind, address) VALUES(1, 1, 1, 1), (2, 1, 1, 2);" +
      "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 9003, 9002, 7), (2, 0, 9001, 9002, 42);" +
      "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2); UPDATE kernel SET stack = 2;");
    execFileSync(tool, ['make', sql, capture]);
    execFileSync(tool, ['write', 'html', capture, out]);
    const url = 'file://' + out;
    await load(browser, url);
    const dom = await browser.run(`
      const nodes = perfkit.flameView.nodes, launch = nodes.find((node) => node.name.startsWith('ns::launch'));
      perfkit.flameView.zoomTo(launch);
      const told = document.querySelector('#flame .details').textContent;
      const by = document.getElementById('flame-measure');
      by.value = 'idle'; by.dispatchEvent(new Event('change'));
      const now = perfkit.flameView.nodes, idle = now[0].total;
      const search = document.getElementById('flame-search');
      search.value = '.c:42'; search.dispatchEvent(new Event('input'));
      document.querySelector('#kernels button.unfold').click();
      return { kind: launch.kind, parent: nodes[launch.parent].name, told, idle, sum: now.reduce((n, node) => n + (node.children.length ? 0 : node.idle), 0),
        found: document.getElementById('flame-found').textContent, callers: document.querySelector('.unfolded .callers').textContent,
        strange: document.querySelectorAll('#flame img, .unfolded img').length, broken: window.broken }`);
    assert.strictEqual(dom.kind, 'frame');
    assert.strictEqual(dom.parent, 'main');
    assert.ok(dom.told.includes('function at /src/<img src=x>.c:42'), dom.told);
    assert.ok(dom.idle > 0 && dom.idle === dom.sum, dom.idle + ' of ' + dom.sum);
    assert.ok(dom.found.startsWith('1 frame'), dom.found);
    assert.ok(dom.callers.includes('ns::launch<T>(int) (<img src=x>.c:42) \u2190 main (<img src=x>.c:7)'), dom.callers);
    assert.strictEqual(dom.strange, 0);
    const lines = await browser.run(`return document.getElementById('lines').textContent`);
    assert.ok(lines.includes('ns::launch<T>(int) (<img src=x>.c:42)'), lines);
    /* the selected kernel of the timeline: its call's stack, innermost first; it stays unfolded */
    const stack = await browser.run(`
      const t = perfkit.timelineView, m = t.model, i = [...Array(m.n).keys()].find((k) => m.kindOf(k) === 'kernel' && m.other(k) >= 0);
      t.select(i);
      const first = document.getElementById('timeline-stack'), summary = first.querySelector('summary').textContent;
      const frames = Array.from(first.querySelectorAll('li'), (li) => li.textContent);
      const copy = [...Array(m.n).keys()].find((k) => m.kindOf(k) === 'copy');
      return { summary, frames, own: first.querySelectorAll('li.own').length, call: m.stack(m.other(i)).length, none: m.stack(copy).length,
        strange: document.querySelectorAll('#timeline-details img').length }`);
    assert.deepStrictEqual(stack, { summary: 'called from ns::launch<T>(int) (<img src=x>.c:42) < main (<img src=x>.c:7)',
      frames: ['ns::launch<T>(int) (<img src=x>.c:42)', 'main (<img src=x>.c:7)'], own: 2, call: 2, none: 0, strange: 0 });
    await isQuiet(browser, url);
  },

  async 'keys of the flame graph, also among callers'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    const dom = await browser.run(`
      const F = perfkit.flameView, [main, callers] = document.querySelectorAll('#flame .flame'), marked = [];
      window.perfkit_timeline.mark = (at) => marked.push(at.words);
      const press = (frame, node, key, more) => {
        const event = new KeyboardEvent('keydown', Object.assign({ key, cancelable: true }, more));
        frame.querySelector('[data-node="' + node.id + '"]').dispatchEvent(event);
        return event.defaultPrevented;
      };
      const kernel = F.nodes.filter((node) => node.kind === 'kernel').sort((a, b) => b.total - a.total)[0];
      F.zoomTo(kernel);
      const browsers = press(main, kernel, 's', { ctrlKey: true }), before = F.callers.length;
      press(main, kernel, 'S');
      const caller = F.callers.find((node) => node.depth === 2);
      press(callers, caller, 't');
      return { browsers, before, after: F.callers.length > 2, marked, kernel: kernel.name, caller: caller.name };`);
    assert.deepStrictEqual([dom.browsers, dom.before, dom.after], [false, 1, true], 'Ctrl and S is the browser\'s');
    assert.deepStrictEqual(dom.marked, [dom.kernel], 'what ' + dom.caller + ' launched');
    await isQuiet(browser, url);
  },

  async 'where a kernel waits: reasons, source and instructions'(browser) {
    const file = path.join(work, 'gather.cu'), secret = path.join(work, 'secret'), scene = path.join(work, 'stalls.sql');
    fs.writeFileSync(file, Array.from({ length: 30 }, (_, k) => 'line ' + (k + 1) + (k === 10 ? ' </script><b>bold</b>' : '')).join('\n'));
    fs.writeFileSync(secret, 'not to be shown\n');
    fs.writeFileSync(scene, fs.readFileSync(path.join(source, 'normal.sql'), 'utf8') + `INSERT INTO string(id, value) VALUES(9201, '${file}'),
      (9202, 'LDG.E R4, [R2.64] ;'), (9203, '<b>FADD</b> R5'), (9204, 'BAR.SYNC 0x0 ;'), (9206, '${secret}');
      INSERT INTO stall_context(process, context, period, samples, dropped) VALUES(1, 1, 65536, 1000, 0);
      INSERT INTO stall_function(context, name) SELECT 1, id FROM string WHERE value = 'softmax';
      INSERT INTO stall(function, offset, file, line, sass, not_issued, selected, long_scoreboard, barrier) VALUES(1, 16, 9201, 11, 9202, 10, 20, 30, NULL),
        (1, 32, 9201, 11, 9203, 50, 40, 600, NULL), (1, 48, 9201, 20, 9204, 80, 10, NULL, 290), (1, 64, 9206, 1, NULL, 2, 1, 9, NULL);`);
    const capture = path.join(work, 'stalls.sqlite'), page = path.join(work, 'stalls.html');
    execFileSync(tool, ['make', scene, capture]);
    execFileSync(tool, ['write', 'html', capture, page]);
    assert.ok(!fs.readFileSync(page, 'utf8').includes('not to be shown'), 'only sources are read');
    await load(browser, 'file://' + page);
    const dom = await browser.run(`document.querySelector('#stalls-table button.unfold').click();
      const box = document.querySelector('.unfolded.stalls'), rows = (place) => [...place.querySelectorAll('tr')].map((row) => [...row.cells].map((cell) => cell.textContent).join('|'));
      const [text, code] = box.querySelectorAll('.listing tbody');
      code.rows[1].dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
      const told = [...box.querySelectorAll('tr.told')].map((row) => row.cells[2].textContent);
      document.querySelector('#stalls-table button.locate').click();
      return new Promise((done) => setTimeout(() => done({ reasons: rows(box.querySelector('.stall-reasons tbody')), source: rows(text), code: rows(code), told,
        marked: perfkit.timelineView.view.marks.found.length, bold: box.querySelectorAll('b').length, scripts: document.scripts.length }), 0));`);
    assert.deepStrictEqual(dom.reasons.map((row) => row.split('|').slice(0, 2).join(' ')), ['63.9 % long_scoreboard', '29.0 % barrier', '7.1 % selected']);
    assert.deepStrictEqual(dom.source, [file, '||9|line 9', '||10|line 10', '69.0 %|long_scoreboard|11|line 11 </script><b>bold</b>', '||12|line 12', '||13|line 13', '||\u22ef|',
      '||18|line 18', '||19|line 19', '30.0 %|barrier|20|line 20', '||21|line 21', '||22|line 22', secret, '1.0 %|long_scoreboard|1|']);
    assert.deepStrictEqual(dom.code.slice(0, 3), ['5.0 %|long_scoreboard|0x10|LDG.E R4, [R2.64] ;', '64.0 %|long_scoreboard|0x20|<b>FADD</b> R5', '30.0 %|barrier|0x30|BAR.SYNC 0x0 ;']);
    assert.deepStrictEqual([dom.told, dom.marked, dom.bold, dom.scripts], [['11', '0x10', '0x20'], 40, 0, 2]);
    assert.ok(await browser.run('return document.documentElement.scrollWidth <= window.innerWidth'));
    await isQuiet(browser, 'file://' + page);
  },

  async 'a comparison, when a baseline is given'(browser) {
    const none = report('normal');
    assert.ok(!fs.readFileSync(none.url.slice(7), 'utf8').includes('id="comparison"'));
    const other = path.join(work, 'o\'"<i>&.sqlite'), sql = path.join(work, 'other.sql');
    fs.writeFileSync(sql, fs.readFileSync(path.join(source, 'normal.sql'), 'utf8') +
      "UPDATE kernel SET duration = duration / 2 WHERE config IN (2, 3); UPDATE transfer SET bytes = 2 * bytes WHERE kind = 1;" +
      "UPDATE string SET value = '</script><img src=x>' WHERE value = 'softmax'; UPDATE capture SET host = '<i>elsewhere';");
    execFileSync(tool, ['make', sql, other]);
    let { url } = report('normal', 'baseline=' + other);
    await load(browser, url);
    const dom = await browser.run(`
      const texts = (selector) => [...document.querySelectorAll(selector)].map((node) => node.textContent);
      const slower = [...document.querySelectorAll('.comparison-times tr.slower')].map((row) => row.textContent);
      return { groups: texts('.comparison-times th[scope=rowgroup]'), slower, counts: texts('.comparison-counts tbody tr'),
        moved: texts('.comparison-times .figure'), against: texts('.facts a[href="#comparison"]'), link: document.querySelector('nav a[href="#comparison"]') !== null,
        strange: document.querySelectorAll('#comparison img, #comparison script, #comparison i').length, broken: window.broken,
        text: document.getElementById('comparison').textContent }`);
    const flame = await browser.run(`const F = perfkit.flameView, sum = (kind) => F.nodes.filter((node) => node.kind === kind && node.name.includes('gemm_kernel'))
      .reduce((all, node) => [all[0] + node.total, all[1] + node.base], [0, 0]);
      const wide = F.nodes.find((node) => node.name.includes('gemm_kernel'));
      F.zoomTo(wide);
      return { sum: sum('kernel'), told: document.querySelector('#flame .details').textContent, colour: document.querySelector('[data-node="' + wide.id + '"]').style.background }`);
    assert.deepStrictEqual(dom.against.slice(1), [other]); /* on the first screen, too */
    assert.ok(Math.abs(flame.sum[0] / flame.sum[1] - 2) < 1e-4, 'twice as long as in the baseline: ' + flame.sum);
    assert.ok(flame.told.includes('(+100.0 %)') && flame.colour === 'var(--wait)', JSON.stringify(flame));
    assert.ok(dom.groups.includes('Kernels'), String(dom.groups));
    assert.ok(dom.slower.some((text) => text.includes('gemm_kernel') && text.includes('+')), String(dom.slower));
    assert.ok(dom.text.includes('</script><img src=x>'), dom.text);
    assert.ok(dom.counts.some((text) => text.includes('HtoD')), String(dom.counts));
    assert.ok(dom.moved.length && dom.moved.every((text) => /^[+-]\d/.test(text)), String(dom.moved));
    assert.ok(dom.link);
    assert.strictEqual(dom.strange, 0);
    assert.strictEqual(dom.broken, null);
    await isQuiet(browser, url);
    report('hostile');
    url = report('normal', 'baseline=' + path.join(work, 'hostile.sqlite')).url;
    await load(browser, url);
    const why = await browser.run(`return document.querySelector('#comparison .warning').textContent`);
    assert.ok(why.startsWith('They cannot be compared: iterations are'), why);
    await isQuiet(browser, url);
  },

  async 'the roofline tells its points by mouse and keyboard'(browser) {
    const { url, json } = report('roofline');
    await load(browser, url);
    /* but for the last one, which takes next to no time and would stretch the axes */
    const drawable = json.roofline.rows.filter((row) => row.flop_per_s > 1 &&
      (row.dram_flop_per_byte > 0 || row.l2_flop_per_byte > 0) && row.name !== 'tiny');
    const dom = await browser.run(`return { points: document.querySelectorAll('.roofline .point').length,
      names: [...document.querySelectorAll('ol.points li .mono')].map((n) => n.textContent),
      inside: [...document.querySelectorAll('.roofline circle')].every((c) => c.cx.baseVal.value > 0 && c.cx.baseVal.value < 960 &&
        c.cy.baseVal.value > 0 && c.cy.baseVal.value < 440) }`);
    assert.strictEqual(dom.points, drawable.length);
    assert.strictEqual(dom.names.length, drawable.length);
    assert.ok(dom.inside);
    assert.deepStrictEqual(await browser.run(`return [document.querySelectorAll('.roofline line.product').length,
      [...document.querySelectorAll('.roofline text')].filter((t) => t.textContent.endsWith('(dashed)')).length]`), [2, 2]);
    const tip = () => browser.run(`return [document.querySelector('.roofline .tip').textContent,
      document.querySelectorAll('.roofline .told').length]`);
    await browser.run(`document.querySelector('.roofline .point').focus()`);
    const [first, told] = await tip();
    assert.ok(first.startsWith('1: ' + drawable[0].name), first);
    assert.strictEqual(told, 2); /* the disc and its line */
    await browser.keys(RIGHT);
    assert.ok((await tip())[0].startsWith('2: '));
    await browser.run(`document.activeElement.blur();
      document.querySelectorAll('.roofline .point')[2].dispatchEvent(new MouseEvent('mouseenter'))`);
    assert.ok((await tip())[0].startsWith('3: '));
    await isQuiet(browser, url);
  },

  async 'colours can be chosen'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    const page = (choice) => browser.run(`const select = document.getElementById('colours');
      select.value = ${JSON.stringify(choice)}; select.dispatchEvent(new Event('change'));
      return getComputedStyle(document.body).backgroundColor`);
    const light = await page('light'), dark = await page('dark');
    assert.notStrictEqual(light, dark);
    assert.strictEqual(await page('automatic'), light);
    await isQuiet(browser, url);
  },

  async 'headings, landmarks, tables and names hold together'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    const dom = await browser.run(`
      const all = (selector) => [...document.querySelectorAll(selector)];
      const levels = all('h1, h2, h3, h4').map((h) => Number(h.tagName[1]));
      const ids = all('[id]').map((node) => node.id);
      const named = all('[aria-labelledby], [aria-describedby]').flatMap((node) =>
        ((node.getAttribute('aria-labelledby') || '') + ' ' + (node.getAttribute('aria-describedby') || '')).trim().split(/\\s+/));
      return { landmarks: ['header', 'nav', 'main', 'footer'].map((tag) => all('body > ' + tag).length), h1: all('h1').length,
        jumps: levels.filter((level, i) => i && level > levels[i - 1] + 1).length,
        twice: ids.filter((id, i) => ids.indexOf(id) !== i), dangling: named.filter((id) => !document.getElementById(id)),
        unscoped: all('th:not([scope])').length, broken: all('nav a, .skip').map((a) => a.hash.slice(1))
          .filter((id) => !document.getElementById(id)) };`);
    assert.deepStrictEqual(dom, { landmarks: [1, 1, 1, 1], h1: 1, jumps: 0, twice: [], dangling: [], unscoped: 0, broken: [] });
  },

  async 'the whole page by the tab key'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    await browser.run('window.scrollTo(0, 0); document.activeElement.blur()');
    const seen = [];
    for (let i = 0; i < 40; i++) {
      await browser.keys(TAB.repeat(5));
      seen.push(await browser.run(`const a = document.activeElement, s = getComputedStyle(a);
        const back = window.before && window.before.compareDocumentPosition(a) & Node.DOCUMENT_POSITION_PRECEDING;
        window.before = a; /* behind the last one it begins again */
        return [a === document.body || Boolean(back), (a.closest('section, nav, body') || {}).id || '', s.outlineStyle !== 'none' ||
          (a.closest('.point') && getComputedStyle(a.querySelector('circle')).strokeWidth === '4px'), a.outerHTML.slice(0, 90)]`));
      if (seen[seen.length - 1][0]) break;
    }
    const places = seen.map(([, id]) => id);
    ['findings', 'timeline', 'flame', 'kernels', 'transfers'].forEach((id) => assert.ok(places.includes(id), id + ' in ' + places));
    assert.deepStrictEqual(seen.filter(([end, , visible]) => !end && !visible).map(([, , , what]) => what), [], 'the focus is always seen');
    assert.ok(new Set(places).size > 8, 'no trap: ' + places);
  },

  async 'paper: nothing folded, nothing cut'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    const pdf = await browser.print();
    assert.ok(pdf.length > 20000 && pdf.subarray(0, 5).toString() === '%PDF-');
    await browser.devtools('Emulation.setDeviceMetricsOverride', { width: 700, height: 1000, deviceScaleFactor: 1, mobile: false });
    await browser.devtools('Emulation.setEmulatedMedia', { media: 'print' });
    const paper = await browser.run(`window.dispatchEvent(new Event('beforeprint'));
      const wide = [...document.querySelectorAll('main *')].filter((n) => { const r = n.getBoundingClientRect();
        return r.width > 1 && r.right > innerWidth + 1 && !n.closest('.unseen, .flame'); });
      return { closed: document.querySelectorAll('details:not([open])').length, wide: wide.map((n) => n.outerHTML.slice(0, 80)),
        hidden: getComputedStyle(document.querySelector('nav')).display,
        canvas: document.querySelector('.timeline-scroll canvas').getBoundingClientRect().height > 50 }`);
    assert.deepStrictEqual(paper, { closed: 0, wide: [], hidden: 'none', canvas: true });
    await browser.run(`window.dispatchEvent(new Event('afterprint'))`);
    assert.ok(await browser.run(`return document.querySelectorAll('details:not([open])').length`) > 0);
    await browser.devtools('Emulation.setEmulatedMedia', { media: '' });
    await browser.devtools('Emulation.clearDeviceMetricsOverride');
    await isQuiet(browser, url);
  },

  async 'scripts off: text, findings and tables are there, names are text'(browser) {
    await browser.devtools('Emulation.setScriptExecutionDisabled', { value: true });
    try {
      for (const name of ['normal', 'hostile']) {
        const { url, json } = report(name);
        await browser.go(url);
        const dom = await browser.run(`return { main: document.querySelector('main').innerText, images: document.images.length,
          scripts: document.scripts.length, strange: document.querySelectorAll('main b b, main i, svg[onload]').length,
          names: [...document.querySelectorAll('noscript td.name')].map((n) => n.textContent), broken: window.broken }`);
        assert.ok(dom.main.includes(json.findings.rows[0].title), name);
        assert.ok(dom.main.includes('Scripts are off'));
        assert.strictEqual(dom.images + dom.strange, 0);
        assert.strictEqual(dom.scripts, 3);
        assert.strictEqual(dom.broken, null);
        json.kernels.rows.filter((row) => /^[\\w ():,<>*/]+$/.test(row.name || '')).forEach((row) =>
          assert.ok(dom.names.includes(row.name), row.name));
        assert.ok(!dom.main.includes('\u202e'));
      }
    } finally {
      await browser.devtools('Emulation.setScriptExecutionDisabled', { value: false });
    }
  },
};

runTests(tests);
