/* The timeline's events, unpacked from columns of differences into typed arrays per row. The events
 * of one row do not overlap, so a row is searched by bisection. Pure data: no document here. */
(function (P) {
  'use strict';

  function fillRows(track, t, begin) {
    const sizes = new Array(track.rows).fill(0);
    track.row.forEach((r) => { sizes[r]++; });
    const rows = sizes.map((n) => ({ n: 0, start: new Float64Array(n), end: new Float64Array(n),
      duration: new Float64Array(n), name: new Uint32Array(n), kind: new Uint8Array(n),
      link: new Float64Array(n), extra: new Float64Array(n), count: new Uint32Array(n),
      busy: new Float64Array(n) }));
    let time = begin;
    for (let i = 0; i < track.start.length; i++) {
      const row = rows[track.row[i]], at = row.n++;
      time += track.start[i];
      row.start[at] = time;
      row.duration[at] = track.duration[i];
      row.end[at] = time + Math.max(0, track.duration[i]);
      row.name[at] = track.name[i];
      row.kind[at] = track.kind[i];
      row.link[at] = track.link[i];
      row.extra[at] = track.extra[i];
      row.count[at] = track.count ? track.count[i] : 1;
      row.busy[at] = track.busy ? track.busy[i] : Math.max(0, track.duration[i]);
    }
    return rows;
  }

  /* First event of the row that ends after `time`. */
  function firstAfter(row, time) {
    let low = 0, high = row.n;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row.end[middle] <= time && row.start[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  P.Model = function (source) {
    const model = { begin: source.begin_ns, end: Math.max(source.end_ns, source.begin_ns + 1),
      names: source.names.map((name) => name || '(empty)'), kinds: source.kinds, counts: source.counts, shown: source.shown,
      merge: source.merge_ns, notStarted: source.not_started, configs: source.configs, firstAfter };
    model.tracks = source.tracks.map((track, t) => ({ label: track.label, pid: track.pid,
      process: track.process, lane: track.lane, rows: fillRows(track, t, source.begin_ns) }));
    model.colours = source.names.map((name) => P.colour(name));
    model.processes = new Set(model.tracks.map((track) => track.pid)).size;

    const links = new Map();
    model.tracks.forEach((track, t) => track.rows.forEach((row, r) => {
      for (let i = 0; i < row.n; i++) {
        if (!row.link[i]) continue;
        const ends = links.get(row.link[i]);
        if (ends) ends.push({ t, r, i }); else links.set(row.link[i], [{ t, r, i }]);
      }
    }));

    /* The other end of the arrow between a call and its device record, or null. */
    model.other = function (at) {
      const link = model.tracks[at.t].rows[at.r].link[at.i];
      const ends = link ? links.get(link) || [] : [];
      return ends.find((end) => end.t !== at.t) || null;
    };

    model.event = function (at) {
      const track = model.tracks[at.t], row = track.rows[at.r], i = at.i;
      return { track, name: model.names[row.name[i]], kind: model.kinds[row.kind[i]],
        start: row.start[i], duration: row.duration[i], count: row.count[i], busy: row.busy[i],
        extra: row.extra[i] };
    };

    /* All events whose name holds `text`, by start. */
    model.search = function (text) {
      const wanted = text.toLowerCase();
      const hit = new Uint8Array(model.names.length);
      model.names.forEach((name, n) => { hit[n] = name.toLowerCase().includes(wanted) ? 1 : 0; });
      const found = [];
      model.tracks.forEach((track, t) => track.rows.forEach((row, r) => {
        for (let i = 0; i < row.n; i++) if (hit[row.name[i]]) found.push({ t, r, i, start: row.start[i] });
      }));
      found.sort((a, b) => a.start - b.start);
      return { hit, found };
    };

    /* Counts and time of the events that touch [from, to), time cut to it, by kind: [{kind, count,
     * ns}]. A merged block holds several kinds, so with blocks it is by lane. */
    const LANES = { stream: 'device operation', calls: 'call', ranges: 'range' };
    model.within = function (from, to) {
      const kinds = model.merge ? Object.values(LANES) : model.kinds;
      const sums = kinds.map((kind) => ({ kind, count: 0, ns: 0 }));
      model.tracks.forEach((track) => track.rows.forEach((row) => {
        const lane = sums[kinds.indexOf(LANES[track.lane])];
        for (let i = firstAfter(row, from); i < row.n && row.start[i] < to; i++) {
          const sum = model.merge ? lane : sums[row.kind[i]], inside = Math.min(row.end[i], to) - Math.max(row.start[i], from);
          const whole = row.end[i] - row.start[i];
          sum.count += row.count[i];
          sum.ns += whole > 0 ? (row.busy[i] * inside) / whole : 0;
        }
      }));
      return sums;
    };
    return model;
  };
})(window.perfkit);
