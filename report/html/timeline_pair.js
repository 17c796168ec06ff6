/* A second run, the baseline, in the timeline of the first: its events behind those of this run, on one axis, moved so that an
 * iteration of both begins at the same place. And the tables of both, side by side. */
(function (P) {
  'use strict';
  const el = P.el, f = P.format;
  const CONFIGS = 2 ** 31; /* added to the baseline's numbers of launch configurations */
  const lists = (e) => [e.start, e.end, e.unended, e.name, e.kind, e.extra, e.other];

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

  /* Two runs as P.readTimeline gives them, the baseline second, as one. */
  P.joinTimelines = function (a, b) {
    const n = a.events.n, kernel = a.kinds.indexOf('kernel'), head = Object.assign({}, a.head);
    b.events.extra.forEach((v, i) => { if (v && b.events.kind[i] === kernel) b.events.extra[i] = v + CONFIGS; });
    b.events.name = b.events.name.map((v) => v + a.head.names.length);
    b.events.other = shifted(b.events.other, n);
    b.rows.forEach((row) => { row.t += a.head.tracks.length; row.first += n; });
    b.head.tracks.forEach((track) => Object.assign(track, { baseline: true, process: 'baseline ' + track.process, label: 'baseline ' + track.label }));
    head.names = a.head.names.concat(b.head.names);
    head.tracks = a.head.tracks.concat(b.head.tracks);
    head.configs = Object.assign({}, a.head.configs);
    Object.entries(b.head.configs).forEach(([id, config]) => { head.configs[Number(id) + CONFIGS] = config; });
    const [start, end, unended, name, kind, extra, other] = lists(a.events).map((list, k) => concat(list, lists(b.events)[k]));
    const events = { n: n + b.events.n, start, end, unended, name, kind, extra, other, count: null, busy: null, stack: joinStacks(a, b, head) };
    if (a.events.count || b.events.count) {
      const lasts = (e) => e.end.map((v, i) => v - e.start[i]);
      events.count = concat(...[a, b].map((run) => run.events.count || new Uint32Array(run.events.n).fill(1)));
      events.busy = concat(...[a, b].map((run) => run.events.busy || lasts(run.events)));
    }
    events.lines = a.events.lines.concat(b.events.lines.filter((line) => line.unit === 'bytes').map((line) =>
      Object.assign(line, { label: 'baseline ' + line.label, baseline: true })));
    return { head, kinds: a.kinds, events, rows: a.rows.concat(b.rows), begin: a.begin, end: a.end, merge: Math.max(a.merge, b.merge), own: n, baseline: b };
  };

  /* ---- iterations of both ------------------------------------------------------------------- */

  /* Of a series of this run the baseline's of the same name, else of a name that ends alike (before/step, after/step); null. */
  P.baselineSeries = function (series) {
    const source = P.data.baseline_iterations, last = (one) => one.name.replace(/.*\//, '');
    const alike = source ? [(one) => one.name === series.name, (one) => last(one) === last(series)].find((same) => source.series.some(same)) : null;
    if (!alike) return null;
    const theirs = source.series.filter(alike), place = P.data.iterations.series.filter(alike).indexOf(series);
    return theirs.find((one) => one.label === series.label) || theirs[place] || null;
  };

  /* ---- tables of both ----------------------------------------------------------------------- */

  const KEYS = { kernels: ['full_name'], transfers: ['name', 'source', 'target'], api: ['name'], waits: ['kind', 'name'], ranges: ['domain', 'name', 'style'] };
  const signed = (format) => (v) => (v > 0 ? '+' : '') + format(v);
  const COLUMNS = [['change_ns', 'Change', 'ns', signed(f.duration)], ['baseline_total_ns', 'Total, baseline', 'ns'], ['total_ns', 'Total', 'ns'],
    ['baseline_count', 'Count, baseline', 'count'], ['count', 'Count', 'count'], ['baseline_average_ns', 'Average, baseline', 'ns'],
    ['average_ns', 'Average', 'ns'], ['name', 'Name', 'name']].map(([key, title, unit, format]) => ({ key, title, unit, format, shown: true, blank: true }));

  /* Rows of both by name, what changed most first; unknown where a run has none. So is the change where the table of a run was cut:
   * the row may be behind its last one. */
  P.bothRows = function (own, base) {
    const rows = new Map(), cut = [base, own].map((table) => table.total_rows > table.rows.length);
    [base, own].forEach((table, which) => {
      const at = (row, key) => row[table.columns.findIndex((column) => column.key === key)];
      table.rows.forEach((row) => {
        const words = KEYS[own.name].map((key) => at(row, key)), key = words.join('\n');
        if (!rows.has(key)) rows.set(key, { sides: [null, null], row, at: (name) => at(row, name), name: words.filter((word) => word && word !== 'push/pop').join(' ') });
        rows.get(key).sides[which] = ['total_ns', 'count', 'average_ns'].map((name) => at(row, name));
      });
    });
    return [...rows.values()].map(({ sides: [b, o], at, name }) => {
      const value = (side, k) => (side ? side[k] : null), total = (side, which) => (side ? side[0] : cut[which] ? null : 0);
      const change = P.unknown(total(o, 1)) || P.unknown(total(b, 0)) ? null : total(o, 1) - total(b, 0);
      return Object.assign([change, value(b, 0), value(o, 0), value(b, 1), value(o, 1), value(b, 2), value(o, 2), name], { at });
    }).sort((x, y) => Math.abs(y[0]) - Math.abs(x[0]));
  };

  P.comparison = function () {
    const place = P.section('comparison-tables'), bases = P.data.baseline_tables;
    if (!place || !bases) return;
    const pairs = bases.map((base) => [P.data.tables.find((table) => table.name === base.name) || Object.assign({}, base, { rows: [] }), base])
      .filter(([own, base]) => own.rows.length + base.rows.length);
    if (!pairs.length) return;
    const section = el('div'), choose = el('select', { id: 'comparison-of', onchange: () => draw() },
      ...pairs.map(([own], k) => el('option', { value: k }, own.title)));
    function draw() {
      const [own, base] = pairs[Number(choose.value) || 0], rows = P.bothRows(own, base);
      section.replaceChildren();
      P.Table({ name: 'both', columns: COLUMNS, rows, total_rows: rows.length }, section,
        { locate: P.data.timeline.shown ? (row) => () => P.markRow(own.name, row.at, row[7], true) : null });
    }
    place.append(el('h3', { id: 'both-title' }, 'Both runs, by name'),
      el('p', { class: 'faint' }, 'Whole runs: this one minus the baseline, what changed most first. Empty: not in that run, or (without a change) behind the last row that its table has here. The arrow marks the instances of both on the timeline.'),
      el('div', { class: 'tools' }, el('label', { for: choose.id }, 'Table'), choose), section);
    draw();
  };
})(window.perfkit);
