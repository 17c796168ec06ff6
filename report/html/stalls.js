/* What a row of the table of stalls unfolds: the reasons as bars, the lines of the source and the instructions beside them, the
 * warmer the more samples they have. Pointing at a line marks its instructions, and the other way round. */
(function (P) {
  'use strict';
  const el = P.el, f = P.format;
  const FEW = 0.01; /* of a kernel's samples: less is no reason of its own */

  function reasonBars(row, at) {
    const total = row[at('samples')], reasons = P.data.stall_reasons.map(([name, text]) => ({ name, text, n: row[at(name)] || 0 }))
      .filter(({ n }) => n >= FEW * total).sort((a, b) => b.n - a.n);
    return el('table', { class: 'stall-reasons' }, el('thead', null, el('tr', null, ...['Share', 'Reason', 'The warp waits for'].map((title, k) =>
      el('th', { scope: 'col', class: 'plain' + (k ? ' left' : '') }, title)))),
    el('tbody', null, ...reasons.map(({ name, text, n }) => {
      const fill = el('span', { class: 'fill' });
      fill.style.width = 'calc(' + (n * 100) / total + '% - 4px)';
      return el('tr', null, el('td', { class: 'share' }, fill, el('span', { class: 'figure' }, f.percent(n / total))),
        el('td', { class: 'left mono' }, name), el('td', { class: 'left' }, text));
    })));
  }

  const sentence = (samples, total, reason, of) => f.count(samples) + ' samples, ' + f.percent(samples / total) + ' of the kernel' +
    (reason < 0 ? '' : '; ' + P.data.stall_reasons[reason][0] + ' ' + f.percent(of / samples) + ' of them');

  /* A line of the listings; where: "kernel.cu:28", by which both are joined. */
  function listingRow(heat, reason, number, text, where, words) {
    const line = el('tr', { 'data-where': where, title: words, class: words ? null : 'faint' },
      el('td', { class: 'share' }, heat > 0 ? el('span', { class: 'fill' }) : null, el('span', { class: 'figure' }, heat > 0 ? f.percent(heat) : '')),
      el('td', { class: 'left faint' }, reason >= 0 && heat >= FEW ? P.data.stall_reasons[reason][0] : ''), el('td', { class: 'mono' }, number), el('td', { class: 'left mono code' }, text));
    if (heat > 0) line.querySelector('.fill').style.width = 'calc(' + Math.min(1, heat) * 100 + '% - 4px)';
    return line;
  }

  /* The lines with samples in the order of the source, with what is around them where the file was there. */
  function sourceRows(kernel, total) {
    const rows = [], files = [...new Set(kernel.lines.map((line) => line[1] || ''))];
    files.forEach((file) => {
      const sampled = new Map(kernel.lines.filter((line) => (line[1] || '') === file).map((line) => [line[2] === null ? line[0] : line[2], line]));
      const text = new Map(P.data.stall_source[file] || []), numbers = [...new Set([...sampled.keys(), ...[...text.keys()].filter((n) =>
        [-2, -1, 1, 2].some((by) => sampled.has(n + by)))])].sort((a, b) => a - b);
      rows.push(el('tr', null, el('th', { colspan: 4, scope: 'rowgroup', class: 'left plain mono' }, file || 'no line known')));
      numbers.forEach((n, k) => {
        if (k && typeof n === 'number' && n > numbers[k - 1] + 1) rows.push(el('tr', { class: 'faint' }, el('td'), el('td'), el('td', null, '\u22ef'), el('td')));
        const line = sampled.get(n), where = line ? line[0] : '';
        rows.push(listingRow(line ? line[3] / total : 0, line ? line[4] : -1, typeof n === 'number' ? n : '', text.has(n) ? text.get(n) : line && !file ? where : '', where,
          line ? sentence(line[3], total, line[4], line[5]) : null));
      });
    });
    return rows;
  }

  const codeRows = (kernel, total) => kernel.code.map(([address, sass, where, samples, reason, of]) =>
    listingRow(samples / total, reason, address, sass || '(not disassembled)', where, where + ': ' + sentence(samples, total, reason, of)));

  function listing(title, rows) {
    return el('div', { class: 'listing' }, el('h4', null, title), el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': title },
      el('table', null, el('tbody', null, ...rows))));
  }

  P.stallDetails = function (table) {
    const at = (key) => table.columns.findIndex((column) => column.key === key), numbers = new Map(table.rows.map((row, k) => [row, k]));
    return { unfold: (row) => {
      const kernel = P.data.stall_kernels[numbers.get(row)], total = row[at('samples')], told = el('p', { class: 'faint', 'aria-live': 'polite' });
      const box = el('div', { class: 'unfolded stalls' }, el('p', { class: 'mono long' }, row[at('name')]), reasonBars(row, at));
      if (!kernel) {
        box.append(el('p', { class: 'faint' }, 'Lines and instructions of the kernels with most samples are in the page: perfkit report FILE --kernel NAME.'));
        return box;
      }
      const why = row[at('no_lines')], hasText = kernel.lines.some((line) => P.data.stall_source[line[1]]);
      if (why) box.append(el('p', { class: 'faint' }, 'No lines: ' + why + '.'));
      else if (!hasText) box.append(el('p', { class: 'faint' }, 'The source was not on the machine where this page was written.'));
      box.append(el('div', { class: 'listings' }, listing('Source', sourceRows(kernel, total)), listing('Instructions' +
        (kernel.left_out ? ', ' + f.count(kernel.left_out) + ' further from the hottest left out' : ''), codeRows(kernel, total))), told);
      const mark = (where, words) => {
        box.querySelectorAll('tr.told').forEach((line) => line.classList.remove('told'));
        told.textContent = words || '';
        if (where) box.querySelectorAll('tr[data-where]').forEach((line) => { if (line.dataset.where === where) line.classList.add('told'); });
      };
      box.addEventListener('mouseover', (event) => {
        const line = event.target instanceof Element && event.target.closest('tr[data-where]');
        if (line && line.dataset.where) mark(line.dataset.where, line.title);
      });
      box.addEventListener('click', (event) => {
        const line = event.target instanceof Element && event.target.closest('tr[data-where]');
        const other = line && [...box.querySelectorAll('.listing')].find((one) => !one.contains(line));
        const first = other && [...other.querySelectorAll('tr[data-where]')].find((one) => one.dataset.where === line.dataset.where);
        if (first) first.scrollIntoView({ block: 'nearest' });
      });
      return box;
    } };
  };
})(window.perfkit);
