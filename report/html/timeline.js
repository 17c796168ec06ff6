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
    const button = (text, label, action) => el('button', { type: 'button', 'aria-label': label, title: label, onclick: action }, text);
    const view = { from: model.begin, to: model.end, top: 0, selected: -1, track: 0, marks: null, range: null };
    const rows = P.TimelineRows(model, () => arrange());
    let match = -1, pending = false, statistics = 0, moved = false;
    const t = { view, model, draw };
    const map = P.TimelineMap(model, t), events = P.TimelineEvents(model, t), iterations = P.Iterations(t);
    const marksOnly = [button('\u25c2', 'Previous match or instance', () => t.nextMatch(-1)), button('\u25b8', 'Next match or instance', () => t.nextMatch(1)),
      button('Longest', 'The longest match or instance', () => t.longestMatch()), button('All', 'All matches or instances in view', () => t.allMatches()),
      button('\u2715', 'Clear the marks', () => t.setSearch(''))];

    /* A frame may be late (a busy machine, a hidden tab): what is in view is told after it. */
    t.redraw = function () {
      clearTimeout(statistics);
      if (pending) return;
      pending = true;
      requestAnimationFrame(() => {
        pending = false;
        draw.draw(view);
        map.draw();
        statistics = setTimeout(settle, 150);
      });
    };

    /* Once the view stands still: what is in it, in words and in the address. */
    function settle() {
      const w = P.within(model, view.from, view.to, true);
      const words = (of) => of.kinds.map((k) => P.kinds(k.count, k.kind) + ' (' + f.duration(k.ns) + ')')
        .concat(of.devices.map((d) => d.label + ' busy ' + f.percent(of.recorded > 0 ? Math.min(1, d.union / of.recorded) : NaN))).join(', ') || 'nothing';
      inView.textContent = 'In view, ' + f.duration(w.to - w.from) + (w.missing > 0 ? ', ' + f.duration(w.missing) + ' of it not recorded: ' : ': ')
        + words(w) + '.';
      P.runs.slice(1).forEach((run, k) => { inView.textContent += ' ' + run.title + ': ' + words(P.within(model, view.from, view.to, true, k + 1)) + '.'; });
      if (rows.findEmpty(view, draw.plan.withEmpty + draw.RULER > roomFor())) arrange();
      if (rows.empty.size) inView.textContent += ' ' + P.plural(rows.empty.size, 'row') + ' without events here folded.';
      events.refresh();
      iterations.draw();
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
    /* Moves capture `k`: its moment `theirs` is at `ours` of the candidate. */
    t.align = function (k, ours, theirs) {
      if (!model.runs[k] || ours - theirs === model.runs[k].offset) return;
      model.align(k, ours - theirs);
      map.renew();
      t.redraw();
    };

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

    function trackIntoSight(y, t) {
      const seen = draw.height - draw.RULER;
      if (draw.plan.pinned.has(t)) return;
      if (y < view.top + draw.plan.pinnedHeight || y + draw.highOf(t) > view.top + seen) scroll.scrollTop = Math.max(0, y - seen / 2);
    }

    function intoSight(i) {
      const row = model.rowOf(i), span = view.to - view.from;
      if (e.end[i] < view.from + span * 0.02 || e.start[i] > view.to - span * 0.02)
        t.show(e.start[i] - span / 2, e.start[i] + span / 2);
      trackIntoSight(draw.yOf(row), row.t);
    }

    /* ---- the selected event --------------------------------------------------------------- */

    let unfolded = false;
    t.select = function (i, silent) {
      view.selected = i;
      moved = true;
      details.replaceChildren();
      if (i >= 0) {
        const words = P.describe(model, i);
        view.track = model.rowOf(i).t;
        if (rows.reveal(view.track)) arrange();
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
      const shown = draw.plan.order.flatMap((track) => model.tracks[track].rows), row = shown[shown.indexOf(model.rowOf(view.selected)) + direction];
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
      const order = draw.plan.order, next = order[order.indexOf(view.track) + by];
      if (next === undefined) return;
      view.track = next;
      trackIntoSight(draw.plan.places[view.track], view.track);
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
      if (hit && hit.label !== undefined) {
        view.track = hit.label;
        rows.flipLow(hit.label);
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
          (event.count > 1 ? ', ' + f.count(event.count) + ' merged' : ', ' + P.kindWord(event.kind));
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
    t.clear = () => {
      if (view.range) t.clearRange();
      else if (view.selected >= 0) t.select(-1);
      else if (view.marks) t.setSearch('');
      else if (place.classList.contains('full')) t.fill();
    };

    /* ---- marked events: what a search found, or the instances of a row of a table -------------- */

    let each; /* what is marked: one, many */
    const tellMarks = () => {
      const n = view.marks ? view.marks.found.length : 0, [one, many] = t.marked ? each : ['match', 'matches'];
      found.textContent = !view.marks ? '' : (t.marked ? P.short(t.marked).slice(0, 60) + ': ' : '') +
        (n ? (match < 0 ? '' : f.count(match + 1) + ' of ') + P.plural(n, one, many) : 'no ' + one);
      marksOnly.forEach((button) => { button.hidden = !n; });
    };

    function mark(name, picked, words) {
      view.marks = picked;
      t.marked = name;
      each = words || ['instance', 'instances'];
      match = -1;
      moved = true;
      tellMarks();
      t.redraw();
    }

    t.search = function (text) {
      t.searched = text;
      mark('', text ? model.search(text) : null);
    };

    /* Wide enough to be seen, with what is around it. */
    function toMatch(k) {
      const i = view.marks.found[k], lasts = e.end[i] - e.start[i], span = view.to - view.from;
      const pixels = (lasts * (draw.width - draw.gutter)) / span;
      match = k;
      tellMarks();
      if (pixels < 8 || lasts > span) {
        const wide = Math.min(span, Math.max(lasts * 20, 2000));
        t.show((e.start[i] + e.end[i] - Math.max(wide, lasts * 1.2)) / 2, (e.start[i] + e.end[i] + Math.max(wide, lasts * 1.2)) / 2);
      }
      t.select(i);
    }

    t.nextMatch = function (direction) {
      const n = view.marks ? view.marks.found.length : 0;
      if (n) toMatch(match < 0 && direction < 0 ? n - 1 : (match + direction + n) % n);
    };

    t.longestMatch = function () {
      const all = view.marks ? view.marks.found : [];
      if (all.length) toMatch(all.reduce((best, i, k) => (e.end[i] - e.start[i] > e.end[all[best]] - e.start[all[best]] ? k : best), 0));
    };

    t.allMatches = function () {
      const all = view.marks ? view.marks.found : [];
      if (!all.length) return;
      const from = e.start[all[0]], to = all.reduce((end, i) => Math.max(end, e.end[i]), 0), pad = (to - from) * 0.02 + 100;
      t.show(from - pad, to + pad);
    };

    /* Marks them, what they are in one and in many, and goes to the longest. */
    t.instances = function (name, picked, words) {
      search.value = t.searched = '';
      mark(name, picked, words);
      t.longestMatch();
      t.focus();
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

    const roomFor = () => Math.floor(Math.max(240, place.classList.contains('full')
      ? window.innerHeight - (scroll.getBoundingClientRect().top - place.getBoundingClientRect().top) - 150 : window.innerHeight * 0.75));
    function resize() {
      const width = scroll.clientWidth;
      if (!width) return;
      const all = draw.plan.height + draw.RULER;
      /* Under the pointer it becomes lower only when that has left: else a wheel that zooms would be over something else. */
      const height = Math.min(scroll.matches(':hover') ? Math.max(all, draw.height || 0) : all, roomFor());
      draw.resize(width, height);
      scroll.style.setProperty('--room', height + 'px');
      spacer.style.height = Math.max(0, all - height) + 'px';
      draw.draw(view);
      map.resize(width);
      t.redraw();
    }

    const every = model.lines.map((line, k) => k), few = fewLines(model);
    const lines = el('button', { type: 'button', 'aria-pressed': 'false', title: 'Lines of all counters that were sampled',
      onclick: () => t.showLines(lines.getAttribute('aria-pressed') !== 'true') }, 'All counters');
    scroll.addEventListener('pointerleave', resize);
    function arrange() {
      rows.lines = lines.getAttribute('aria-pressed') === 'true' ? every : few;
      draw.layout(rows);
      rows.refresh();
      resize();
    }
    t.showLines = function (all) {
      lines.setAttribute('aria-pressed', String(all));
      arrange();
    };

    /* Of several processes one's tracks give their place to the others', and back. */
    t.fold = function (process) {
      if (model.processes < 2) return;
      if (!rows.folded.delete(process)) rows.folded.add(process);
      const track = model.tracks.find((one) => one.process === process);
      details.replaceChildren(el('span', null, 'Process ' + track.pid + (rows.folded.has(process) ? ' folded' : ' unfolded')));
      arrange();
    };
    t.foldHere = () => { if (model.processes > 1) t.fold(model.tracks[view.track].process); else rows.flipLow(view.track); };
    t.heighten = (by) => rows.stepHeight(view.track, by);
    t.drag = rows.setHeight;
    t.hideHere = () => {
      rows.flipHidden(view.track);
      details.replaceChildren(el('span', null, 'Track ' + model.tracks[view.track].label + ' hidden'));
    };
    t.pinHere = () => {
      rows.flipPinned(view.track);
      details.replaceChildren(el('span', null, 'Track ' + model.tracks[view.track].label + (rows.pinned.has(view.track) ? ' pinned' : ' no longer pinned')));
    };
    t.showRows = rows.showAll;
    t.fill = function () {
      document.body.classList.toggle('filled', place.classList.toggle('full'));
      arrange();
      t.focus();
    };

    t.focus = function () {
      P.section('timeline').scrollIntoView();
      scroll.focus({ preventScroll: true });
    };

    const dialog = P.TimelineHelp(t);
    t.help = () => dialog.showModal();
    dialog.addEventListener('close', () => scroll.focus({ preventScroll: true }));
    const key = (family, text) => el('span', { class: 'keyed' }, el('span', { class: 'legend', style: 'background:var(--' + family + ')' }), text);
    /* Kinds have a family each, but for memcpys, whose names say which. */
    const seen = new Set(model.kinds.filter((kind, k) => P.data.timeline.counts[k] && kind !== 'copy').map((kind) => (kind === 'kernel' ? kind : P.family(kind, ''))));
    if (P.data.timeline.counts[model.kinds.indexOf('copy')])
      new Set(model.pick((i) => model.kindOf(i) === 'copy').found.map((i) => e.name[i])).forEach((name) => seen.add(P.family('copy', model.names[name])));
    place.append(iterations.place || '',
      el('div', { class: 'tools' }, el('label', { for: 'timeline-search' }, 'Search'), search,
        ...marksOnly, found,
        button('+', 'Zoom in', () => t.zoom(0.6)), button('\u2212', 'Zoom out', () => t.zoom(1 / 0.6)),
        button('Everything', 'Show everything', t.everything), button('Event', 'Zoom to the selected event', t.frame),
        button('Range', 'Statistics of what is in view', t.rangeOfView), every.length > few.length ? lines : null,
        button('Fill window', 'Fill the window, and back (E)', t.fill), button('?', 'Keys', t.help)),
      map.canvas, el('div', { class: 'timeline-frame' }, scroll, hint),
      el('p', { class: 'faint legend-line' }, ...Object.entries(P.FAMILIES).filter(([family]) => seen.has(family)).map(([family, text]) => key(family, text)),
        ...(model.unrecorded.length ? [key('grid', 'not recorded')] : [])),
      inView, details, ranged, rows.panel(), events.place,
      el('p', { class: 'faint keys' }, 'Drag to move, Shift and drag for statistics of a range, Ctrl and wheel to zoom; with the timeline in focus ',
        el('kbd', null, '?'), ' lists the keys.'), dialog);
    P.timelineKeys(scroll, t);
    P.timelineWheel(scroll, canvas, t);
    P.timelinePointers(canvas, t);
    new ResizeObserver(resize).observe(scroll);
    P.onRepaint(() => draw.draw(view));
    t.setSearch = (text) => {
      search.value = text;
      t.search(text);
    };
    tellMarks();
    iterations.alignFirst();
    view.from = model.begin;
    view.to = model.end;
    t.showLines(false);
    t.select(-1);
    moved = false;
    return t;
  }

  /* ---- the section ------------------------------------------------------------------------ */

  const totalOf = (source) => source.counts.reduce((a, b) => a + b, 0);
  function countWords(source) {
    const words = source.counts.map((n, k) => (n ? P.kinds(n, source.kinds[k]) : null)).filter(Boolean);
    return totalOf(source) ? P.plural(totalOf(source), 'event') + ': ' + words.join(', ') + '.' : 'No events.';
  }

  function introduce(place, source) {
    const total = totalOf(source), others = P.data.others;
    place.append(el('p', { class: 'faint', id: 'timeline-counts' }, (others.length ? 'Candidate: ' : '') + countWords(source) +
      others.map((run) => ' ' + run.title + ': ' + countWords(run.timeline)).join('')));
    others.filter((run) => run.timeline.merge_ns).forEach((run) => place.append(el('p', { class: 'warning' }, run.title + ': neighbours that fit within ' +
      f.duration(run.timeline.merge_ns) + ' are drawn as one block.')));
    if (source.not_started)
      place.append(el('p', { class: 'faint' }, P.plural(source.not_started, 'event') +
        ' never seen to start, so without a place here.'));
    if (source.not_projected && source.counts[source.kinds.indexOf('range')])
      place.append(el('p', { class: 'faint' }, 'NVTX ranges are not shown on the device: there are too many, or too many at once.'));
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
    const wait = el('p', { class: 'faint' }, 'Unpacking the events\u2026'), text = P.section('events-0');
    place.append(wait);
    await new Promise((resolve) => { setTimeout(resolve, 0); }); /* the rest of the page first */
    try {
      let run = P.readTimeline(source, await P.unpack(text.textContent));
      text.remove(); /* its megabytes */
      for (let k = 1; k < P.runs.length; k++) {
        const other = P.section('events-' + k);
        run = P.joinTimelines(run, P.readTimeline(P.runs[k].timeline, await P.unpack(other.textContent)), k);
        other.remove();
      }
      P.timelineView = Timeline(place, P.Model(run));
    } finally {
      wait.remove();
      P.timelineStarted(P.timelineView || null);
    }
    P.timelineFollow(P.timelineView);
    performance.mark('perfkit-timeline');
  };
})(window.perfkit);
