/* How the other sections of the HTML report lead to its timeline, and the captures that it shows beside the report's own, in a
 * real browser:
 *     node timeline_links_test.js REPORT_TOOL SQL_FOLDER WORK_FOLDER
 * Exit 77 (skipped) where chromium or chromedriver is missing. */
'use strict';
const assert = require('assert');
const { report, until, load, isQuiet, runTests, FOCUS, inView } = require('./page.js');

const ESCAPE = '\uE00C';

const tests = {
  async 'other sections lead here'(browser) {
    const { url } = report('normal');
    await load(browser, url);
    const at = await browser.run(`const m = perfkit.timelineView.model, i = m.search('softmax').found[3], e = m.events;
      return { start: e.start[i], end: e.end[i], stream: m.trackOf(i).stream, i }`);
    const shown = await browser.run(`return perfkit_timeline.show(arguments[0]).then(() => ({ selected: perfkit.timelineView.view.selected,
      from: perfkit.timelineView.view.from, to: perfkit.timelineView.view.to, focus: document.activeElement.className }))`, at);
    assert.strictEqual(shown.selected, at.i);
    assert.ok(shown.from < at.start && shown.to > at.end && shown.to - shown.from < 200000);
    assert.strictEqual(shown.focus, 'timeline-scroll');
    const idle = await browser.run(`const t = perfkit.timelineView, a = { start: arguments[0].end + 100, end: arguments[0].end + 900, stream: arguments[0].stream };
      t.select(-1); return perfkit_timeline.show(a).then(() => ({ selected: t.view.selected, range: t.view.range, want: a }))`, at);
    assert.deepStrictEqual([idle.selected, idle.range.from, idle.range.to], [-1, idle.want.start, idle.want.end]);
    const linked = await browser.run(`const a = document.createElement('a'); a.href = '#t=' + arguments[0].start + ',' + arguments[0].end;
      a.dataset.stream = arguments[0].stream; perfkit.timelineView.select(-1); document.querySelector('main').append(a); a.click(); a.remove();
      return perfkit.timelineView.view.selected`, at);
    assert.strictEqual(linked, at.i);
    await isQuiet(browser, url);
  },

  async 'rows of tables and frames lead to their instances, all of them marked'(browser) {
    const { url, json } = report('normal');
    await load(browser, url);
    const rows = await browser.run(`const t = perfkit.timelineView, result = [];
      return (async () => {
        for (const name of ['kernels', 'transfers', 'transfer_sizes', 'api', 'waits', 'ranges']) {
          const table = perfkit.data.tables.find((one) => one.name === name), count = table.columns.findIndex((c) => c.key === 'count');
          for (const [k, button] of [...document.querySelectorAll('#' + name + '-table button.locate')].entries()) {
            button.click();
            await new Promise((done) => setTimeout(done, 0));
            const { found, numbers } = t.view.marks, e = t.model.events, lasts = (i) => e.end[i] - e.start[i];
            result.push([name, found.length, table.rows[k][count], numbers.includes(t.view.selected) && found.every((i) => lasts(i) <= lasts(t.view.selected))]);
          }
        }
        return result;
      })();`);
    const tables = { kernels: 'kernels', transfers: 'transfers', api: 'api', waits: 'waits', ranges: 'ranges' };
    Object.entries(tables).forEach(([name, key]) => assert.strictEqual(rows.filter((row) => row[0] === name).length, json[key].rows.length, name));
    rows.forEach((row) => assert.deepStrictEqual(row.slice(1), [row[2], row[2], true], row[0]));
    const paths = await browser.run(`const t = perfkit.timelineView, said = (at) => perfkit_timeline.mark(at).then(() => document.querySelector('#timeline-found').textContent), count = (at) => perfkit_timeline.mark(at).then(() => t.view.marks.found.length), held = perfkit.data.tables.find((one) => one.name === 'held');
      const column = (key) => held.rows.map((row) => row[held.columns.findIndex((one) => one.key === key)]);
      return (async () => {
        const marked = [];
        for (const button of document.querySelectorAll('#held-table button.locate')) {
          button.click();
          await new Promise((done) => setTimeout(done, 0));
          marked.push(t.view.marks.found.length);
        }
        return { marked, counts: column('count'), calls: [await count({ path: ['f<g<int> > (x.c:3)', 'step', 'cudaLaunchKernel'], place: 'f (x.c)' }), await count({ kinds: ['call'], name: 'cudaLaunchKernel', within: ['step'] })],
          ranges: [await count({ path: ['main (x.c:1)', 'epoch', 'step'], place: 'main (x.c:1)' }), await count({ kinds: ['range'], name: 'step' })], words: await said({ path: ['main (x.c:1)', 'epoch', 'step'], words: 'step' }) };
      })();`);
    assert.ok(paths.marked.length && paths.calls[0] && paths.ranges[0], JSON.stringify(paths));
    assert.deepStrictEqual([paths.marked, paths.calls[0], paths.ranges[0]], [paths.counts, paths.calls[1], paths.ranges[1]], 'a call path: its call, or its innermost range');
    assert.ok(/step: [\d,]+ of [\d,]+ ranges/.test(paths.words), 'marks of a call path are ranges or calls, not blocks');
    const flame = await browser.run(`const t = perfkit.timelineView, F = perfkit.flameView, counts = {};
      return (async () => {
        for (const node of F.nodes.filter((one) => one.count)) {
          F.zoomTo(node);
          document.querySelector('#flame .details button').click();
          await new Promise((done) => setTimeout(done, 0));
          counts[node.id] = [node.count, t.view.marks.found.length];
        }
        return Object.values(counts);
      })();`);
    assert.ok(flame.length > 4);
    flame.forEach(([count, marked]) => assert.strictEqual(marked, count));
    await browser.run(FOCUS);
    await browser.keys('x');
    const seen = await browser.run(`const t = perfkit.timelineView, e = t.model.events;
      return t.view.marks.found.every((i) => e.start[i] >= t.view.from && e.end[i] <= t.view.to)`);
    assert.ok(seen, 'all in view');
    await browser.keys(ESCAPE + ESCAPE);
    assert.strictEqual(await browser.run(`return perfkit.timelineView.view.marks`), null);
    await isQuiet(browser, url);
    await load(browser, report('normal+optimizer').url);
    const steps = await browser.run(`document.querySelector('#pytorch-table button.locate').click();
      return new Promise((done) => setTimeout(() => {
        const t = perfkit.timelineView, found = Array.from(t.view.marks.found);
        done([...new Set(found.map((i) => t.model.event(i).name)), found.length]);
      }, 0));`);
    assert.deepStrictEqual(steps, ['Optimizer.step#SGD.step', 40]);
  },

  async 'ranks, their differences and collectives lead to their operations'(browser) {
    const { url } = report('ranks');
    await load(browser, url);
    const [rows, kernels, counts] = await browser.run(`const t = perfkit.timelineView, result = [];
      const column = (name, key) => { const table = perfkit.data.tables.find((one) => one.name === name); return table.rows.map((row) => row[table.columns.findIndex((c) => c.key === key)]); };
      return (async () => {
        for (const name of ['ranks', 'collectives', 'rank_differences']) {
          for (const line of document.querySelectorAll('#' + name + '-table tbody tr')) {
            line.querySelector('button.locate').click();
            await new Promise((done) => setTimeout(done, 0));
            result.push([name, t.view.marks.found.length, new Set(t.view.marks.found.map((i) => t.model.trackOf(i).pid)).size]);
          }
        }
        return [result, column('ranks', 'kernels'), column('collectives', 'count')];
      })();`);
    const of = (name) => rows.filter((row) => row[0] === name);
    assert.deepStrictEqual(of('collectives').map((row) => row[1]), counts);
    assert.ok(of('ranks').length === kernels.length && of('ranks').every((row, i) => row[1] >= kernels[i] && row[2] === 1), JSON.stringify(rows));
    assert.ok(of('rank_differences').length && of('rank_differences').every((row) => row[1] > 0 && row[2] === 1), JSON.stringify(rows));
    await isQuiet(browser, url);
  },

  async 'the strip of iterations: all of them, slow ones marked, a click and keys zoom'(browser) {
    const { url, json } = report('normal+steps');
    await load(browser, url);
    const dom = await browser.run(`const t = perfkit.timelineView, source = perfkit.data.iterations, [series] = source.series;
      const strip = document.getElementById('iterations-strip'), told = () => document.getElementById('iterations-told').textContent;
      const press = (key) => strip.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
      const seen = () => [t.view.from, t.view.to, told()], first = told();
      press('n'); const slow = seen();
      t.everything();
      press('Home'); press('ArrowRight'); press('Enter'); const second = seen();
      const box = strip.getBoundingClientRect(), path = strip.querySelector('g path').getAttribute('d');
      strip.dispatchEvent(new MouseEvent('click', { clientX: box.left + 4, clientY: box.top + 30, bubbles: true })); const clicked = seen();
      return { rows: series.rows, count: series.count, marks: (strip.querySelector('.slow').getAttribute('d').match(/M/g) || []).length,
        bars: (path.match(/M/g) || []).length, width: box.width, slow, second, clicked, first, markup: document.querySelectorAll('b[onload]').length }`);
    const longest = json.slow_iterations.rows[0];
    assert.strictEqual(longest.number, 12345);
    assert.ok(dom.rows.length <= 12000 && dom.rows.length >= 6000, String(dom.rows.length));
    assert.strictEqual(dom.rows.reduce((n, row) => n + row[6], 0), 16000);
    assert.deepStrictEqual(dom.rows.filter((row) => row[5] === 1).map((row) => [row[0], row[2]]), [[12345, longest.duration_ns]]);
    assert.ok(dom.marks === 1 && dom.bars <= dom.width / 3, dom.marks + ' marks, ' + dom.bars + ' bars');
    const [from, to, told] = dom.slow;
    assert.ok(from < 1234400000 && to > 1234490000 && to - from < 200000, from + ' to ' + to);
    assert.ok(told.includes('iteration 12345, at 1.23 s') && told.includes(', slow; most of it kernels (') && told.includes(longest.seen), told);
    assert.ok(dom.second[1] - dom.second[0] < 100000 && dom.clicked[1] < dom.second[0], dom.second + ' / ' + dom.clicked);
    assert.ok(dom.first.includes('iterations of <b onload=1>step</b>, median ') && dom.first.includes(', 1 slow (marked: above '), dom.first);
    assert.ok(dom.count < 16000 && dom.first.includes(', ' + (16000 - dom.count) + ' more of warm-up'), dom.first);
    assert.strictEqual(dom.markup, 0);
    await isQuiet(browser, url);
    await load(browser, report('ranks').url);
    const ranks = await browser.run(`const of = document.getElementById('iterations-of'); of.value = '2'; of.dispatchEvent(new Event('change'));
      return [[...of.options].map((option) => option.textContent), document.getElementById('iterations-told').textContent]`);
    assert.deepStrictEqual(ranks[0], ['step, rank 0', 'step, rank 1', 'step, rank 2', 'step, rank 3']);
    assert.ok(ranks[1].startsWith('11 iterations of step, rank 2, median 10.0 ms (dashed), none slow'), ranks[1]);
  },

  async 'two captures on one axis, aligned by iteration'(browser) {
    const path = (name) => report(name).url.slice(7).replace('.html', '.sqlite');
    const before = report('normal+later').json, { url, json } = report('normal', 'baseline=' + path('normal+later'));
    await load(browser, url);
    const dom = await browser.run(`const t = perfkit.timelineView, m = t.model, e = m.events, strip = document.getElementById('iterations-strip');
      const press = (key) => strip.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true })), table = (k) => [...document.querySelectorAll(k)];
      const begins = () => ['step', 'old/step'].map((name) => m.pick((i) => m.names[e.name[i]] === name, 'all').found.map((i) => e.start[i])[1]);
      const result = { sum: m.countByKind(), n: m.n, own: m.own, base: m.runs[1].rows.reduce((n, row) => n + row.n, 0), offset: m.runs[1].offset, begins: begins(),
        softmax: m.search('softmax').found.length, told: document.getElementById('iterations-told').textContent };
      m.align(1, 0);
      press('Home'); press('Enter'); result.again = m.runs[1].offset;
      return (async () => {
        document.querySelector('#kernels-table button.locate').click();
        await new Promise((done) => setTimeout(done, 0));
        result.mine = t.view.marks.found.every((i) => i < m.own);
        result.rows = table('#all-table tbody tr').map((row) => row.textContent);
        table('#all-table button.locate')[0].click();
        await new Promise((done) => setTimeout(done, 0));
        result.marked = t.view.marks.found.length;
        t.select(m.n - 1);
        result.details = document.getElementById('timeline-details').textContent;
        t.everything();
        return result;
      })();`);
    assert.deepStrictEqual(dom.sum, { kernel: 160, copy: 50, fill: 40, call: 253, wait: 40, range: 161, mark: 1 });
    assert.deepStrictEqual([dom.n, dom.own, dom.base], [1732, 867, 703], 'a kernel less, and its call; and ranges projected on the device');
    assert.deepStrictEqual([dom.offset, dom.again, dom.softmax], [-3000000, -3000000, 79]);
    assert.strictEqual(dom.begins[0], dom.begins[1]);
    assert.ok(dom.told.includes('baseline: 39 iterations, median 1.25 ms'), dom.told);
    assert.ok(dom.mine);
    const total = (rows) => rows.find((row) => row.name === 'softmax').total_ns, lost = total(json.kernels.rows) - total(before.kernels.rows);
    assert.ok(lost > 35000 && dom.rows[0].startsWith('+' + (lost / 1000).toFixed(1) + ' us') && dom.rows[0].endsWith('softmax'), dom.rows[0]);
    assert.strictEqual(dom.marked, 79);
    assert.ok(dom.details.includes(' of the baseline') && dom.details.includes('baseline thread 4250'), dom.details);
    await inView(browser, /160 kernels .* Baseline: 159 kernels /);
    /* the view is longer than each capture: shares are of each capture's own time, as in the overview */
    const busy = (of) => (100 * of.devices.rows[0].busy_share).toFixed(1) + ' %';
    await inView(browser, new RegExp('busy ' + busy(json) + '.* Baseline: .*busy ' + busy(before)));
    const groups = await browser.run('return perfkit.timelineView.draw.plan.groups.map((one) => one.text)');
    assert.ok(groups[0].includes('candidate: process 4242') && groups[1].includes('baseline: process 4242'), String(groups));
    assert.ok(await browser.run('return document.documentElement.scrollWidth <= window.innerWidth'));
    await isQuiet(browser, url);
    const made = await browser.run(`const columns = ['total_ns', 'count', 'average_ns', 'style', 'domain', 'name'].map((key) => ({ key }));
      const table = (rows, total_rows) => ({ name: 'ranges', columns, rows: rows.map(([ns, style, name]) => [ns, 1, ns, style, '', name]), total_rows });
      return perfkit.rowsOfAll([table([[7, 'push/pop', 'a'], [1, 'start/end', 'a'], [3, 'push/pop', 'c']], 4),
        table([[9, 'push/pop', 'a'], [5, 'start/end', 'a'], [4, 'push/pop', 'b']], 3)], 0, 1).map((row) => [row[0], row[1], row[2], row[7]])`);
    assert.deepStrictEqual(made, [[4, 1, 5, 'a start/end'], [-3, 3, null, 'c'], [2, 7, 9, 'a'], [null, null, 4, 'b']], 'by style; b may be behind the cut');
    const strange = report('normal', 'baseline=' + path('normal+steps'));
    await load(browser, strange.url);
    assert.deepStrictEqual(await browser.run(`const m = perfkit.timelineView.model, found = m.search('<b onload').found.length;
      document.getElementById('comparison-of').selectedIndex = document.getElementById('comparison-of').options.length - 1;
      document.getElementById('comparison-of').dispatchEvent(new Event('change'));
      const names = [...document.querySelectorAll('#all-table td.name')].map((cell) => cell.textContent);
      return [m.runs[1].offset, found, names.includes('<b onload=1>step</b>'), document.querySelectorAll('b[onload]').length, document.scripts.length]`),
    [0, 16000, true, 0, 2]);
    await isQuiet(browser, strange.url);
  },

  async 'three captures on one axis, in every table, any two in the flame graph'(browser) {
    const path = (name) => report(name).url.slice(7).replace('.html', '.sqlite');
    const paths = [path('normal+later'), path('normal+paused')], jsons = [report('normal+later').json, report('normal+paused').json];
    const { url, json } = report('normal', ...paths.map((one) => 'baseline=' + one));
    await load(browser, url);
    const dom = await browser.run(`const t = perfkit.timelineView, m = t.model, e = m.events, strip = document.getElementById('iterations-strip');
      const texts = (selector) => [...document.querySelectorAll(selector)].map((node) => node.textContent), set = (id, value) => {
        const node = document.getElementById(id); node.value = value; node.dispatchEvent(new Event('change')); };
      const steps = m.runs.map((run, k) => m.pick((i) => m.kindOf(i) === 'range' && /step$/.test(m.names[e.name[i]]), k).found.map((i) => e.start[i]));
      const result = { labels: m.runs.map((run) => run.label), kernels: m.runs.map((run) => run.rows.reduce((n, row) => { for (let i = row.first; i < row.first + row.n; i++)
        n += m.kindOf(i) === 'kernel' ? 1 : 0; return n; }, 0)), begins: steps.map((all) => all[1]), groups: t.draw.plan.groups.map((one) => one.text.slice(2, 20)), offsets: m.runs.map((run) => run.offset) };
      m.runs.slice(1).forEach((run, k) => m.align(k + 1, 0));
      strip.dispatchEvent(new KeyboardEvent('keydown', { key: 'Home', bubbles: true })); strip.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
      result.again = m.runs.map((run) => run.offset);
      result.heads = texts('#all-table th').map((text) => text);
      result.softmax = perfkit.rowsOfAll([1, 2, 0].map((k) => perfkit.runs[k].tables.find((table) => table.name === 'kernels')), 0, 2).find((row) => row[row.length - 1] === 'softmax').slice(0, 7);
      result.cards = texts('#card-kernels b'); result.strips = texts('.strip b'); result.folded = texts('details.compared summary'); result.trust = texts('#trust > p').length;
      const total = () => { const nodes = perfkit.flameView.nodes; return [nodes[0].total, nodes[0].base]; };
      result.flame = [total()]; const step = perfkit.flameView.nodes.filter((node) => node.was);
      result.was = step.map((node) => [node.name, node.was, node.base > 0, node.children.every((child) => child.base > 0)]); set('flame-of', 1); result.flame.push(total()); set('flame-against', 2); result.flame.push(total()); set('flame-against', -1); result.flame.push(total());
      perfkit.flameView.zoomTo(perfkit.flameView.nodes.find((node) => node.kind === 'kernel' && node.name === 'softmax'));
      document.querySelector('#flame .details button').click();
      return new Promise((done) => setTimeout(() => { result.marked = [...new Set(t.view.marks.found.map((i) => m.runOf(m.trackOf(i))))].concat(t.view.marks.found.length); done(result); }, 0));`);
    const kernels = (one) => one.kernels.rows.reduce((n, row) => n + row.count, 0), time = (one) => one.kernels.rows.find((row) => row.name === 'softmax').total_ns;
    assert.deepStrictEqual(dom.labels, ['candidate', 'baseline', 'normal+paused']);
    assert.deepStrictEqual(dom.kernels, [json, ...jsons].map(kernels));
    assert.strictEqual(new Set(dom.begins).size, 1, 'the same iteration of all at the same place: ' + dom.begins);
    assert.deepStrictEqual(dom.again, dom.offsets);
    assert.ok(dom.groups[0].startsWith('candidate: ') && dom.groups[1].startsWith('baseline: ') && dom.groups[2].startsWith('normal+paused: '), String(dom.groups));
    assert.deepStrictEqual(dom.heads.slice(1, 5), ['Change', 'Total, baseline', 'Total, normal+paused', 'Total, candidate']);
    assert.deepStrictEqual(dom.softmax.slice(0, 4), [time(json) - time(jsons[0]), time(jsons[0]), time(jsons[1]), time(json)]);
    assert.deepStrictEqual(dom.cards, jsons.map((one) => String(kernels(one))));
    assert.deepStrictEqual([dom.strips.length, dom.folded.length, dom.trust], [3, 1, 3]);
    const [own, base] = dom.flame[0];
    assert.deepStrictEqual([dom.flame[1], dom.flame[2][0], dom.flame[3]], [[base, base], base, [base, null]], JSON.stringify(dom.flame));
    assert.ok(own !== base && dom.flame[2][1] > 0);
    assert.deepStrictEqual(dom.was, [['step', 'old/step', true, true]], 'a range of another name is compared');
    assert.deepStrictEqual(dom.marked, [1, jsons[0].kernels.rows.find((row) => row.name === 'softmax').count], 'in the capture that is drawn');
    const domains = await browser.run(`const t = perfkit.timelineView, marked = async (domain) => {
      await perfkit_timeline.mark({ kinds: ['range'], name: 'data', domain, of: 'all' }); return t.view.marks.found.length; };
      return (async () => [await marked('loader'), perfkit.describe(t.model, t.view.marks.found[119]).text.includes('domain loader'), await marked('')])();`);
    assert.deepStrictEqual(domains, [120, true, 0], 'ranges by their domain, in each capture');
    /* Everything unfolded, and a legend with the longest words that there are. */
    await browser.run(`document.querySelectorAll('details').forEach((details) => { details.open = true; });
      [...document.querySelectorAll('button')].filter((button) => button.textContent.startsWith('Show all')).forEach((button) => button.click());
      document.querySelectorAll('.keyed').forEach((key) => key.append(' idle: host blocked in a synchronization, or just woken'));`);
    try {
      for (const width of [400, 800, 1280, 2560]) {
        await browser.devtools('Emulation.setDeviceMetricsOverride', { width, height: 1000, deviceScaleFactor: 1, mobile: false });
        const widths = () => browser.run('return [window.innerWidth, document.documentElement.scrollWidth]');
        await until('window and page of ' + width, async () => (([window, page]) => window === width && page <= width)(await widths()));
      }
    } finally {
      await browser.devtools('Emulation.clearDeviceMetricsOverride');
    }
    await isQuiet(browser, url);
  },
};

runTests(tests, []);
