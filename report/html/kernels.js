/* What a row of the kernel table unfolds: its histogram large, and its launch configurations. */
(function (P) {
  'use strict';
  const el = P.el;

  /* The configurations as a table of their own, for a kernel's rows of them: [264, 1, 1] becomes "264 × 1 × 1". */
  function configTable(source, name, rows) {
    const word = (value) => (Array.isArray(value) ? value.map((v) => (P.unknown(v) ? '?' : v)).join(' \u00d7 ') : value);
    const kept = source.columns.map((column, i) => i).filter((i) => source.columns[i].shown);
    return { name, title: source.title, total_rows: rows.length, columns: kept.map((i) => source.columns[i]),
      rows: rows.map((row) => kept.map((i) => word(row[i]))) };
  }

  /* The stacks of the host that launched a kernel, most time first. */
  function callers(name) {
    const list = (P.data.callers || []).filter((row) => row[0] === name);
    if (!list.length) return null;
    return el('div', { class: 'callers' }, el('h4', null, 'Launched from'), el('ol', null, ...list.map(([, ns, count, idle, path]) =>
      el('li', null, el('b', null, P.format.duration(ns)), ', ' + P.plural(count, 'launch', 'launches') +
        (idle > 0 ? ', the device idle for ' + P.format.duration(idle) + ' before' : '') + ' ',
      el('span', { class: 'mono long' }, path.join(' \u2190 '))))));
  }

  P.kernelDetails = function (table) {
    const source = P.data.kernel_configs, histograms = P.data.kernel_histograms;
    const nameAt = source.columns.findIndex((column) => column.key === 'name');
    const byName = new Map(), numbers = new Map();
    source.rows.forEach((row, i) => {
      if (!byName.has(row[nameAt])) byName.set(row[nameAt], []);
      byName.get(row[nameAt]).push({ row, histogram: P.data.config_histograms[i] });
    });
    table.rows.forEach((row, i) => numbers.set(row, i));
    const at = (key) => table.columns.findIndex((column) => column.key === key);
    const name = at('name'), configs = at('configs');
    return {
      histogram: (row) => histograms[numbers.get(row)],
      unfold: (row) => {
        const list = byName.get(row[name]) || [], number = numbers.get(row);
        const box = el('div', { class: 'unfolded' }, el('p', { class: 'mono long' }, row[name]),
          P.histogramLarge(histograms[number]), callers(row[name]));
        if (!list.length) return box;
        const left = Math.max(0, (row[configs] || 0) - list.length);
        const inner = configTable(source, 'configs-' + number, list.map((one) => one.row));
        const seen = new Map(inner.rows.map((one, i) => [one, list[i]]));
        const gridAt = source.columns.findIndex((column) => column.key === 'grid'), blockAt = source.columns.findIndex((column) => column.key === 'block');
        box.append(el('h4', { id: inner.name + '-title' }, P.plural(list.length, 'launch configuration') +
          (left ? ', ' + P.format.count(left) + ' more left out' : '')));
        P.Table(inner, box, { histogram: (one) => seen.get(one).histogram, locate: (one) => () => window.perfkit_timeline.mark({ words: row[name],
          kinds: ['kernel'], name: row[name], shape: [...seen.get(one).row[gridAt], ...seen.get(one).row[blockAt]] }) });
        return box;
      },
    };
  };
})(window.perfkit);
