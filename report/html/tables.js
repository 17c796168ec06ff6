/* Tables made from their descriptions: sorted by any column, filtered by name, shares as bars, and
 * the spread of durations as a small picture. */
(function (P) {
  'use strict';
  const el = P.el;
  const FIRST_ROWS = 25;
  const TOLD_ELSEWHERE = ['balance'];

  const isText = (column) => column.unit === 'name' || column.unit === 'word';

  /* Whisker from min to max, box from median to p95, thick line at the median; one logarithmic scale
   * for the whole table, so that pictures compare. */
  function spreadScale(table, at) {
    let low = Infinity, high = 0;
    table.rows.forEach((row) => {
      if (row[at.min] > 0) low = Math.min(low, row[at.min]);
      high = Math.max(high, row[at.max] || 0);
    });
    if (!(high > 0) || low === Infinity) return null;
    const from = Math.log(low), width = Math.log(high) - from || 1;
    return (v) => 2 + 96 * Math.max(0, Math.min(1, (Math.log(Math.max(v, low)) - from) / width));
  }

  function spread(row, at, scale) {
    if (!scale || P.unknown(row[at.median])) return 'n/a';
    const x = (key) => scale(row[at[key]]);
    const words = ['min', 'median', 'p95', 'max'].filter((k) => !P.unknown(row[at[k]]))
      .map((k) => k + ' ' + P.format.duration(row[at[k]])).join(', ');
    const picture = el('svg', { class: 'spread', viewBox: '0 0 100 14', width: 100, height: 14,
      role: 'img', 'aria-label': words }, el('title', null, words));
    picture.append(el('line', { x1: x('min'), x2: x('max'), y1: 7, y2: 7 }));
    const end = P.unknown(row[at.p95]) ? x('max') : x('p95');
    picture.append(el('rect', { x: x('median'), width: Math.max(1, end - x('median')), y: 3, height: 8 }));
    picture.append(el('line', { class: 'median', x1: x('median'), x2: x('median'), y1: 1, y2: 13 }));
    return picture;
  }

  function nameCell(text) {
    if (P.unknown(text)) return el('td', { class: 'left none' }, 'n/a');
    return el('td', { class: 'name left' }, el('button', { type: 'button', 'aria-expanded': 'false',
      onclick: (event) => {
        const button = event.currentTarget;
        button.setAttribute('aria-expanded', String(button.getAttribute('aria-expanded') !== 'true'));
      } }, text || '(empty)'));
  }

  /* A moment leads to its place on the timeline, as wide as the row lasts. */
  function momentCell(value, lasts) {
    return el('td', null, el('button', { type: 'button', class: 'place', title: 'Show on the timeline',
      onclick: () => {
        const pad = Math.max(lasts, (P.data.wall_ns || 0) / 200, 100) * 0.6;
        P.timelineView.show(value - pad, value + lasts + pad);
        P.section('timeline').scrollIntoView();
        P.section('timeline').querySelector('.timeline-scroll').focus({ preventScroll: true });
      } }, P.format.duration(value)));
  }

  function cell(column, value, row, lasts) {
    if (column.unit === 'name') return nameCell(value);
    if (column.unit === 'moment' && !P.unknown(value) && P.data.timeline.shown)
      return momentCell(value, lasts === undefined ? 0 : row[lasts] || 0);
    const text = P.format.value(column.unit, value);
    if (column.unit !== 'share' || P.unknown(value))
      return el('td', { class: isText(column) ? 'left' : null }, text);
    const fill = el('span', { class: 'fill' });
    fill.style.width = 'calc(' + Math.min(100, value * 100) + '% - 4px)';
    return el('td', { class: 'share' }, fill, el('span', { class: 'figure' }, text));
  }

  function compare(a, b) {
    if (P.unknown(a) || P.unknown(b)) return P.unknown(a) - P.unknown(b);
    return typeof a === 'string' ? (a < b ? -1 : a > b ? 1 : 0) : a - b;
  }

  function Table(table, section) {
    const index = {};
    table.columns.forEach((column, i) => { index[column.key] = i; });
    const at = { min: index.min_ns, median: index.median_ns, p95: index.p95_ns, max: index.max_ns };
    const hasSpread = at.min !== undefined && at.median !== undefined && at.max !== undefined;
    const scale = hasSpread ? spreadScale(table, at) : null;
    const state = { sort: -1, down: true, filter: '', all: false, wide: false };
    const head = el('tr'), body = el('tbody'), told = el('span', { class: 'faint', 'aria-live': 'polite' });
    const more = el('button', { type: 'button', onclick: () => { state.all = !state.all; draw(); } });

    const columns = () => table.columns.map((column, i) => ({ column, i }))
      .filter(({ column }) => column.shown || state.wide);

    function rows() {
      const wanted = state.filter.toLowerCase();
      let list = table.rows;
      if (wanted)
        list = list.filter((row) => table.columns.some((column, i) => isText(column) &&
          typeof row[i] === 'string' && row[i].toLowerCase().includes(wanted)));
      if (state.sort >= 0) {
        const sign = state.down ? -1 : 1;
        list = list.slice().sort((a, b) => {
          const x = a[state.sort], y = b[state.sort];
          return P.unknown(x) || P.unknown(y) ? compare(x, y) : sign * compare(x, y);
        });
      }
      return list;
    }

    function sortBy(i) {
      state.down = state.sort === i ? !state.down : !isText(table.columns[i]);
      state.sort = i;
      draw();
      const button = head.querySelector('[data-column="' + i + '"]');
      if (button) button.focus();
    }

    function drawHead() {
      head.replaceChildren(...columns().map(({ column, i }) => el('th', {
        scope: 'col', class: isText(column) ? 'left' : null,
        'aria-sort': state.sort === i ? (state.down ? 'descending' : 'ascending') : null,
      }, el('button', { type: 'button', 'data-column': i, onclick: () => sortBy(i) }, column.title))));
      if (hasSpread)
        head.insertBefore(el('th', { scope: 'col', class: 'left plain' }, 'Spread'), head.lastChild);
    }

    function draw() {
      const list = rows(), shown = state.all ? list : list.slice(0, FIRST_ROWS);
      drawHead();
      body.replaceChildren(...shown.map((row) => {
        const line = el('tr', null,
          ...columns().map(({ column, i }) => cell(column, row[i], row, index.duration_ns)));
        if (hasSpread)
          line.insertBefore(el('td', { class: 'left' }, spread(row, at, scale)), line.lastChild);
        return line;
      }));
      told.textContent = shown.length < table.total_rows
        ? P.format.count(shown.length) + ' of ' + P.plural(table.total_rows, 'row') : '';
      more.hidden = list.length <= FIRST_ROWS;
      more.textContent = state.all ? 'Show fewer' : 'Show all ' + P.format.count(list.length);
    }

    const filter = el('input', { type: 'search', id: table.name + '-filter',
      oninput: (event) => { state.filter = event.target.value; draw(); } });
    const wide = el('button', { type: 'button', 'aria-pressed': 'false', onclick: (event) => {
      state.wide = !state.wide;
      event.currentTarget.setAttribute('aria-pressed', String(state.wide));
      draw();
    } }, 'All columns');
    const tools = el('div', { class: 'tools' });
    if (table.rows.length > 3)
      tools.append(el('label', { for: filter.id }, 'Filter'), filter);
    if (table.columns.some((column) => !column.shown)) tools.append(wide);
    tools.append(more, told);
    section.append(tools, el('div', { class: 'scroll', tabindex: 0, role: 'region',
      'aria-labelledby': table.name + '-title' }, el('table', { id: table.name + '-table' },
      el('thead', null, head), body)));
    draw();
    window.addEventListener('beforeprint', () => { state.all = true; draw(); });
  }

  P.tables = function () {
    const place = P.section('tables');
    P.data.tables.filter((table) => !TOLD_ELSEWHERE.includes(table.name)).forEach((table) => {
      const title = table.name + '-title';
      const section = el('section', { id: table.name, 'aria-labelledby': title },
        el('h2', { id: title }, table.title));
      if (!table.rows.length) section.append(el('p', { class: 'none' }, table.none));
      else section.append(el('p', { class: 'faint' }, (table.totals ? table.totals + '. ' : '') + table.help));
      place.append(section);
      if (table.rows.length) Table(table, section);
    });
  };
})(window.perfkit);
