/* Other captures in the timeline of the candidate: their events behind its own, on one axis, each capture moved so that an iteration
 * of it begins where one of the candidate does. And the tables of all, side by side. */
(function (P) {
  'use strict';
  const el = P.el, f = P.format;
  const CONFIGS = 2 ** 31; /* added once or more to the numbers of launch configurations of other captures */
  const lists = (e) => [e.start, e.end, e.unended, e.name, e.kind, e.extra, e.other];

  /* The captures of the page: the candidate, then the others, the baseline first. title: as a sentence begins, but names of files; the: inside one. */
  P.runs = [Object.assign({}, P.data, { label: 'candidate', title: 'Candidate', the: 'the candidate' }), ...P.data.others];
  P.runs.slice(1).forEach((run, k) => { Object.assign(run, k ? { title: run.label, the: run.label } : { title: 'Baseline', the: 'the baseline' }); });

  function concat(a, b) {
    const whole = new a.constructor(a.length + b.length);
    whole.set(a);
    whole.set(b, a.length);
    return whole;
  }

  /* Numbers that begin at 1; 0 stays none. */
  const shifted = (array, by) => array.map((v) => (v ? v + by : 0));

  function joinStacks(a, b, head) {
    const [own, other] = [a, b].map((run) => run.head.stacks || { places: [], nodes: [] }), of = (run) => run.events.stack || new Uint32Array(run.events.n);
    if (!a.events.stack && !b.events.stack) return null;
    head.stacks = { places: own.places.concat(other.places), nodes: own.nodes.concat(other.nodes.map((v, k) =>
      (k % 2 ? v + own.places.length : v ? v + own.nodes.length / 2 : 0))) };
    return concat(of(a), shifted(of(b), own.nodes.length / 2));
  }

  /* One capture as P.readTimeline gives it, or several joined, and behind them another, number `k` of the page. */
  P.joinTimelines = function (a, b, k) {
    const n = a.events.n, kernel = a.kinds.indexOf('kernel'), head = Object.assign({}, a.head), { label } = P.runs[k];
    b.events.extra.forEach((v, i) => { if (v && b.events.kind[i] === kernel) b.events.extra[i] = v + k * CONFIGS; });
    const ranges = ['range', 'mark'].map((word) => a.kinds.indexOf(word));
    b.events.extra.forEach((v, i) => { if (v > 1 && ranges.includes(b.events.kind[i])) b.events.extra[i] = v + 2 * a.head.names.length; });
    b.events.name = b.events.name.map((v) => v + a.head.names.length);
    b.events.other = shifted(b.events.other, n);
    b.rows.forEach((row) => { row.t += a.head.tracks.length; row.first += n; });
    b.head.tracks.forEach((track) => Object.assign(track, { run: k, process: label + ' ' + track.process, short: track.label, label: label + ' ' + track.label }));
    head.names = a.head.names.concat(b.head.names);
    head.tracks = a.head.tracks.concat(b.head.tracks);
    head.configs = Object.assign({}, a.head.configs);
    Object.entries(b.head.configs).forEach(([id, config]) => { head.configs[Number(id) + k * CONFIGS] = config; });
    const [start, end, unended, name, kind, extra, other] = lists(a.events).map((list, at) => concat(list, lists(b.events)[at]));
    const events = { n: n + b.events.n, start, end, unended, name, kind, extra, other, count: null, busy: null, stack: joinStacks(a, b, head) };
    if (a.events.count || b.events.count) {
      const lasts = (e) => e.end.map((v, i) => v - e.start[i]);
      events.count = concat(...[a, b].map((run) => run.events.count || new Uint32Array(run.events.n).fill(1)));
      events.busy = concat(...[a, b].map((run) => run.events.busy || lasts(run.events)));
    }
    events.lines = a.events.lines.concat(b.events.lines.filter((line) => line.unit === 'bytes').map((line) =>
      Object.assign(line, { label: label + ' ' + line.label, run: k })));
    const place = { begin: b.begin, end: b.end, first: n, stop: n + b.events.n };
    return { head, kinds: a.kinds, events, rows: a.rows.concat(b.rows), begin: a.begin, end: a.end, merge: Math.max(a.merge, b.merge),
      others: (a.others || []).concat(place) };
  };

  /* ---- iterations of all -------------------------------------------------------------------- */

  /* Of a series of the candidate that of capture `k` with the same name, else with a name that ends alike (before/step, after/step); null. */
  P.seriesOf = function (k, series) {
    const source = P.runs[k].iterations, last = (one) => one.name.replace(/.*\//, '');
    const alike = [(one) => one.name === series.name, (one) => last(one) === last(series)].find((same) => source.series.some(same));
    if (!alike) return null;
    const theirs = source.series.filter(alike), place = P.data.iterations.series.filter(alike).indexOf(series);
    return theirs.find((one) => one.label === series.label) || theirs[place] || null;
  };

  /* ---- tables of all ------------------------------------------------------------------------ */

  const KEYS = { kernels: ['full_name'], transfers: ['name', 'source', 'target'], api: ['name'], waits: ['kind', 'name'], ranges: ['domain', 'name', 'style'] };
  const SUMS = [['total_ns', 'Total', 'ns'], ['count', 'Count', 'count'], ['average_ns', 'Average', 'ns']], MANY = 3;
  const signed = (format) => (v) => (v > 0 ? '+' : '') + format(v);

  /* The change, the sums of each capture, the name. Of many captures averages are among all columns. */
  function columnsOf(labels) {
    const column = ([key, title, unit, format, hidden]) => ({ key, title, unit, format, shown: !hidden, blank: true });
    return [['change_ns', 'Change', 'ns', signed(f.duration)], ...SUMS.flatMap(([key, title, unit]) =>
      labels.map((label) => [label.replace(/\W+/g, '_') + '_' + key, title + ', ' + label, unit, null, key === 'average_ns' && labels.length >= MANY])),
    ['name', 'Name', 'name']].map(column);
  }

  /* Rows of the same table of several captures by name: the change from the table at `from` to that at `to`, what changed most first; unknown
   * where a capture has no such row. So is the change where a table was cut: the row may be behind its last one. */
  P.rowsOfAll = function (tables, from, to) {
    const rows = new Map(), cut = tables.map((table) => table.total_rows > table.rows.length);
    tables.forEach((table, which) => {
      const at = (row, key) => row[table.columns.findIndex((column) => column.key === key)];
      table.rows.forEach((row) => {
        const words = KEYS[table.name].map((key) => at(row, key)), key = words.join('\n');
        if (!rows.has(key)) rows.set(key, { sides: tables.map(() => null), at: (name) => at(row, name), name: words.filter((word) => word && word !== 'push/pop').join(' ') });
        rows.get(key).sides[which] = SUMS.map(([name]) => at(row, name));
      });
    });
    return [...rows.values()].map(({ sides, at, name }) => {
      const [a, b] = [from, to].map((which) => (sides[which] ? sides[which][0] : cut[which] ? null : 0));
      const change = P.unknown(a) || P.unknown(b) ? null : b - a;
      return Object.assign([change, ...SUMS.flatMap((sum, k) => sides.map((side) => (side ? side[k] : null))), name], { at });
    }).sort((x, y) => Math.abs(y[0]) - Math.abs(x[0]));
  };

  /* A choice of a capture. */
  P.chooseRun = (id, chosen, changed, none) => el('select', { id, onchange: changed }, ...(none ? [el('option', { value: -1 }, none)] : []),
    ...P.runs.map((run, k) => el('option', { value: k, selected: k === chosen }, run.label)));

  P.comparison = function () {
    const place = P.section('comparison-tables'), order = [...P.data.others.map((run, k) => k + 1), 0]; /* the candidate last, as in the command */
    if (!place) return;
    const empty = { columns: [], rows: [], total_rows: 0 };
    const kinds = P.data.others[0].tables.map((base) => order.map((k) => P.runs[k].tables.find((table) => table.name === base.name) || Object.assign({}, empty, { name: base.name, title: base.title })))
      .filter((tables) => tables.some((table) => table.rows.length));
    if (!kinds.length) return;
    const section = el('div'), choose = el('select', { id: 'comparison-of', onchange: () => draw() },
      ...kinds.map(([table], k) => el('option', { value: k }, table.title)));
    const from = P.chooseRun('comparison-from', 1, () => draw()), to = P.chooseRun('comparison-to', 0, () => draw());
    function draw() {
      const tables = kinds[Number(choose.value) || 0], rows = P.rowsOfAll(tables, order.indexOf(Number(from.value)), order.indexOf(Number(to.value)));
      section.replaceChildren();
      P.Table({ name: 'all', columns: columnsOf(order.map((k) => P.runs[k].label)), rows, total_rows: rows.length }, section,
        { locate: P.data.timeline.shown ? (row) => () => P.markRow(tables[0].name, row.at, row[row.length - 1], 'all') : null });
    }
    place.append(el('h3', { id: 'all-title' }, 'All captures, by name'),
      el('p', { class: 'faint' }, 'Whole runs; the largest change is first. An empty cell: not in that capture or, if there is no change either, below the last row that this page has of its table. The arrow marks the instances of all captures on the timeline.'),
      el('div', { class: 'tools' }, el('label', { for: choose.id }, 'Table'), choose, el('label', { for: from.id }, 'Change from'), from,
        el('label', { for: to.id }, 'to'), to), section);
    draw();
  };
})(window.perfkit);
