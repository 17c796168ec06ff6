/* Tables made from their descriptions: sorted by any column, filtered by name, shares and speeds as
 * bars, histograms of durations, rows that unfold and that lead to their place on the timeline; copied as
 * CSV; and the part of the page in which each stands. */
(function (P) {
  'use strict';
  const el = P.el;
  const FIRST_ROWS = 25, SHORT = 36, PAPER_ROWS = 500;

  /* Where figures have to be scrolled the name stands before them and stays: behind them it would cover one. */
  const narrow = matchMedia('screen and (max-width: 1100px)');
  const nameFirst = (line, leads) => {
    const name = line.lastElementChild;
    if (!narrow.matches || !name || !name.classList.contains('name')) return line;
    name.classList.add('first');
    line.insertBefore(name, line.children[leads]);
    return line;
  };

  const isText = (column) => column.unit === 'name' || column.unit === 'word';

  /* The spread in words, which is what a histogram's cell is called. */
  function spreadWords(row, at) {
    return ['min', 'median', 'p95', 'max'].filter((key) => at[key] !== undefined && !P.unknown(row[at[key]]))
      .map((key) => key + ' ' + P.format.duration(row[at[key]])).join(', ');
  }

  function nameCell(text) {
    if (P.unknown(text)) return el('td', { class: 'name left none' }, 'n/a');
    /* What fits is no stop for the tab key. */
    if (text.length < SHORT && !text.includes('\n')) return el('td', { class: 'name left' }, el('span', null, text || '(empty)'));
    return el('td', { class: 'name left' }, el('button', { type: 'button', 'aria-expanded': 'false',
      onclick: (event) => {
        const button = event.currentTarget, whole = button.getAttribute('aria-expanded') !== 'true';
        button.setAttribute('aria-expanded', String(whole));
        button.textContent = P.visible(whole ? text : P.short(text));
      } }, P.short(text)));
  }

  /* A moment leads to its place on the timeline, as wide as the row lasts. */
  function momentCell(value, lasts) {
    return el('td', null, el('a', { class: 'place', title: 'Show on the timeline',
      href: '#t=' + value + ',' + (value + lasts) }, P.format.duration(value)));
  }

  function barCell(share, text) {
    const fill = el('span', { class: 'fill' });
    fill.style.width = 'calc(' + Math.min(100, share * 100) + '% - 4px)';
    return el('td', { class: 'share' }, fill, el('span', { class: 'figure' }, text));
  }

  function cell(column, value, row, table) {
    if (column.unit === 'name') return nameCell(value);
    if (column.unit === 'moment' && !P.unknown(value) && P.data.timeline.shown)
      return momentCell(value, table.lasts < 0 ? 0 : row[table.lasts] || 0);
    const text = P.unknown(value) && column.blank ? '' : column.format ? column.format(value) : P.format.value(column.unit, value);
    if (!P.unknown(value) && column.unit === 'share') return barCell(value, text);
    const largest = column.bar ? table.largest(row) : 0;
    if (!P.unknown(value) && largest > 0) return barCell(value / largest, text);
    return el('td', { class: isText(column) ? 'left' : null }, text);
  }

  function compare(a, b) {
    if (P.unknown(a) || P.unknown(b)) return P.unknown(a) - P.unknown(b);
    if (typeof a !== 'string') return a - b;
    const [x, y] = [P.short(a), P.short(b)]; /* as they are read */
    return x < y ? -1 : x > y ? 1 : 0;
  }

  /* Values as they are, not as they are read. */
  function csv(columns, rows) {
    const field = (value) => (P.unknown(value) ? '' : /[",\n\r]/.test(value) ? '"' + String(value).replace(/"/g, '""') + '"' : String(value));
    return [columns.map(({ column }) => field(column.key)), ...rows.map((row) => columns.map(({ i }) => field(row[i])))]
      .map((fields) => fields.join(',') + '\n').join('');
  }

  /* more.histogram(row): its histogram; more.unfold(row): what a row unfolds to; more.locate(row): a function that
   * shows it on the timeline; more.source(text): the rows that hold the text, `total` of them. Each may be missing. */
  P.Table = function (table, section, more) {
    const index = {};
    table.columns.forEach((column, i) => { index[column.key] = i; });
    const at = { min: index.min_ns, median: index.median_ns, p95: index.p95_ns, max: index.max_ns };
    table.lasts = index.duration_ns === undefined ? -1 : index.duration_ns;
    const largest = new Map(), bar = table.columns.findIndex((column) => column.bar); /* of each kind */
    if (bar >= 0)
      table.rows.forEach((row) => largest.set(row[index.kind], Math.max(largest.get(row[index.kind]) || 0, row[bar] || 0)));
    table.largest = (row) => largest.get(row[index.kind]);
    const { histogram, unfold, source, locate = P.placeOf(table, index) } = more || {};
    const scale = histogram ? P.histogramScale(table.rows.map(histogram)) : null;
    const state = { sort: -1, down: true, filter: '', all: false, paper: false, wide: false, unfolded: new Set() };
    const head = el('tr'), body = el('tbody'), told = el('span', { class: 'faint', 'aria-live': 'polite' });
    const every = el('button', { type: 'button', onclick: () => { state.all = !state.all; draw(); } });

    /* A column without a single known value is shown with all columns only; some are so when all are 0. */
    const columns = () => table.columns.map((column, i) => ({ column, i })).filter(({ column, i }) =>
      state.wide || (column.shown && (i === table.columns.length - 1 || table.rows.some((row) => !P.unknown(row[i]) &&
        (!column.hides_zero || row[i] !== 0)))));

    function rows() {
      const wanted = state.filter.toLowerCase();
      let list = source ? source(wanted) : table.rows;
      if (source) [table.rows, table.total_rows] = [list, list.total];
      else if (wanted)
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
        scope: 'col', class: column.unit === 'name' ? 'left name' : isText(column) ? 'left' : null,
        'aria-sort': state.sort === i ? (state.down ? 'descending' : 'ascending') : null,
      }, el('button', { type: 'button', 'data-column': i, onclick: () => sortBy(i) }, column.title))));
      if (scale) head.insertBefore(el('th', { scope: 'col', class: 'left plain' }, 'Spread'), head.lastChild);
      if (unfold || locate) head.prepend(el('th', { scope: 'col', class: 'plain' }, el('span', { class: 'unseen' }, 'Details, place')));
      nameFirst(head, unfold || locate ? 1 : 0);
    }

    const nameOf = (row) => String(row[index.name] || row[0] || '(empty)').slice(0, 200);
    const locateButton = (row) => el('button', { type: 'button', class: 'locate', title: 'Show on the timeline',
      'aria-label': 'Show ' + nameOf(row) + ' on the timeline', onclick: locate(row) });

    function unfoldButton(row) {
      const open = state.unfolded.has(row);
      return el('button', { type: 'button', class: 'unfold', 'aria-expanded': String(open),
        'aria-label': 'Details of ' + nameOf(row), onclick: (event) => {
          const line = event.currentTarget.closest('tr'), now = !state.unfolded.delete(row);
          if (now) state.unfolded.add(row);
          event.currentTarget.setAttribute('aria-expanded', String(now));
          if (now) line.after(unfoldedLine(row)); else line.nextSibling.remove();
        } });
    }

    const unfoldedLine = (row) => el('tr', { class: 'more' },
      el('td', { class: 'left', colspan: head.children.length }, unfold(row)));

    function lineOf(row) {
      const line = el('tr', null, ...columns().map(({ column, i }) => cell(column, row[i], row, table)));
      if (scale)
        line.insertBefore(el('td', { class: 'left' }, P.histogramCell(histogram(row), scale, spreadWords(row, at))),
          line.lastChild);
      if (unfold || locate) line.prepend(el('td', { class: 'left lead' }, unfold ? unfoldButton(row) : null, locate ? locateButton(row) : null));
      nameFirst(line, unfold || locate ? 1 : 0);
      return state.unfolded.has(row) ? [line, unfoldedLine(row)] : [line];
    }

    function draw() {
      list = rows();
      const most = state.paper ? PAPER_ROWS : state.all ? list.length : FIRST_ROWS;
      const shown = list.slice(0, most);
      drawHead();
      body.replaceChildren(...shown.flatMap(lineOf));
      told.textContent = shown.length < table.total_rows
        ? P.format.count(shown.length) + ' of ' + P.plural(table.total_rows, 'row') : '';
      every.hidden = list.length <= FIRST_ROWS;
      every.textContent = state.all ? 'Show fewer' : 'Show all ' + P.format.count(list.length);
    }

    /* A page in a file may not be allowed to use the clipboard. */
    async function copy() {
      const text = csv(columns(), list);
      try {
        await navigator.clipboard.writeText(text);
      } catch (error) {
        const area = el('textarea', null, '');
        area.value = text;
        section.append(area);
        area.select();
        document.execCommand('copy');
        area.remove();
      }
      told.textContent = P.plural(list.length, 'row') + ' copied';
    }

    let list = [];
    const filter = el('input', { type: 'search', id: table.name + '-filter',
      oninput: (event) => { state.filter = event.target.value; draw(); } });
    const wide = el('button', { type: 'button', 'aria-pressed': 'false', onclick: (event) => {
      state.wide = !state.wide;
      event.currentTarget.setAttribute('aria-pressed', String(state.wide));
      draw();
    } }, 'All columns');
    const tools = el('div', { class: 'tools' });
    if (table.rows.length > 3 || source)
      tools.append(el('label', { for: filter.id }, 'Filter'), filter);
    if (columns().length < table.columns.length) tools.append(wide);
    tools.append(every, el('button', { type: 'button', onclick: copy }, 'Copy as CSV'), told);
    section.append(tools, el('div', { class: 'scroll', tabindex: 0, role: 'region',
      'aria-labelledby': table.name + '-title' }, el('table', { id: table.name + '-table' },
      el('thead', null, head), body)));
    draw();
    narrow.addEventListener('change', draw);
    P.onPaper((paper) => {
      state.paper = paper;
      draw();
    });
    return { draw, csv: () => csv(columns(), list) };
  };

  function put(table, place) {
    const title = table.name + '-title', heading = place.querySelector('h2').textContent;
    const section = el('section', { id: table.name, 'aria-labelledby': title },
      el('h3', { id: title, class: table.title === heading ? 'unseen' : null }, table.title));
    if (!table.rows.length) section.append(el('p', { class: 'none' }, table.none));
    else section.append(el('p', { class: 'faint' }, (table.totals ? table.totals + '. ' : '') + table.help));
    place.append(section);
    if (table.rows.length) P.Table(table, section, table.unfolds ? { kernels: P.kernelDetails, stalls: P.stallDetails }[table.name](table) : null);
  }

  P.tables = function () {
    P.data.tables.filter((table) => table.part).sort((a, b) => a.order - b.order)
      .forEach((table) => put(table, P.section(table.part)));
    document.querySelectorAll('section.part').forEach((part) => { part.hidden = part.children.length < 2; });
  };
})(window.perfkit);
