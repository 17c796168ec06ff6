/* The strip of iterations above the timeline: a bar each, as high as it lasted, in the colour of what took most of it; a mark above
 * those that are slow. A click or Enter zooms to it. Where there is no room for all, neighbours share a bar, which is the longest's. */
(function (P) {
  'use strict';
  const el = P.el, f = P.format;
  const HEIGHT = 64, MARKS = 9, VIEW = 4, WIDEST = 36, LEAST = 3;
  const HIGHEST = 3; /* times the median: longer ones are cut, or one would hide all others */
  const [NUMBER, START, DURATION, PART, PART_NS, VERDICT, COUNT] = [0, 1, 2, 3, 4, 5, 6], SLOW = 1, WARM_UP = 2;

  /* At most `most` bars. */
  function pool(rows, most) {
    const per = Math.ceil(rows.length / Math.max(1, most)), bars = [];
    for (let i = 0; i < rows.length; i += per) {
      const group = rows.slice(i, i + per), known = group.filter((row) => row[VERDICT] !== WARM_UP);
      const longest = (known.length ? known : group).reduce((a, b) => (b[DURATION] > a[DURATION] ? b : a)).slice();
      longest[COUNT] = group.reduce((n, row) => n + row[COUNT], 0);
      bars.push({ row: longest, from: group[0][START], to: group[per - 1 < group.length ? per - 1 : group.length - 1][START] });
    }
    return bars;
  }

  /* What `perfkit report --iterations` says of the slowest: number -> sentence. */
  function causes() {
    const table = P.data.tables.find((one) => one.name === 'slow_iterations');
    const at = (key) => table.columns.findIndex((column) => column.key === key);
    return new Map(table ? table.rows.map((row) => [row[at('number')], row[at('seen')]]) : []);
  }

  P.Iterations = function (timeline) {
    const source = P.data.iterations, seen = causes();
    if (!source.series.length) return { place: null, draw: () => {}, alignFirst: () => {} };
    const told = el('p', { class: 'faint', id: 'iterations-told', 'aria-live': 'polite' });
    const bars = el('g'), edge = el('path', { class: 'edge' }), slow = el('path', { class: 'slow' }), median = el('line', { class: 'median' });
    const baseline = el('path', { class: 'baseline' });
    const cursor = el('rect', { class: 'cursor', visibility: 'hidden' }), inView = el('rect', { class: 'view', y: HEIGHT - VIEW, height: VIEW });
    const legend = el('p', { class: 'faint legend-line' });
    /* theirs[k]: of capture k + 1 the series that is this one; null: none. */
    let series = source.series[0], list = [], width = 0, wide = 0, at = -1, theirs = [];
    const findTheirs = (one) => P.data.others.map((run, k) => P.seriesOf(k + 1, one));

    const top = () => {
      const longest = series.rows.concat(theirs[0] ? theirs[0].rows : []).reduce((most, row) => Math.max(most, row[DURATION]), 1);
      return series.median_ns > 0 ? Math.min(longest, Math.max(series.median_ns, (theirs[0] && theirs[0].median_ns) || 0) * HIGHEST) : longest;
    };

    /* Of another capture's iterations the one of the same number, counted from the first of its series; undefined: none. */
    function counterpart(bar, k) {
      if (!theirs[k]) return undefined;
      let n = 0;
      for (const row of series.rows) {
        if (row[START] >= bar.row[START]) break;
        n += row[COUNT];
      }
      return theirs[k].rows.find((row) => (n -= row[COUNT]) < 0);
    }

    const counterparts = (bar) => theirs.map((one, k) => [counterpart(bar, k), k]).filter(([other]) => other);

    function words(bar) {
      const { row } = bar, others = counterparts(bar), [number, start, duration, part, ns, verdict, count] = row;
      const ratio = series.median_ns > 0 ? ', ' + Number((duration / series.median_ns).toPrecision(3)) + 'x the median' : '';
      const why = seen.get(number) || (verdict === SLOW ? 'perfkit report --why ' + number + ' says why' : '');
      return (count > 1 ? 'The longest of ' + f.count(count) + ', iteration ' : 'Iteration ') + number + ', at ' + f.duration(start) + ': ' +
        f.duration(duration) + ratio + (verdict === SLOW ? ', slow' : verdict === WARM_UP ? ', warm-up' : '') + '; most of it ' +
        source.parts[part][1] + ' (' + f.duration(ns) + ', ' + f.percent(duration > 0 ? ns / duration : 0) + ').' + others.map(([other, k]) => ' ' + P.data.others[k].title + ': ' + f.duration(other[DURATION]) + '.').join('') + (why ? ' ' + why + '.' : '');
    }

    function about() {
      const parts = [P.plural(series.count, 'iteration') + ' of ' + series.name + (series.label ? ', ' + series.label : '')];
      if (series.median_ns > 0) parts.push('median ' + f.duration(series.median_ns) + ' (dashed)');
      if (!P.unknown(series.limit_ns)) parts.push((series.slow ? f.count(series.slow) : 'none') + ' slow (marked: above ' + f.duration(series.limit_ns) + ')');
      const more = series.rows.reduce((n, row) => n + row[COUNT], 0) - series.count;
      if (more > 0) parts.push(f.count(more) + ' more of warm-up');
      theirs.forEach((one, k) => { if (one && one.median_ns > 0) parts.push(P.data.others[k].label + ': ' + P.plural(one.count, 'iteration') + ', median ' + f.duration(one.median_ns)); });
      return parts.join(', ') + '.' + (source.left_out ? ' ' + P.plural(source.left_out, 'phase', 'phases') + ' that took less time: perfkit report --iterations.' : '');
    }

    function tell() {
      const bar = list[at];
      cursor.setAttribute('visibility', bar ? 'visible' : 'hidden');
      if (bar) {
        cursor.setAttribute('x', at * wide);
        cursor.setAttribute('width', Math.max(2, wide - 1));
      }
      told.textContent = P.visible(bar ? words(bar) : about() + ' A click, or Enter, zooms to one' + (theirs.some(Boolean) ? ', and moves the other captures so that theirs begin there.' : '.'));
    }

    function show() {
      const bar = list[at];
      if (!bar) return;
      const others = counterparts(bar), longest = others.reduce((most, [other]) => Math.max(most, other[DURATION]), bar.row[DURATION]), pad = longest * 0.04 + 50;
      others.forEach(([other, k]) => timeline.align(k + 1, bar.row[START], other[START]));
      timeline.show(bar.row[START] - pad, bar.row[START] + longest + pad);
    }

    function moveTo(k) {
      at = Math.min(Math.max(k, 0), list.length - 1);
      tell();
    }

    /* The next slow one behind the cursor, from the first on again; null: none. */
    function nextSlow() {
      const behind = list.findIndex((bar, k) => k > at && bar.row[VERDICT] === SLOW);
      moveTo(behind >= 0 ? behind : list.findIndex((bar) => bar.row[VERDICT] === SLOW));
      show();
    }

    function slowest() {
      const rank = (bar) => (bar.row[VERDICT] === WARM_UP ? 0 : bar.row[DURATION]);
      moveTo(list.reduce((best, bar, k) => (rank(bar) > rank(list[best]) ? k : best), 0));
      show();
    }

    function draw() {
      const inside = Math.round(chart.getBoundingClientRect().width) - 2;
      if (inside <= 0) return;
      if (inside !== width) {
        width = inside;
        theirs = findTheirs(series);
        chart.setAttribute('viewBox', '0 0 ' + width + ' ' + HEIGHT);
        list = pool(series.rows, Math.floor(width / LEAST));
        wide = Math.min(WIDEST, width / list.length);
        at = -1;
        paint();
        tell();
      }
      const { from, to } = timeline.view, seenBars = list.map((bar, k) => (bar.row[START] + bar.row[DURATION] > from && bar.from < to ? k : -1)).filter((k) => k >= 0);
      inView.setAttribute('x', seenBars.length ? seenBars[0] * wide : 0);
      inView.setAttribute('width', seenBars.length ? (seenBars[seenBars.length - 1] - seenBars[0] + 1) * wide : 0);
    }

    function paint() {
      const most = top(), room = HEIGHT - MARKS - VIEW, y = (ns) => HEIGHT - VIEW - Math.max(1, Math.min(1, ns / most) * room), parts = new Map();
      const gap = wide > 5 ? 1 : 0;
      let marks = '', line = '';
      list.forEach((bar, k) => {
        const part = bar.row[PART], x = (k * wide).toFixed(2), high = y(bar.row[DURATION]).toFixed(2), right = (k * wide + wide - gap).toFixed(2);
        parts.set(part, (parts.get(part) || '') + 'M' + x + ' ' + (HEIGHT - VIEW) + 'V' + high + 'H' + right + 'V' + (HEIGHT - VIEW) + 'Z');
        line += 'M' + x + ' ' + high + 'H' + right;
        if (bar.row[VERDICT] === SLOW) {
          const middle = k * wide + (wide - gap) / 2;
          marks += 'M' + (middle - 4).toFixed(2) + ' 0h8l-4 7Z';
        }
      });
      bars.replaceChildren(...[...parts].map(([part, d]) => el('path', { d, class: 'slice-' + source.parts[part][0] })));
      edge.setAttribute('d', line);
      baseline.setAttribute('d', list.map((bar, k) => [counterpart(bar, 0), k]).filter(([other]) => other).map(([other, k]) =>
        'M' + (k * wide).toFixed(2) + ' ' + y(other[DURATION]).toFixed(2) + 'h' + (wide - gap).toFixed(2)).join(''));
      slow.setAttribute('d', marks);
      const middle = series.median_ns > 0 ? y(series.median_ns) : -9;
      Object.entries({ x1: 0, x2: list.length * wide, y1: middle, y2: middle }).forEach(([key, value]) => median.setAttribute(key, value));
      legend.replaceChildren(...[...parts.keys()].sort((a, b) => a - b).map((part) =>
        el('span', { class: 'keyed' }, el('span', { class: 'legend slice-' + source.parts[part][0] }), source.parts[part][1])),
      ...(theirs[0] ? [el('span', { class: 'keyed' }, el('span', { class: 'legend', style: 'background:var(--mark)' }), 'baseline, the same number')] : []),
      ...(series.rows.some((row) => row[DURATION] > most) ? [el('span', { class: 'keyed' }, 'cut at ' + f.duration(most))] : []));
    }

    const barAt = (event) => Math.floor((event.clientX - chart.getBoundingClientRect().left - 1) / wide);
    const keys = { ArrowLeft: () => moveTo(at - 1), ArrowRight: () => moveTo(at + 1), Home: () => moveTo(0), End: () => moveTo(list.length - 1),
      Enter: show, n: nextSlow, l: slowest, Escape: () => { at = -1; tell(); } };
    const chart = el('svg', { height: HEIGHT, preserveAspectRatio: 'none', tabindex: 0, role: 'img', id: 'iterations-strip', 'aria-describedby': 'iterations-told',
      'aria-label': 'Iterations by duration. Arrow keys move, Enter zooms to one, N goes to the next slow one, L to the longest.',
      onmousemove: (event) => { if (barAt(event) < list.length && barAt(event) !== at) moveTo(barAt(event)); },
      onclick: (event) => { if (barAt(event) < list.length) { moveTo(barAt(event)); show(); } },
      onkeydown: (event) => {
        if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        keys[event.key]();
      } }, bars, edge, median, baseline, slow, inView, cursor);
    const button = (text, label, action) => el('button', { type: 'button', 'aria-label': label, title: label, onclick: action }, text);
    const next = button('Next slow', 'Zoom to the next slow iteration', nextSlow);
    const choose = el('select', { id: 'iterations-of', onchange: () => {
      series = source.series[Number(choose.value)];
      next.hidden = !series.slow;
      width = 0;
      draw();
    } }, ...source.series.map((one, k) => el('option', { value: k }, (one.name + (one.label ? ', ' + one.label : '')).slice(0, 80))));
    next.hidden = !series.slow;
    new ResizeObserver(draw).observe(chart);
    /* The first iteration after warm-up of all begins at the same place. */
    function alignFirst() {
      series = source.series.find((one) => findTheirs(one).some(Boolean)) || series;
      theirs = findTheirs(series);
      const row = series.rows.find((one) => one[VERDICT] !== WARM_UP) || series.rows[0];
      if (row) counterparts({ row }).forEach(([other, k]) => timeline.align(k + 1, row[START], other[START]));
      choose.value = source.series.indexOf(series);
      next.hidden = !series.slow;
    }
    return { draw, alignFirst, place: el('div', { class: 'iterations' }, el('div', { class: 'tools' },
      el('label', source.series.length > 1 ? { for: choose.id } : null, 'Iterations'), source.series.length > 1 ? choose : null, next,
      button('Slowest', 'Zoom to the slowest iteration', slowest)), chart, legend, told) };
  };
})(window.perfkit);
