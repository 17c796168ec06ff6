/* Places of the timeline, told from outside: by other sections through window.perfkit_timeline, by links,
 * by the address.
 *
 *     perfkit_timeline.show({start, end, stream, thread, process, device, name})
 *         frames [start, end) (ns since the capture's begin), scrolls there and takes the focus; what
 *         else is given (ids of the capture; device: the physical one) chooses the track and the event
 *         that is selected; a time at which none begins becomes the range. May be called before the
 *         events are unpacked. Returns a promise.
 *     perfkit_timeline.mark(what)   marks the events that are instances of `what` (pickInstances) and goes to the longest
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
      ? (track.lane === 'stream' ? track.stream === at.stream : track.thread === at.thread) : track[key] === at[key])) && track.lane !== 'samples';
    model.ownRows.filter((row) => fits(model.tracks[row.t])).forEach((row) => {
      const near = model.bisect(row.first, row.first + row.n, (i) => e.start[i] >= at.start);
      for (let i = Math.max(row.first, near - 1); i < Math.min(row.first + row.n, near + 2); i++) {
        if (at.name && model.names[e.name[i]] !== at.name) continue;
        if (best < 0 || Math.abs(e.start[i] - at.start) < Math.abs(e.start[best] - at.start)) best = i;
      }
    });
    return best;
  }

  /* Whether the call of an event was made inside a range of this name, on the same thread. */
  function insideRange(model, name, of) {
    const e = model.events, spans = new Map(), threadOf = (i) => model.trackOf(i).process + ' ' + model.trackOf(i).thread;
    const { found } = model.pick((i) => model.kindOf(i) === 'range' && model.names[e.name[i]] === name, of);
    found.forEach((i) => {
      const thread = threadOf(i);
      if (!spans.has(thread)) spans.set(thread, []);
      spans.get(thread).push(i);
    });
    return (i) => {
      const call = model.trackOf(i).lane === 'stream' ? model.other(i) : i, list = call < 0 ? null : spans.get(threadOf(call));
      if (!list) return false;
      const after = model.bisect(0, list.length, (k) => e.start[list[k]] > e.start[call]);
      return list.slice(Math.max(0, after - 8), after).some((range) => e.end[range] >= e.start[call]);
    };
  }

  /* The events that are instances of `at`: of these kinds, of this name (or other), whose name begins with the word `prefix`,
   * of this NVTX domain, of so many bytes [low, high), with this shape of grid and block, whose name is `like` that, on this device, stream or thread, of this process, launched by this call,
   * within ranges of these names, called from these functions, from the line `place`; of: those of this capture, or 'all'. What is not given is not asked. */
  function pickInstances(model, at) {
    const e = model.events, wanted = [at.name, at.other].map((name) => (name === '' ? '(empty)' : name));
    const named = model.names.map((name) => ('prefix' in at ? (name + ' ').startsWith(at.prefix + ' ') : !('name' in at) || wanted.includes(name)));
    const kinds = model.kinds.map((kind) => !at.kinds || at.kinds.includes(kind)), stacks = new Map();
    const tests = (at.within || []).map((name) => insideRange(model, name, at.of));
    ['device', 'stream', 'thread', 'pid'].filter((key) => key in at).forEach((key) => tests.push((i) => model.trackOf(i)[key] === at[key]));
    if (at.like) {
      const alike = model.names.map((name) => at.like.test(name));
      tests.push((i) => alike[e.name[i]]);
    }
    if (at.bytes) tests.push((i) => e.extra[i] >= at.bytes[0] && (P.unknown(at.bytes[1]) || e.extra[i] < at.bytes[1]));
    if (at.shape) tests.push((i) => (model.configs[e.extra[i]] || []).slice(0, 6).join() === at.shape.join());
    if ('domain' in at) tests.push((i) => model.domain(e.extra[i]) === at.domain);
    if ('call' in at) tests.push((i) => model.other(i) >= 0 && model.names[e.name[model.other(i)]] === at.call);
    if (/:\d+\)$/.test(at.place || '')) {
      tests.push((i) => model.stack(i).some((frame) => frame.name + ' (' + (frame.file || '').replace(/.*\//, '') + ':' + frame.line + ')' === at.place));
    }
    if (at.frames) {
      tests.push((i) => {
        const key = e.stack ? e.stack[i] || (e.other[i] ? e.stack[e.other[i] - 1] : 0) : 0;
        if (!stacks.has(key)) {
          const names = new Set(model.stack(i).map((frame) => frame.name));
          stacks.set(key, at.frames.every((name) => names.has(name)));
        }
        return stacks.get(key);
      });
    }
    return model.pick((i) => kinds[e.kind[i]] && named[e.name[i]] && tests.every((test) => test(i)), at.of);
  }

  /* A call path: frames, ranges, the call that allocated; a framework's block has no call, and is where its innermost range is. So the
   * search marks calls or ranges (`each`); one of them may have made many of the blocks that the table counts. It looks only for
   * what is on the timeline: names of C++ hold the sign between two parts, too. */
  function resolvePath(model, at) {
    const e = model.events, known = { range: new Set(), call: new Set() };
    for (let i = 0; i < e.n; i++) {
      const kind = model.kindOf(i), names = kind === 'range' ? known.range : CALLS.includes(kind) ? known.call : null;
      if (names) names.add(model.names[e.name[i]]);
    }
    const path = at.path.slice(), call = known.call.has(path[path.length - 1]) ? path.pop() : null, within = path.filter((part) => known.range.has(part));
    if (call) return Object.assign({}, at, { kinds: CALLS, name: call, within, each: ['call', 'calls'] });
    return Object.assign({}, at, { kinds: ['range'], name: within.pop(), within, place: null, each: ['range', 'ranges'] });
  }

  const DEVICE = ['kernel', 'copy', 'fill'], CALLS = ['call', 'wait'], SAMPLES = ['running', 'blocked', 'preempted'];
  const kernel = (at) => ({ kinds: ['kernel'], name: at('name'), other: at('full_name') });
  const call = (at) => ({ kinds: CALLS, name: at('name') });
  const wait = (at) => ({ kinds: CALLS, name: at('name') || at('kind') });
  const range = (at) => Object.assign({ kinds: ['range', 'mark'], name: at('name') }, at('domain') === undefined ? {} : { domain: at('domain') || '' });
  const overhead = (at) => ({ kinds: ['overhead'], name: at('name') });
  const site = (at) => ({ path: (at('path') || '').split(' > '), place: at('name') });
  /* "train/step": ranges step within ranges train. */
  const phase = (at) => {
    const path = (at('name') || '').split('/');
    return { kinds: ['range'], name: path.pop(), within: path };
  };
  const prediction = (at) => (at('phase') ? phase(() => at('phase')) : at('subject') ? { kinds: ['kernel'], name: at('subject') } : { kinds: DEVICE });
  const onDevice = (at) => ({ kinds: DEVICE, device: at('device') });

  /* The kernels of a collective by their names: ncclDevKernel_AllReduce_Sum_f32_RING_LL. */
  const collective = (at) => ({ kinds: ['kernel'], like: new RegExp('ccl\\w*_' + (at('name') || '').replace(/_/g, '_?') + '(_|\\b)', 'i') });
  const ofRank = (at) => Object.assign({ kinds: DEVICE, pid: at('pid') }, at('name') ? { prefix: at('name') } : {});

  /* What the rows of a table are on the timeline; of tables that are not here a moment leads there, or nothing. */
  const TABLES = {
    kernels: kernel, roofline: kernel, stalls: kernel, stall_lines: kernel, stall_code: kernel, api: call, waits: wait, ranges: range, roofline_ranges: range, overhead, jit: overhead,
    pytorch: range, iteration_series: phase, predictions: prediction, held: site, kept: site, brief: site, counters: kernel, exact_counts: kernel, collectives: collective, ranks: ofRank, rank_differences: ofRank, contexts: (at) => ({ kinds: DEVICE, pid: at('pid') }), devices: onDevice, states: onDevice,
    roofline_configs: (at) => Object.assign(kernel(at), { shape: ['grid_x', 'grid_y', 'grid_z', 'block_x', 'block_y', 'block_z'].map(at) }),
    transfers: (at) => ({ kinds: ['copy', 'fill'], name: [at('name'), at('source'), at('target')].filter((word) => word && word !== 'device').join(' ') }),
    transfer_sizes: (at) => ({ kinds: ['copy', 'fill'], prefix: at('kind'), bytes: [at('low_bytes'), at('high_bytes')] }),
    graphs: () => ({ kinds: ['kernel'], name: 'CUDA graph' }),
    lines: (at) => ({ kinds: DEVICE, frames: [at('function')] }), host: (at) => ({ kinds: SAMPLES, frames: [at('name')] }),
    host_threads: (at) => ({ thread: at('id') }), threads: (at) => ({ thread: at('id') }), streams: (at) => ({ kinds: DEVICE, stream: at('id') }),
    processes: (at) => ({ pid: at('pid') }),
  };

  /* Marks the instances of a row of the table of this name, `at` gives its values; of: those of this capture, or 'all'. */
  P.markRow = (table, at, words, of) => window.perfkit_timeline.mark(Object.assign({ words, of }, TABLES[table](at)));

  /* Of a table's row what leads to its place, null where nothing does: a function. */
  P.placeOf = function (table, index) {
    if (!TABLES[table.name] || !P.data.timeline.shown) return null;
    return (row) => () => P.markRow(table.name, (key) => row[index[key]], String(row[index.name] || row[index.where] || row[index.phase] || '(empty)'));
  };

  const FRAME_KINDS = { kernel: ['kernel'], transfer: ['copy'], memset: ['fill'], api: CALLS, range: ['range', 'mark'], frame: DEVICE };

  /* Of a frame of the flame graph the same; `above`: the frames around it, the innermost first; of capture `run`. */
  P.placeOfFrame = function (node, above, run) {
    const kinds = FRAME_KINDS[node.kind], of = (kind) => above.filter((one) => one.kind === kind).map((one) => one.name);
    if (!kinds || !P.data.timeline.shown) return null;
    const at = { kinds, words: node.name, within: of('range'), of: run }, frames = of('frame');
    if (node.kind === 'transfer') at.prefix = node.name;
    else if (node.kind !== 'frame') at.name = node.name;
    if (kinds.some((kind) => DEVICE.includes(kind))) {
      if (of('api').length) [at.call] = of('api');
      at.frames = node.kind === 'frame' ? frames.concat(node.name) : frames;
      if (!at.frames.length) delete at.frames;
    }
    return () => window.perfkit_timeline.mark(at);
  };

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
  }, mark: async (what) => {
    const timeline = await ready;
    if (!timeline) return;
    const at = what.path ? resolvePath(timeline.model, what) : what;
    const picked = pickInstances(timeline.model, at), wider = Object.assign({}, at);
    ['within', 'call', 'frames', 'place'].forEach((key) => { delete wider[key]; }); /* kernels of a graph know no call of their own */
    timeline.instances(at.words, picked.found.length ? picked : pickInstances(timeline.model, wider), at.each);
  } };
})(window.perfkit);
