/* Places of the timeline, told from outside: by other sections through window.perfkit_timeline, by links,
 * by the address.
 *
 *     perfkit_timeline.show({start, end, stream, thread, process, device, name})
 *         frames [start, end) (ns since the capture's begin), scrolls there and takes the focus; what
 *         else is given (ids of the capture; device: the physical one) chooses the track and the event
 *         that is selected; a time at which none begins becomes the range. May be called before the
 *         events are unpacked. Returns a promise.
 *     perfkit_timeline.ready        a promise of the timeline itself, null without events
 *
 * <a href="#t=START,END" data-stream="ID" data-thread="ID"> does the same without script of its own. The
 * address always holds the view: #t=FROM,TO, &e=EVENT selected, &r=FROM,TO of the range, &q=SEARCH. */
(function (P) {
  'use strict';

  /* The event that a place means: of the tracks that fit, the one that starts nearest. */
  function eventOf(model, at) {
    const e = model.events, ids = ['stream', 'thread', 'process', 'device'].filter((key) => at[key]);
    let best = -1;
    const fits = (track) => ids.every((key) => (key === 'stream' && at.thread || key === 'thread' && at.stream
      ? (track.lane === 'stream' ? track.stream === at.stream : track.thread === at.thread) : track[key] === at[key]));
    model.rows.filter((row) => fits(model.tracks[row.t])).forEach((row) => {
      const near = model.bisect(row.first, row.first + row.n, (i) => e.start[i] >= at.start);
      for (let i = Math.max(row.first, near - 1); i < Math.min(row.first + row.n, near + 2); i++) {
        if (at.name && model.names[e.name[i]] !== at.name) continue;
        if (best < 0 || Math.abs(e.start[i] - at.start) < Math.abs(e.start[best] - at.start)) best = i;
      }
    });
    return best;
  }

  function goTo(timeline, at) {
    const end = Math.max(at.end === undefined ? at.start : at.end, at.start);
    const pad = Math.max((end - at.start) * 0.6, 200);
    const i = at.stream || at.thread || at.name ? eventOf(timeline.model, at) : -1;
    timeline.show(at.start - pad, end + pad);
    if (i >= 0 && Math.abs(timeline.model.events.start[i] - at.start) < 1) timeline.select(i);
    else if (end > at.start) timeline.range(at.start, end); /* a time without an event of its own: idle */
    timeline.focus();
  }

  /* The address: read when it changes, written when the view stands still. */
  P.hash = {
    read: (timeline) => {
      const part = (key) => (location.hash.match(new RegExp('[#&]' + key + '=([^&]*)')) || [])[1];
      const pair = (text) => (/^-?\d+(\.\d+)?,-?\d+(\.\d+)?$/.test(text || '') ? text.split(',').map(Number) : null);
      const seen = pair(part('t')), range = pair(part('r')), selected = part('e'), text = part('q');
      if (!seen) return false;
      if (text) {
        try {
          timeline.setSearch(decodeURIComponent(text));
        } catch (error) { /* not an address of ours */ }
      }
      if (/^\d+$/.test(selected || '') && Number(selected) < timeline.model.n) timeline.select(Number(selected), true);
      if (range) timeline.range(range[0], range[1]);
      timeline.show(seen[0], seen[1]);
      return true;
    },
    write: (timeline) => {
      const view = timeline.view, pair = (a, b) => Math.round(a) + ',' + Math.round(b);
      const parts = ['t=' + pair(view.from, view.to)];
      if (view.selected >= 0) parts.push('e=' + view.selected);
      if (view.range) parts.push('r=' + pair(view.range.from, view.range.to));
      if (timeline.searched) parts.push('q=' + encodeURIComponent(timeline.searched));
      history.replaceState(null, '', '#' + parts.join('&'));
    },
  };

  /* From now on links and the address lead into this timeline. */
  P.timelineFollow = function (timeline) {
    window.addEventListener('hashchange', () => { if (P.hash.read(timeline)) timeline.focus(); });
    document.addEventListener('click', (event) => {
      const link = event.target instanceof Element && event.target.closest('a[href^="#t="]');
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      const [start, end] = link.getAttribute('href').slice(3).split(',').map(Number);
      if (!Number.isFinite(start) || !Number.isFinite(end)) return;
      event.preventDefault();
      const at = { start, end };
      ['stream', 'thread', 'process', 'device'].forEach((key) => { at[key] = Number(link.dataset[key]) || undefined; });
      goTo(timeline, at);
    });
    if (P.hash.read(timeline)) P.section('timeline').scrollIntoView();
  };

  /* P.timelineStarted: told once, with the timeline or null. */
  const ready = new Promise((resolve) => { P.timelineStarted = resolve; });
  window.perfkit_timeline = { ready, show: async (at) => {
    const timeline = await ready;
    if (timeline) goTo(timeline, at);
  } };
})(window.perfkit);
