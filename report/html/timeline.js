/* The timeline's behaviour: zoom, pan, search and selection, by keyboard, mouse and touchpad. What is
 * selected is told in words below, also to screen readers. */
(function (P) {
  'use strict';
  const el = P.el, f = P.format;
  const KEYS = [['\u2190 \u2192', 'move'], ['+ \u2212', 'zoom'], ['\u2191 \u2193', 'track'],
    [', .', 'previous, next event'], ['F', 'zoom to the event'], ['G', 'go to the call or kernel'],
    ['0', 'everything'], ['/', 'search'], ['N', 'next match'], ['Esc', 'clear']];

  function describe(model, at) {
    const e = model.event(at), other = model.other(at);
    const parts = [e.kind];
    if (e.count > 1) parts[0] = P.plural(e.count, 'event') + ' merged, busy for ' + f.duration(e.busy) + ', longest named';
    parts.push('start ' + f.duration(e.start));
    parts.push(e.duration < 0 ? 'no end seen' : 'duration ' + f.duration(e.duration));
    if (e.count === 1 && e.kind === 'kernel' && e.extra) {
      const c = model.configs[e.extra];
      const three = (v) => v.map((n) => (n === null ? '?' : n)).join('\u00d7');
      if (c) parts.push('grid ' + three(c.slice(0, 3)), 'block ' + three(c.slice(3, 6)));
      if (c && c[6] !== null) parts.push(c[6] + ' registers');
    }
    if (e.count === 1 && (e.kind === 'copy' || e.kind === 'fill') && e.extra >= 0) {
      parts.push(f.bytes(e.extra));
      if (e.duration > 0) parts.push(f.rate((e.extra * 1e9) / e.duration));
    }
    if (e.kind === 'range' && e.extra === 1) parts.push('still open at the end of the capture');
    if (other) {
      const o = model.event(other), device = e.track.lane === 'stream' ? e : o, call = device === e ? o : e;
      parts.push((device === e ? 'asked for by ' : 'asked for ') + o.name.slice(0, 200) + ', ' +
        f.duration(device.start - call.start) + ' from call to start');
    }
    parts.push(e.track.label + (model.processes > 1 ? ', process ' + e.track.pid : ''));
    return { name: e.name, text: parts.join(' \u00b7 ') };
  }

  function Timeline(place, model) {
    const canvas = el('canvas', { 'aria-hidden': 'true' });
    const spacer = el('div', { 'aria-hidden': 'true' });
    const scroll = el('div', { class: 'timeline-scroll', tabindex: 0, role: 'application',
      'aria-label': 'Timeline. Arrow keys move and change the track, plus and minus zoom, comma and full stop step through events.' },
    canvas, spacer);
    const details = el('div', { class: 'details', 'aria-live': 'polite', id: 'timeline-details' });
    const inView = el('p', { class: 'faint', id: 'timeline-in-view' });
    const found = el('span', { class: 'faint', 'aria-live': 'polite', id: 'timeline-found' });
    const search = el('input', { type: 'search', id: 'timeline-search' });
    const draw = P.TimelineDraw(canvas, model);
    const view = { from: model.begin, to: model.end, top: 0, selected: null, track: 0, hit: null };
    let matches = [], match = -1, pending = false, statistics = 0;

    function redraw() {
      if (pending) return;
      pending = true;
      requestAnimationFrame(() => {
        pending = false;
        draw.draw(view);
      });
      clearTimeout(statistics);
      statistics = setTimeout(tellView, 120);
    }

    function tellView() {
      const sums = model.within(view.from, view.to);
      const words = sums.filter((sum) => sum.count).map((sum) => P.plural(sum.count, sum.kind,
        sum.kind === 'copy' ? 'copies' : undefined) + ' (' + f.duration(sum.ns) + ')');
      inView.textContent = 'In view: ' + (words.join(', ') || 'nothing') + '.';
    }

    function show(from, to) {
      const whole = model.end - model.begin, span = Math.min(Math.max(to - from, 20), whole * 1.1);
      const middle = (from + to) / 2;
      view.from = Math.min(Math.max(middle - span / 2, model.begin - whole * 0.05), model.end - span + whole * 0.05);
      view.to = view.from + span;
      redraw();
    }

    function zoom(factor, at) {
      const time = at === undefined ? (view.from + view.to) / 2 : at;
      show(time - (time - view.from) * factor, time + (view.to - time) * factor);
    }

    function pan(share) {
      const by = (view.to - view.from) * share;
      show(view.from + by, view.to + by);
    }

    function intoSight(at) {
      const row = model.tracks[at.t].rows[at.r], span = view.to - view.from;
      const start = row.start[at.i], end = row.end[at.i];
      if (end < view.from + span * 0.02 || start > view.to - span * 0.02)
        show(start - span / 2, start + span / 2);
      const y = draw.plan.places[at.t] + at.r * draw.ROW, seen = draw.height - draw.RULER;
      if (y < view.top || y + draw.ROW > view.top + seen) scroll.scrollTop = Math.max(0, y - seen / 2);
    }

    function select(at, silent) {
      view.selected = at;
      details.replaceChildren();
      if (at) {
        const words = describe(model, at);
        view.track = at.t;
        details.append(el('b', { class: 'mono long' }, words.name), el('span', null, words.text));
        if (!silent) intoSight(at);
      } else {
        details.append(el('span', { class: 'faint' }, 'Click an event, or press . with the timeline in focus.'));
      }
      redraw();
    }

    /* The next event of the track in time, over all of its rows. */
    function step(direction) {
      const rows = model.tracks[view.track].rows;
      const now = view.selected && view.selected.t === view.track
        ? rows[view.selected.r].start[view.selected.i] : (direction > 0 ? view.from - 1 : view.to);
      let best = null, bestTime = direction > 0 ? Infinity : -Infinity;
      rows.forEach((row, r) => {
        let low = 0, high = row.n;
        while (low < high) {
          const middle = (low + high) >> 1;
          if (direction > 0 ? row.start[middle] <= now : row.start[middle] < now) low = middle + 1;
          else high = middle;
        }
        const i = direction > 0 ? low : low - 1;
        const better = i >= 0 && i < row.n &&
          (direction > 0 ? row.start[i] < bestTime : row.start[i] > bestTime);
        if (better) {
          bestTime = row.start[i];
          best = { t: view.track, r, i };
        }
      });
      if (best) select(best);
    }

    function runSearch() {
      const text = search.value.trim();
      const result = text ? model.search(text) : { hit: null, found: [] };
      view.hit = result.hit;
      matches = result.found;
      match = -1;
      found.textContent = text ? (matches.length ? P.plural(matches.length, 'match', 'matches') : 'no match') : '';
      redraw();
    }

    function nextMatch(direction) {
      if (!matches.length) return;
      match = (match + direction + matches.length) % matches.length;
      found.textContent = f.count(match + 1) + ' of ' + P.plural(matches.length, 'match', 'matches');
      select(matches[match]);
    }

    function zoomToSelection() {
      if (!view.selected) return;
      const row = model.tracks[view.selected.t].rows[view.selected.r], i = view.selected.i;
      const pad = Math.max((row.end[i] - row.start[i]) * 0.6, 50);
      show(row.start[i] - pad, row.end[i] + pad);
    }

    function moveTrack(by) {
      view.track = Math.min(Math.max(view.track + by, 0), model.tracks.length - 1);
      const y = draw.plan.places[view.track];
      const seen = draw.height - draw.RULER;
      if (y < view.top || y + draw.ROW > view.top + seen) scroll.scrollTop = Math.max(0, y - 20);
      details.replaceChildren(el('span', null, 'Track ' + model.tracks[view.track].label));
      redraw();
    }

    const actions = {
      ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), '+': () => zoom(0.6), '=': () => zoom(0.6),
      '-': () => zoom(1 / 0.6), ArrowUp: () => moveTrack(-1), ArrowDown: () => moveTrack(1),
      ',': () => step(-1), '.': () => step(1), Enter: () => step(1), f: zoomToSelection,
      g: () => { const other = view.selected && model.other(view.selected); if (other) select(other); },
      0: () => show(model.begin, model.end), Home: () => show(model.begin, model.end),
      '/': () => search.focus(), n: () => nextMatch(1), N: () => nextMatch(-1), Escape: () => select(null),
    };

    scroll.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const action = actions[event.key] || actions[event.key.toLowerCase()];
      if (!action) return;
      event.preventDefault();
      action();
    });
    search.addEventListener('input', runSearch);
    search.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') nextMatch(event.shiftKey ? -1 : 1);
      if (event.key === 'Escape') {
        search.value = '';
        runSearch();
        scroll.focus();
      }
    });
    scroll.addEventListener('scroll', () => {
      view.top = scroll.scrollTop;
      redraw();
    });

    /* The wheel zooms with Ctrl (also what a pinch sends); sideways it pans; else the page scrolls. */
    scroll.addEventListener('wheel', (event) => {
      const box = canvas.getBoundingClientRect(), width = draw.width - draw.gutter;
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        const time = view.from + ((event.clientX - box.left - draw.gutter) / width) * (view.to - view.from);
        zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.008), time);
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
        event.preventDefault();
        pan((event.deltaX || event.deltaY) / width);
      }
    }, { passive: false });

    let grip = null;
    canvas.addEventListener('pointerdown', (event) => {
      if (event.button) return;
      const box = canvas.getBoundingClientRect();
      grip = { x: event.clientX, y: event.clientY, from: view.from, to: view.to, moved: false,
        left: event.clientX - box.left, top: event.clientY - box.top };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!grip) return;
      const by = event.clientX - grip.x;
      if (Math.abs(by) > 3) grip.moved = true;
      if (!grip.moved) return;
      const ns = (by * (grip.to - grip.from)) / (draw.width - draw.gutter);
      show(grip.from - ns, grip.to - ns);
    });
    canvas.addEventListener('pointerup', () => {
      if (grip && !grip.moved) {
        const at = draw.hit(view, grip.left, grip.top);
        if (at) view.track = at.t;
        select(at && at.i >= 0 ? at : null, true);
      }
      grip = null;
    });
    canvas.addEventListener('pointercancel', () => { grip = null; });
    canvas.addEventListener('dblclick', zoomToSelection);

    function resize() {
      const width = scroll.clientWidth;
      if (!width) return;
      const all = draw.plan.height + draw.RULER, most = Math.max(240, Math.floor(window.innerHeight * 0.75));
      const height = Math.min(all, most);
      draw.resize(width, height);
      spacer.style.height = Math.max(0, all - height) + 'px';
      draw.draw(view);
      redraw();
    }

    const button = (text, label, action) => el('button', { type: 'button', 'aria-label': label, onclick: action }, text);
    place.append(
      el('div', { class: 'tools' }, el('label', { for: 'timeline-search' }, 'Search'), search,
        button('\u25c2', 'Previous match', () => nextMatch(-1)), button('\u25b8', 'Next match', () => nextMatch(1)), found,
        button('+', 'Zoom in', () => zoom(0.6)), button('\u2212', 'Zoom out', () => zoom(1 / 0.6)),
        button('Everything', 'Show everything', () => show(model.begin, model.end)),
        button('Selection', 'Zoom to the selected event', zoomToSelection)),
      el('div', { class: 'timeline-frame' }, scroll), inView, details,
      el('p', { class: 'faint keys' }, 'Drag to move, Ctrl and the wheel to zoom, or with the timeline in focus: ',
        ...KEYS.flatMap(([key, what]) => [el('kbd', null, key), ' ' + what + '  '])));
    new ResizeObserver(resize).observe(place);
    P.onRepaint(() => draw.draw(view));
    select(null);
    resize();
    return { view, model, select, show, zoom, step, nextMatch, draw };
  }

  P.timeline = function () {
    const source = P.data.timeline, place = P.section('timeline');
    const model = P.Model(source);
    const total = model.counts.reduce((a, b) => a + b, 0);
    const words = model.counts.map((n, k) => (n ? P.plural(n, model.kinds[k],
      model.kinds[k] === 'copy' ? 'copies' : undefined) : null)).filter(Boolean);
    place.append(el('p', { class: 'faint', id: 'timeline-counts' },
      total ? P.plural(total, 'event') + ': ' + words.join(', ') + '.' : 'No events.'));
    if (model.notStarted)
      place.append(el('p', { class: 'faint' }, P.plural(model.notStarted, 'event') +
        ' never seen to start, so without a place here.'));
    if (model.merge)
      place.append(el('p', { class: 'warning', id: 'timeline-merged' }, 'Too many events for one page: neighbours within ' +
        f.duration(model.merge) + ' are drawn as one block (' + f.count(model.shown) +
        ' blocks). Every single event: perfkit report FILE --chrome-trace OUT.'));
    if (total) P.timelineView = Timeline(place, model);
  };
})(window.perfkit);
