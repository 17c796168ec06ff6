/* The timeline: what can be done with it, and the words that tell it, also to screen readers. How other
 * sections and links reach it: timeline_places.js. */
(function (P) {
  'use strict';
  const el = P.el, f = P.format;

  /* Memory, and of the counters of each device those that say most: shares, the highest first. */
  const LINES_FIRST = 4;
  function fewLines(model) {
    const lines = model.lines.map((line, k) => ({ line, k }));
    const first = lines.filter(({ line }) => line.unit === 'bytes');
    const counters = lines.filter(({ line }) => line.unit !== 'bytes')
      .sort((a, b) => (b.line.unit === 'share') - (a.line.unit === 'share') || b.line.mean - a.line.mean);
    return first.concat(counters.slice(0, LINES_FIRST)).map(({ k }) => k).sort((a, b) => a - b);
  }

  function Timeline(place, model) {
    const e = model.events;
    const canvas = el('canvas', { 'aria-hidden': 'true' });
    const spacer = el('div', { 'aria-hidden': 'true' });
    const scroll = el('div', { class: 'timeline-scroll', tabindex: 0, role: 'application', 'aria-describedby': 'timeline-counts',
      'aria-label': 'Timeline. Enter selects an event, arrow keys go from event to event, plus and minus zoom, question mark lists all keys.' },
    canvas, spacer);
    const hint = el('div', { class: 'timeline-hint', 'aria-hidden': 'true', hidden: true });
    const details = el('div', { class: 'details', 'aria-live': 'polite', id: 'timeline-details' });
    const ranged = el('div', { id: 'timeline-range', hidden: true }), rangeTold = el('div', { 'aria-live': 'polite' });
    const inView = el('p', { class: 'faint', id: 'timeline-in-view' });
    const found = el('span', { class: 'faint', 'aria-live': 'polite', id: 'timeline-found' });
    const search = el('input', { type: 'search', id: 'timeline-search', autocomplete: 'off', spellcheck: 'false' });
    const draw = P.TimelineDraw(canvas, model);
    const view = { from: model.begin, to: model.end, top: 0, selected: -1, track: 0, hit: null, range: null };
    const folded = new Set(); /* processes */
    let matches = [], match = -1, pending = false, statistics = 0, moved = false;
    const t = { view, model, draw };

    t.redraw = function () {
      if (pending) return;
      pending = true;
      requestAnimationFrame(() => {
        pending = false;
        draw.draw(view);
      });
      clearTimeout(statistics);
      statistics = setTimeout(settle, 150);
    };

    /* Once the view stands still: what is in it, in words and in the address. */
    function settle() {
      const w = P.within(model, view.from, view.to, true);
      const words = w.kinds.map((k) => P.kinds(k.count, k.kind) + ' (' + f.duration(k.ns) + ')');
      const busy = w.devices.map((d) => d.label + ' busy ' + f.percent(d.union / (w.to - w.from)));
      inView.textContent = 'In view, ' + f.duration(w.to - w.from) + ': ' + (words.concat(busy).join(', ') || 'nothing') + '.';
      if (moved) P.hash.write(t);
    }

    t.show = function (from, to) {
      const whole = model.end - model.begin, span = Math.min(Math.max(to - from, 20), whole * 1.1);
      const middle = (from + to) / 2;
      view.from = Math.min(Math.max(middle - span / 2, model.begin - whole * 0.05), model.end - span + whole * 0.05);
      view.to = view.from + span;
      moved = true;
      t.redraw();
    };
    t.everything = () => t.show(model.begin, model.end);

    t.zoom = function (factor, at) {
      const selected = view.selected >= 0 && e.start[view.selected];
      const seen = selected !== false && selected >= view.from && selected <= view.to;
      const time = at === undefined ? (seen ? selected : (view.from + view.to) / 2) : at;
      t.show(time - (time - view.from) * factor, time + (view.to - time) * factor);
    };

    t.pan = function (share) {
      const by = (view.to - view.from) * share;
      t.show(view.from + by, view.to + by);
    };

    t.scrollTo = (top) => { scroll.scrollTop = top; };

    function trackIntoSight(y) {
      const seen = draw.height - draw.RULER;
      if (y < view.top || y + draw.ROW > view.top + seen) scroll.scrollTop = Math.max(0, y - seen / 2);
    }

    function intoSight(i) {
      const row = model.rowOf(i), span = view.to - view.from;
      if (e.end[i] < view.from + span * 0.02 || e.start[i] > view.to - span * 0.02)
        t.show(e.start[i] - span / 2, e.start[i] + span / 2);
      trackIntoSight(draw.plan.places[row.t] + row.r * draw.ROW);
    }

    /* ---- the selected event --------------------------------------------------------------- */

    let unfolded = false;
    t.select = function (i, silent) {
      view.selected = i;
      moved = true;
      details.replaceChildren();
      if (i >= 0) {
        const words = P.describe(model, i);
        if (folded.delete(model.trackOf(i).process)) arrange();
        view.track = model.rowOf(i).t;
        details.append(el('b', { class: 'mono long' }, words.name), el('span', null, words.text));
        const stack = P.describeStack(model, i);
        if (stack) {
          stack.open = unfolded; /* who looked at one wants to see the next one's */
          stack.addEventListener('toggle', () => { unfolded = stack.open; });
          details.append(stack);
        }
        if (!silent) intoSight(i);
      } else {
        details.append(el('span', { class: 'faint' }, 'Click an event, or press Enter with the timeline in focus; ? lists all keys.'));
      }
      t.redraw();
    };

    t.step = function (direction) {
      const row = model.rowOf(view.selected), i = view.selected + direction;
      if (i >= row.first && i < row.first + row.n) t.select(i);
    };

    /* The row above or below, of this track or the next, at the same time. */
    t.stepRow = function (direction) {
      const from = model.rows.indexOf(model.rowOf(view.selected)), row = model.rows[from + direction];
      if (row) t.select(nearest(row, (e.start[view.selected] + e.end[view.selected]) / 2));
    };

    function nearest(row, time) {
      const i = Math.min(model.firstAfter(row, time), row.first + row.n - 1);
      return i > row.first && time - e.end[i - 1] < e.start[i] - time ? i - 1 : i;
    }

    /* The next event of the track in time, over all of its rows. */
    t.stepTrack = function (direction) {
      const rows = model.tracks[view.track].rows, selected = view.selected;
      const now = selected >= 0 && model.rowOf(selected).t === view.track ? e.start[selected]
        : (direction > 0 ? view.from - 1 : view.to);
      const candidates = rows.map((row) => (direction > 0
        ? model.bisect(row.first, row.first + row.n, (i) => e.start[i] > now)
        : model.bisect(row.first, row.first + row.n, (i) => e.start[i] >= now) - 1))
        .filter((i, r) => i >= rows[r].first && i < rows[r].first + rows[r].n)
        .sort((a, b) => direction * (e.start[a] - e.start[b]));
      if (candidates.length) t.select(candidates[0]);
    };

    t.moveTrack = function (by) {
      let next = view.track + by;
      while (draw.plan.places[next] < 0) next += by;
      if (!model.tracks[next]) return;
      view.track = next;
      trackIntoSight(draw.plan.places[view.track]);
      const track = model.tracks[view.track], sums = model.countByKind(track);
      details.replaceChildren(el('span', null, 'Track ' + track.label + (model.processes > 1 ? ', process ' + track.pid : '') + ': ' +
        Object.entries(sums).map(([kind, n]) => P.kinds(n, kind)).join(', ')));
      t.redraw();
    };

    /* With nothing selected the event in the middle of the view; else the selected one is framed. */
    t.enter = function () {
      if (view.selected >= 0) t.frame();
      else t.select(nearest(model.tracks[view.track].rows[0], (view.from + view.to) / 2));
    };

    t.frame = function () {
      const i = view.selected;
      if (i < 0) {
        t.zoomToRange();
        return;
      }
      const pad = Math.max((e.end[i] - e.start[i]) * 0.6, 50);
      t.show(e.start[i] - pad, e.end[i] + pad);
    };

    t.follow = function () {
      const other = view.selected >= 0 ? model.other(view.selected) : -1;
      if (other >= 0) t.select(other);
    };

    t.click = function (at) {
      const hit = draw.hit(view, at.x, at.y);
      if (hit && hit.process !== undefined) {
        t.fold(hit.process);
        return;
      }
      if (hit && hit.t !== undefined) view.track = hit.t;
      t.select(hit && hit.i >= 0 ? hit.i : -1, true);
    };

    /* What is under the pointer, beside it. */
    t.point = function (at) {
      const hit = at && draw.hit(view, at.x, at.y);
      let words = null;
      if (hit && hit.i >= 0) {
        const event = model.event(hit.i);
        words = event.name.slice(0, 300) + '\n' + (event.duration < 0 ? 'no end seen' : f.duration(event.duration)) +
          (event.count > 1 ? ', ' + f.count(event.count) + ' merged' : ', ' + event.kind);
      } else if (hit && hit.line !== undefined) {
        words = hit.line.label + ' ' + P.lineWords(hit.line, model.placeIn(hit.line, draw.time(view, at.x)));
      }
      hint.hidden = !words;
      if (!words) return;
      hint.textContent = P.visible(words);
      const right = at.x > draw.width * 0.6;
      hint.style.left = right ? '' : at.x + 14 + 'px';
      hint.style.right = right ? draw.width - at.x + 10 + 'px' : '';
      hint.style.top = Math.max(0, Math.min(at.y + 16, draw.height - 44)) + 'px';
    };

    /* ---- range ---------------------------------------------------------------------------- */

    t.drawRange = function (from, to) {
      const inside = (time) => Math.min(Math.max(time, model.begin), model.end);
      view.range = { from: inside(Math.min(from, to)), to: inside(Math.max(from, to)) };
      t.redraw();
    };

    t.tellRange = function () {
      const words = view.range && P.describeRange(model, view.range, t);
      moved = true;
      ranged.hidden = !words;
      rangeTold.replaceChildren(...(words ? [words.told] : []));
      ranged.replaceChildren(rangeTold, ...(words ? words.parts : []));
      t.sums = words ? words.sums : null;
      t.redraw();
    };

    t.range = function (from, to) {
      t.drawRange(from, to);
      t.tellRange();
    };
    t.rangeOfView = () => t.range(view.from, view.to);
    t.rangeOfSelected = () => { if (view.selected >= 0) t.range(e.start[view.selected], e.end[view.selected]); };
    t.rangeEdge = function (edge) {
      const i = view.selected, range = view.range || { from: view.from, to: view.to };
      const time = i < 0 ? (view.from + view.to) / 2 : edge === 'from' ? e.start[i] : e.end[i];
      if (edge === 'from') t.range(time, Math.max(time, range.to)); else t.range(Math.min(time, range.from), time);
    };
    t.zoomToRange = () => { if (view.range) t.show(view.range.from, view.range.to); };
    t.clearRange = function () {
      view.range = null;
      t.tellRange();
      scroll.focus({ preventScroll: true });
    };
    t.clear = () => { if (view.range) t.clearRange(); else t.select(-1); };

    /* ---- search --------------------------------------------------------------------------- */

    t.search = function (text) {
      const result = text ? model.search(text) : { hit: null, found: [] };
      t.searched = text;
      view.hit = result.hit;
      matches = result.found;
      match = -1;
      moved = true;
      found.textContent = text ? (matches.length ? P.plural(matches.length, 'match', 'matches') : 'no match') : '';
      t.redraw();
    };

    t.nextMatch = function (direction) {
      if (!matches.length) return;
      match = match < 0 && direction < 0 ? matches.length - 1 : (match + direction + matches.length) % matches.length;
      found.textContent = f.count(match + 1) + ' of ' + P.plural(matches.length, 'match', 'matches');
      t.select(matches[match]);
    };
    t.focusSearch = () => search.focus();

    let typing = 0;
    const runSearch = () => {
      clearTimeout(typing);
      if (search.value.trim() !== (t.searched || '')) t.search(search.value.trim());
    };
    search.addEventListener('input', () => {
      clearTimeout(typing);
      typing = setTimeout(runSearch, model.n > 100000 ? 250 : 0);
    });
    search.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') {
        runSearch();
        t.nextMatch(event.shiftKey ? -1 : 1);
      } else if (event.key === 'Escape') {
        search.value = '';
        runSearch();
        scroll.focus();
      }
    });

    /* ---- the place of it all -------------------------------------------------------------- */

    scroll.addEventListener('scroll', () => {
      view.top = scroll.scrollTop;
      t.redraw();
    });

    function resize() {
      const width = scroll.clientWidth;
      if (!width) return;
      const all = draw.plan.height + draw.RULER, most = Math.max(240, Math.floor(window.innerHeight * 0.75));
      const height = Math.min(all, most);
      draw.resize(width, height);
      spacer.style.height = Math.max(0, all - height) + 'px';
      draw.draw(view);
      t.redraw();
    }

    const every = model.lines.map((line, k) => k), few = fewLines(model);
    const lines = el('button', { type: 'button', 'aria-pressed': 'false', title: 'Lines of all counters that were sampled',
      onclick: () => t.showLines(lines.getAttribute('aria-pressed') !== 'true') }, 'All counters');
    function arrange() {
      draw.layout(lines.getAttribute('aria-pressed') === 'true' ? every : few, folded);
      resize();
    }
    t.showLines = function (all) {
      lines.setAttribute('aria-pressed', String(all));
      arrange();
    };

    /* Of several processes one's tracks give their place to the others', and back. */
    t.fold = function (process) {
      if (model.processes < 2) return;
      if (!folded.delete(process)) folded.add(process);
      const track = model.tracks.find((one) => one.process === process);
      details.replaceChildren(el('span', null, 'Process ' + track.pid + (folded.has(process) ? ' folded' : ' unfolded')));
      arrange();
    };
    t.foldHere = () => t.fold(model.tracks[view.track].process);

    t.focus = function () {
      P.section('timeline').scrollIntoView();
      scroll.focus({ preventScroll: true });
    };

    const dialog = P.TimelineHelp(t);
    t.help = () => dialog.showModal();
    dialog.addEventListener('close', () => scroll.focus({ preventScroll: true }));
    const key = (colour, text) => el('span', { class: 'keyed' }, el('span', { class: 'legend', style: 'background:var(' + colour + ')' }), text);
    const button = (text, label, action) => el('button', { type: 'button', 'aria-label': label, title: label, onclick: action }, text);
    place.append(
      el('div', { class: 'tools' }, el('label', { for: 'timeline-search' }, 'Search'), search,
        button('\u25c2', 'Previous match', () => t.nextMatch(-1)), button('\u25b8', 'Next match', () => t.nextMatch(1)), found,
        button('+', 'Zoom in', () => t.zoom(0.6)), button('\u2212', 'Zoom out', () => t.zoom(1 / 0.6)),
        button('Everything', 'Show everything', t.everything), button('Event', 'Zoom to the selected event', t.frame),
        button('Range', 'Statistics of what is in view', t.rangeOfView), every.length > few.length ? lines : null,
        button('?', 'Keys', t.help)),
      el('div', { class: 'timeline-frame' }, scroll, hint), inView, details, ranged,
      el('p', { class: 'faint keys' }, 'Drag to move, Shift and drag for statistics of a range, Ctrl and wheel to zoom; with the timeline in focus ',
        el('kbd', null, '?'), ' lists the keys. ', key('--call', 'call'), key('--wait', 'wait, overhead'), key('--mark', 'mark, no end seen')), dialog);
    P.timelineKeys(scroll, t);
    P.timelineWheel(scroll, canvas, t);
    P.timelinePointers(canvas, t);
    new ResizeObserver(resize).observe(scroll);
    P.onRepaint(() => draw.draw(view));
    t.setSearch = (text) => {
      search.value = text;
      t.search(text);
    };
    t.select(-1);
    t.showLines(false);
    moved = false;
    return t;
  }

  /* ---- the section ------------------------------------------------------------------------ */

  function introduce(place, source) {
    const total = source.counts.reduce((a, b) => a + b, 0);
    const words = source.counts.map((n, k) => (n ? P.kinds(n, source.kinds[k]) : null)).filter(Boolean);
    place.append(el('p', { class: 'faint', id: 'timeline-counts' },
      total ? P.plural(total, 'event') + ': ' + words.join(', ') + '.' : 'No events.'));
    if (source.not_started)
      place.append(el('p', { class: 'faint' }, P.plural(source.not_started, 'event') +
        ' never seen to start, so without a place here.'));
    if (source.merge_ns)
      place.append(el('p', { class: 'warning', id: 'timeline-merged' }, 'Too many events for one page: neighbours that fit within ' +
        f.duration(source.merge_ns) + ' are drawn as one block, so that ' + f.count(total - source.not_started) + ' events are ' +
        f.count(source.shown) + ' blocks; their counts and times are kept. Every single event: a part of the run ' +
        '(--from, --to, --nvtx), or perfkit report FILE --chrome-trace OUT.'));
    return total - source.not_started;
  }

  P.timeline = async function () {
    const source = P.data.timeline, place = P.section('timeline');
    if (!introduce(place, source)) {
      P.timelineStarted(null);
      return;
    }
    if (!P.unpacks()) {
      P.timelineStarted(null);
      place.append(el('p', { class: 'bad', id: 'timeline-missing' }, 'This browser cannot unpack the events (DecompressionStream is ' +
        'missing): Chromium or Edge 80, Firefox 113, Safari 16.4 and later can. The tables are complete without it.'));
      return;
    }
    const wait = el('p', { class: 'faint' }, 'Unpacking the events\u2026'), text = P.section('events');
    place.append(wait);
    await new Promise((resolve) => { setTimeout(resolve, 0); }); /* the rest of the page first */
    try {
      const model = P.Model(source, await P.unpack(text.textContent));
      text.remove(); /* its megabytes */
      P.timelineView = Timeline(place, model);
    } finally {
      wait.remove();
      P.timelineStarted(P.timelineView || null);
    }
    P.timelineFollow(P.timelineView);
    performance.mark('perfkit-timeline');
  };
})(window.perfkit);
