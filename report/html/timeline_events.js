/* The events in view as a table: sorted, filtered, copied. Made when it is unfolded, and again when the view has moved. */
(function (P) {
  'use strict';
  const el = P.el;
  const MOST = 5000; /* rows; of more the longest */

  const COLUMNS = [['start_ns', 'Start', 'ns'], ['duration_ns', 'Duration', 'ns'], ['latency_ns', 'Launch latency', 'ns'], ['bytes', 'Bytes', 'bytes'],
    ['count', 'Events', 'count'], ['kind', 'Kind', 'word'], ['row', 'Row', 'word'], ['name', 'Name', 'name']]
    .map(([key, title, unit]) => ({ key, title, unit, shown: true, hides_zero: key === 'count', blank: true,
      format: key === 'start_ns' ? (ns) => P.moment(ns, 1000) : null })); /* to the microsecond: neighbours are told apart */

  /* The longest `MOST` of a list, in order of time. */
  function longest(model, list) {
    if (list.length <= MOST) return list;
    const e = model.events, lasts = (i) => e.end[i] - e.start[i];
    const floor = Float64Array.from(list, lasts).sort()[list.length - MOST];
    const long = list.filter((i) => lasts(i) > floor);
    return long.concat(list.filter((i) => lasts(i) === floor).slice(0, MOST - long.length)).sort((a, b) => e.start[a] - e.start[b]);
  }

  function rowOf(model, i) {
    const event = model.event(i), other = model.other(i), device = event.track.lane === 'stream';
    const [d, c] = device ? [i, other] : [other, i];
    return [event.start, event.duration < 0 ? null : event.duration, other >= 0 ? model.events.start[d] - model.events.start[c] : null,
      (event.kind === 'copy' || event.kind === 'fill') && event.extra >= 0 ? event.extra : null, event.count > 1 ? event.count : null,
      P.kindWord(event.kind), event.track.label, event.name];
  }

  P.TimelineEvents = function (model, timeline) {
    const e = model.events, view = timeline.view, numbers = new Map();
    const marked = el('input', { type: 'checkbox', id: 'timeline-only-marked', onchange: () => table.draw() });
    const source = (text) => {
      const wanted = text.toLowerCase(), lists = [], hit = model.names.map((name) => name.toLowerCase().includes(wanted));
      const only = marked.checked && view.marks ? new Set(view.marks.numbers) : null;
      model.recordedRows.forEach((row) => {
        const [first, stop] = model.touching(row, view.from, view.to), inRow = [];
        const named = !wanted || model.tracks[row.t].label.toLowerCase().includes(wanted);
        for (let i = first; i < stop; i++) if ((!only || only.has(i)) && (named || hit[e.name[i]])) inRow.push(i);
        if (inRow.length) lists.push(inRow);
      });
      numbers.clear();
      const list = Array.from(model.byStart(lists)), rows = longest(model, list).map((i) => {
        const row = rowOf(model, i);
        numbers.set(row, i);
        return row;
      });
      rows.total = list.length;
      return rows;
    };
    const place = el('details', { id: 'timeline-events', ontoggle: () => { if (place.open) refresh(); } },
      el('summary', { id: 'events-title' }, 'Events in view'), el('div', { class: 'tools' }, marked, el('label', { for: marked.id }, 'marked ones only')));
    let table = null;
    function refresh() {
      if (!place.open) return;
      if (table) table.draw();
      else table = P.Table({ name: 'events', columns: COLUMNS, rows: [], total_rows: 0 }, place,
        { source, locate: (row) => () => timeline.select(numbers.get(row)) });
    }
    return { place, refresh };
  };
})(window.perfkit);
