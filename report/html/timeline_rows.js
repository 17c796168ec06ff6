/* Which rows of the timeline are drawn, how high and in which order, and the panel that changes it. Rows without an event
 * in view are folded where they are many or not all rows fit. */
(function (P) {
  'use strict';
  const el = P.el;
  const FEW = 5, LOW = 5, HIGH = 18;
  const HEIGHTS = { low: LOW, small: 12, usual: HIGH, high: 28, 'very high': 48 };

  const ORDERS = {
    'as recorded': () => 0,
    'busiest first': (a, b) => b.busy - a.busy,
    name: (a, b) => (a.label < b.label ? -1 : a.label > b.label ? 1 : 0),
  };

  /* changed(): the rows must be laid out again. */
  P.TimelineRows = function (model, changed) {
    const self = { lines: [], folded: new Set(), hidden: new Set(), empty: new Set(), heights: new Map(), height: HIGH, USUAL: HIGH, pinned: new Set(), order: [], foldsEmpty: true, refresh: () => {} };
    model.tracks.forEach((track) => {
      track.busy = track.rows.reduce((ns, row) => ns + model.busy[row.first + row.n] - model.busy[row.first], 0);
    });
    const has = (track, view) => track.rows.some((row) => {
      const i = model.firstAfter(row, view.from);
      return i < row.first + row.n && model.events.start[i] < view.to;
    });

    /* The processes stay together, in the order in which they were recorded. */
    self.sort = function (by) {
      const processes = new Map(); /* process -> place */
      model.tracks.forEach((track) => { if (!processes.has(track.process)) processes.set(track.process, processes.size); });
      self.order = model.tracks.map((track, t) => t).sort((a, b) => {
        const [x, y] = [model.tracks[a], model.tracks[b]];
        return processes.get(x.process) - processes.get(y.process) || ORDERS[by](x, y) || a - b;
      });
    };
    self.sort('as recorded');

    /* True: which rows are empty has changed. */
    self.findEmpty = function (view, tooHigh) {
      let empty = new Set(self.foldsEmpty ? self.order.filter((t) => !has(model.tracks[t], view)) : []);
      if (!tooHigh && empty.size <= FEW) empty = new Set(); /* nothing moves for so little */
      const same = empty.size === self.empty.size && [...empty].every((t) => self.empty.has(t));
      self.empty = empty;
      return !same;
    };

    const flip = (set, t) => { if (!set.delete(t)) set.add(t); };
    /* Of an event, in pixels: the track's own, else that of all. */
    self.highOf = (t) => self.heights.get(t) || self.height;
    self.setHeight = (t, pixels) => {
      self.heights.set(t, Math.min(Math.max(Math.round(pixels), LOW), 100));
      changed();
    };
    self.flipLow = (t) => self.setHeight(t, self.highOf(t) > LOW ? LOW : Math.max(self.height, HIGH));
    /* The next height up (1) or down (-1). */
    self.stepHeight = (t, by) => {
      const steps = Object.values(HEIGHTS), now = self.highOf(t);
      self.setHeight(t, (by > 0 ? steps.find((high) => high > now) : steps.reverse().find((high) => high < now)) || now);
    };
    self.flipHidden = (t) => { flip(self.hidden, t); changed(); };
    self.flipPinned = (t) => { flip(self.pinned, t); changed(); };
    self.showAll = () => { [self.hidden, self.heights, self.pinned].forEach((all) => all.clear()); changed(); };
    /* Whether the event's row was not drawn. */
    self.reveal = (t) => [self.folded.delete(model.tracks[t].process), self.hidden.delete(t), self.empty.delete(t)].some(Boolean);

    const choose = (chosen, attributes) => el('select', attributes, ...Object.entries(Object.values(HEIGHTS).includes(chosen) ? HEIGHTS : Object.assign({ dragged: chosen }, HEIGHTS))
      .map(([name, high]) => el('option', { value: high, selected: high === chosen }, name)));

    function line(t) {
      const track = model.tracks[t], events = track.rows.reduce((n, row) => n + row.n, 0);
      const box = (set, flipped, what) => el('td', { class: 'left' }, el('input', { type: 'checkbox', checked: set.has(t) !== (set === self.hidden),
        'aria-label': what + ' ' + track.label, onchange: () => flipped(t) }));
      return el('tr', null, box(self.hidden, self.flipHidden, 'Show'), box(self.pinned, self.flipPinned, 'Pin'),
        el('td', { class: 'left' }, choose(self.highOf(t), { 'aria-label': 'Height of ' + track.label, onchange: (event) => self.setHeight(t, Number(event.target.value)) })), el('td', { class: 'left' }, track.label),
        el('td', null, P.format.count(events)), el('td', null, P.format.duration(track.busy)));
    }

    self.panel = function () {
      const body = el('tbody'), boxes = () => [...body.querySelectorAll('input, select')];
      /* Whatever changed the rows, a key too; the box in focus keeps it. */
      self.refresh = () => {
        if (!place.open) return;
        const at = boxes().indexOf(document.activeElement);
        body.replaceChildren(...self.order.map(line));
        if (at >= 0) boxes()[at].focus({ preventScroll: true });
      };
      const sort = el('select', { id: 'timeline-order', onchange: () => { self.sort(sort.value); changed(); } },
        ...Object.keys(ORDERS).map((name) => el('option', null, name)));
      const height = choose(self.height, { id: 'timeline-height', onchange: () => {
        self.heights.clear();
        self.height = Number(height.value);
        changed();
      } });
      const fold = el('input', { type: 'checkbox', id: 'timeline-fold-empty', checked: true, onchange: () => { self.foldsEmpty = fold.checked; changed(); } });
      const place = el('details', { id: 'timeline-rows', ontoggle: self.refresh }, el('summary', null, 'Rows'),
        el('div', { class: 'tools' }, el('label', { for: sort.id }, 'Order'), sort, el('label', { for: height.id }, 'Height of all'), height, fold, el('label', { for: fold.id }, 'fold rows without events in view if there are many'),
          el('button', { type: 'button', onclick: self.showAll }, 'Show all')),
        el('div', { class: 'scroll' }, el('table', null, el('thead', null, el('tr', null, ...['Shown', 'Pinned', 'Height', 'Row', 'Events', 'Busy'].map((title, k) =>
          el('th', { scope: 'col', class: 'plain' + (k < 4 ? ' left' : '') }, title)))), body)));
      return place;
    };
    return self;
  };
})(window.perfkit);
