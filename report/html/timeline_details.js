/* The words below the timeline: the event that is selected, and what lies within a range. */
(function (P) {
  'use strict';
  const el = P.el, f = P.format;
  const NAMES = 25, SHOWN_CALLERS = 4;

  const WORDS = { copy: 'memcpy', fill: 'memset', call: 'API call', wait: 'synchronization', range: 'NVTX range', mark: 'NVTX mark', overhead: 'overhead span', running: 'CPU sample', blocked: 'blocked span', preempted: 'preempted span', projected: 'projected NVTX range' };
  P.kindWord = (kind) => WORDS[kind] || kind;
  P.kinds = (n, kind) => P.plural(n, P.kindWord(kind));

  /* For people, and exactly where that says more. */
  function lasting(ns) {
    return f.duration(ns) + (ns >= 1000 ? ' (' + f.count(ns) + ' ns)' : '');
  }

  function launch(model, extra) {
    const c = model.configs[extra], three = (v) => v.map((n) => (n === null ? '?' : n)).join('\u00d7');
    if (!c) return [];
    const parts = ['grid ' + three(c.slice(0, 3)), 'block ' + three(c.slice(3, 6))];
    if (c[6] !== null) parts.push(c[6] + ' registers');
    if (c[7] || c[8]) parts.push(f.bytes((c[7] || 0) + (c[8] || 0)) + ' shared memory');
    return parts;
  }

  /* What the event's kind has to say, of an event that is not merged. */
  function particulars(model, e) {
    switch (e.kind) {
      case 'kernel': return e.extra ? launch(model, e.extra) : [];
      case 'copy': case 'fill':
        return e.extra < 0 ? [] : [f.bytes(e.extra)].concat(e.duration > 0 ? f.rate((e.extra * 1e9) / e.duration) : []);
      case 'call': case 'wait': return e.extra ? ['failed, error ' + e.extra] : [];
      case 'range': case 'mark':
        return (e.extra > 1 ? ['domain ' + model.domain(e.extra)] : []).concat(e.extra % 2 ? ['still open at the end of the capture'] : []);
      default: return [];
    }
  }

  /* {name, text} of event i. */
  P.describe = function (model, i) {
    const e = model.event(i), other = model.other(i), run = model.runs[model.runOf(e.track)];
    const parts = [P.kindWord(e.kind)];
    if (e.count > 1) parts[0] = P.plural(e.count, 'event') + ' merged, busy for ' + f.duration(e.busy) + ', longest named';
    parts.push(e.duration < 0 ? 'no end seen' : lasting(e.duration), 'from ' + P.moment(e.start - run.offset, 1) + (e.track.run ? ' of ' + P.runs[e.track.run].the : ''));
    if (e.count === 1) parts.push(...particulars(model, e));
    if (other >= 0) {
      const o = model.event(other), device = e.track.lane === 'stream' ? e : o, call = device === e ? o : e;
      parts.push((device === e ? 'launched by ' : 'launches ') + P.short(o.name).slice(0, 200) +
        ', launch latency ' + f.duration(device.start - call.start));
    }
    parts.push(e.track.label + (model.processes > 1 ? ', process ' + e.track.pid : ''));
    return { name: e.name, text: parts.join(' \u00b7 ') };
  };

  const baseName = (path) => path.slice(path.lastIndexOf('/') + 1);

  function placeText(frame) {
    if (frame.file) return baseName(frame.file) + (frame.line === null ? '' : ':' + frame.line);
    return frame.module ? baseName(frame.module) : '';
  }

  /* The host's stack of event i as an element, or null: the lines of the program itself at once, all of it
   * unfolded. */
  P.describeStack = function (model, i) {
    const frames = model.stack(i);
    if (!frames.length) return null;
    const nearest = Math.min(...frames.map((frame) => frame.nearness));
    const own = frames.filter((frame) => frame.nearness === nearest);
    const words = (frame) => {
      const place = placeText(frame);
      return frame.name + (place && !frame.name.startsWith(place + '+') ? ' (' + place + ')' : '');
    };
    return el('details', { id: 'timeline-stack' },
      el('summary', null, model.trackOf(i).lane === 'samples' ? 'in ' : 'called from ', el('span', { class: 'mono' }, own.slice(0, SHOWN_CALLERS).map(words).join(' < ') +
        (own.length > SHOWN_CALLERS ? ' < \u2026' : ''))),
      el('ol', { class: 'frames mono' }, ...frames.map((frame) =>
        el('li', { class: frame.nearness === nearest ? 'own' : 'faint',
          title: [frame.file && frame.file + (frame.line === null ? '' : ':' + frame.line), frame.module].filter(Boolean).join('\n') },
        words(frame)))));
  };

  /* The elements that tell a range: sums by device and kind, then the names, most time first. */
  P.describeRange = function (model, range, act) {
    const w = P.within(model, range.from, range.to), span = w.to - w.from;
    const share = (ns) => f.percent(w.recorded > 0 ? Math.min(1, ns / w.recorded) : NaN);
    const words = w.devices.map((d) => d.label + ' busy ' + f.duration(d.union) + ', ' + share(d.union))
      .concat(w.kinds.map((k) => P.kinds(k.count, k.kind) + ' ' + f.duration(k.ns)));
    const lines = model.lines.map((line) => [line, P.lineWithin(model, line, w.from, w.to)]).filter(([, l]) => !Number.isNaN(l.mean))
      .map(([line, l]) => line.label + ' ' + P.lineValue(line, l.mean) + ' (mean), at most ' + P.lineValue(line, l.most));
    const count = w.kinds.reduce((n, k) => n + k.count, 0);
    const head = ['Name', 'Kind', 'Count', 'Sum', 'Busy', 'Share of range', 'Average'].map((title, k) =>
      el('th', { scope: 'col', class: 'plain' + (k < 2 ? ' left' : '') }, title));
    const rows = w.names.slice(0, NAMES).map((n) => el('tr', null,
      el('td', { class: 'left' }, el('button', { type: 'button', class: 'place mono', title: 'Go to the longest',
        onclick: () => act.select(n.longest) }, P.short(n.name).length > 160 ? P.short(n.name).slice(0, 159) + '\u2026' : P.short(n.name))),
      el('td', { class: 'left' }, P.kindWord(n.kind)), el('td', null, f.count(n.count)), el('td', null, f.duration(n.ns)),
      el('td', null, f.duration(n.union)), el('td', null, share(n.union)),
      el('td', null, f.duration(n.count ? n.ns / n.count : null))));
    const button = (text, action) => el('button', { type: 'button', onclick: action }, text);
    return { sums: w, told: el('p', { id: 'timeline-range-told' }, el('b', null, f.duration(span) + ' selected'), w.missing > 0 ? ' (' + f.duration(w.missing) + ' not recorded)' : '',
      ', from ' + P.moment(w.from, span / 1000) + ' to ' + P.moment(w.to, span / 1000) + ': ' +
      (count ? P.plural(count, 'event') + '; ' + words.join(' \u00b7 ') : 'nothing ran') + '.' +
      (model.merge && count ? ' Of merged blocks the time is theirs in all, cut in proportion.' : '')),
    parts: (lines.length ? [el('p', { class: 'faint', id: 'timeline-range-lines' }, lines.join(' \u00b7 '))] : [])
      .concat([el('div', { class: 'tools' }, button('Zoom to range', act.zoomToRange), button('Close', act.clearRange))])
      .concat(rows.length ? [el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Names in the range' },
        el('table', { id: 'timeline-range-names' }, el('thead', null, el('tr', null, ...head)), el('tbody', null, ...rows)))] : [])
      .concat(w.names.length > NAMES ? [el('p', { class: 'faint' }, P.plural(w.names.length - NAMES, 'more name'))] : []) };
  };
})(window.perfkit);
