/* The timeline's events as the other parts ask for them: rows searched by bisection, the events of a
 * pixel in constant time, searches by name. An event is a number, its place in the typed arrays
 * (timeline_data.js); those of a row do not overlap. Pure data: no document here. */
(function (P) {
  'use strict';
  const BLOCK = 8;

  /* Of every BLOCK events, of every BLOCK of these blocks and so on, the one that lasts longest: what is longest of a stretch is found
   * in a few steps a level. */
  function longestBlocks(start, end) {
    const lasts = Float64Array.from(end, (v, i) => v - start[i]), levels = [];
    for (let n = Math.floor(start.length / BLOCK), below = null; n; n = Math.floor(n / BLOCK)) {
      const best = new Uint32Array(n);
      for (let b = 0; b < n; b++) {
        let longest = below ? below[b * BLOCK] : b * BLOCK;
        for (let k = b * BLOCK + 1; k < (b + 1) * BLOCK; k++) {
          const i = below ? below[k] : k;
          if (lasts[i] > lasts[longest]) longest = i;
        }
        best[b] = longest;
      }
      levels.push(best);
      below = best;
    }
    return (from, to) => {
      let best = from;
      for (let i = from; i < to;) {
        let candidate = i, wide = 1;
        for (let level = 0; level < levels.length && i % (wide * BLOCK) === 0 && i + wide * BLOCK <= to; level++) {
          wide *= BLOCK;
          candidate = levels[level][i / wide];
        }
        if (lasts[candidate] > lasts[best]) best = candidate;
        i += wide;
      }
      return best;
    };
  }

  /* Time in which events ran, summed from the first one on: a difference is that of a stretch. */
  function sumBusy(e) {
    const sums = new Float64Array(e.n + 1);
    for (let i = 0; i < e.n; i++) sums[i + 1] = sums[i] + (e.busy ? e.busy[i] : e.end[i] - e.start[i]);
    return sums;
  }

  /* Of one capture as P.readTimeline gives it, or of several (P.joinTimelines): what counts and sums is of the candidate, `own...`, unless
   * said otherwise. runs[k]: rows of capture k, when it begins and ends, how far it is moved. */
  P.Model = function (run) {
    const { head, rows, events: e } = run, start = e.start, end = e.end, others = run.others || [], own = others.length ? others[0].first : e.n;
    const model = { begin: run.begin, end: run.end, own, recordedRows: rows.filter((row) => head.tracks[row.t].lane !== 'projected'),
      names: head.names.map((name) => name || '(empty)'), labels: head.names.map((name) => P.short(name || '(empty)').slice(0, 400)), kinds: run.kinds, merge: run.merge,
      configs: head.configs, tracks: head.tracks, rows, events: e, n: e.n, lines: e.lines,
      unrecorded: head.unrecorded.slice().sort((a, b) => a[0] - b[0]),
      longest: longestBlocks(start, end), busy: sumBusy(e) };
    model.runOf = (track) => track.run || 0;
    model.runs = [{ begin: run.begin, end: run.end, first: 0, stop: own }, ...others].map((one, k) => Object.assign({ offset: 0, label: P.runs[k].label,
      rows: model.recordedRows.filter((row) => model.runOf(head.tracks[row.t]) === k) }, one));
    model.ownRows = model.runs[0].rows;
    const families = model.kinds.map(() => []);
    model.family = (i) => {
      if (e.unended[i]) return 'mark';
      const known = families[e.kind[i]], name = e.name[i];
      return known[name] || (known[name] = P.family(model.kindOf(i), model.names[name]));
    };
    model.processes = new Set(model.tracks.map((track) => track.process)).size;

    /* First place in [low, high) from which on `over` holds, else high. */
    function bisect(low, high, over) {
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (over(middle)) high = middle; else low = middle + 1;
      }
      return low;
    }
    model.bisect = bisect;

    /* How much of [from, to) was recorded. */
    model.recorded = (from, to) => model.unrecorded.reduce((ns, [begin, end]) =>
      ns - Math.max(0, Math.min(end, to) - Math.max(begin, from)), to - from);

    /* First event of the row that ends after `time`; one without length counts where it stands. */
    model.firstAfter = (row, time) => bisect(row.first, row.first + row.n, (i) => end[i] > time || start[i] >= time);

    /* First of the events from `from` on that starts at `time` or later: near in most cases. */
    model.startsAt = function (from, stop, time) {
      let span = 1;
      while (from + span < stop && start[from + span] < time) span *= 2;
      return bisect(from + (span >> 1), Math.min(stop, from + span + 1), (i) => start[i] >= time);
    };

    /* Of a row what touches [from, to): [first, after the last]. */
    model.touching = function (row, from, to) {
      const first = model.firstAfter(row, from);
      return [first, model.startsAt(first, row.first + row.n, to)];
    };

    /* Of a line the place of a moment, -1 before its first. */
    model.placeIn = (line, time) => bisect(0, line.time.length, (k) => line.time[k] > time) - 1;

    model.rowOf = (i) => rows[bisect(0, rows.length, (r) => rows[r].first > i) - 1];
    model.trackOf = (i) => model.tracks[model.rowOf(i).t];
    model.kindOf = (i) => model.kinds[e.kind[i]];
    model.countOf = (i) => (e.count ? e.count[i] : 1);

    /* The other end of the arrow between a call and its device record, -1 = none. */
    model.other = (i) => e.other[i] - 1;

    /* The host's frames when it made the call of event i, innermost first; empty where they were not taken. */
    model.stack = function (i) {
      const frames = [];
      if (!e.stack) return frames;
      const { nodes, places } = head.stacks, innermost = e.stack[i] || (e.other[i] ? e.stack[e.other[i] - 1] : 0);
      for (let node = innermost; node; node = nodes[2 * (node - 1)]) {
        const [name, file, line, module, nearness] = places[nodes[2 * (node - 1) + 1]];
        frames.push({ name, file, line, module, nearness });
      }
      return frames;
    };

    /* The NVTX domain of a range or mark with this `extra`, '' of the default one. */
    model.domain = (extra) => (extra > 1 ? head.names[Math.floor(extra / 2) - 1] : '');

    model.event = (i) => ({ i, track: model.trackOf(i), name: model.names[e.name[i]], kind: model.kindOf(i),
      start: start[i], duration: e.unended[i] ? -1 : end[i] - start[i], count: model.countOf(i),
      busy: e.busy ? e.busy[i] : end[i] - start[i], extra: e.extra[i] });

    /* Events by kind, merged ones counted one by one: what must equal the capture. */
    model.countByKind = function (track) {
      const sums = {};
      (track ? track.rows : model.ownRows).forEach((row) => {
        for (let i = row.first; i < row.first + row.n; i++) {
          const kind = model.kindOf(i);
          sums[kind] = (sums[kind] || 0) + model.countOf(i);
        }
      });
      return sums;
    };

    /* Merges lists of events that are each in order of time into one. */
    model.byStart = function (lists) {
      while (lists.length > 1) {
        const merged = [];
        for (let k = 0; k < lists.length; k += 2) merged.push(k + 1 < lists.length ? mergeTwo(lists[k], lists[k + 1]) : lists[k]);
        lists = merged;
      }
      return lists[0] || new Uint32Array(0);
    };

    function mergeTwo(a, b) {
      const out = new Uint32Array(a.length + b.length);
      for (let i = 0, j = 0, k = 0; k < out.length; k++)
        out[k] = j >= b.length || (i < a.length && start[a[i]] <= start[b[j]]) ? a[i++] : b[j++];
      return out;
    }

    /* Events for which `wanted` holds: by number, and in order of time; of the candidate, of capture `of`, or of 'all'. */
    model.pick = function (wanted, of) {
      const numbers = new Uint32Array(e.n), lists = [];
      let n = 0;
      (of === 'all' ? model.recordedRows : model.runs[of || 0].rows).forEach((row) => {
        const first = n;
        for (let i = row.first; i < row.first + row.n; i++) if (wanted(i)) numbers[n++] = i;
        if (n > first) lists.push(numbers.subarray(first, n));
      });
      return { numbers: numbers.slice(0, n), found: model.byStart(lists) };
    };

    /* Those whose name holds `text`. */
    model.search = function (text) {
      const wanted = text.toLowerCase(), hit = model.names.map((name) => name.toLowerCase().includes(wanted));
      return model.pick((i) => hit[e.name[i]], 'all');
    };

    /* When the run of a line is over. */
    model.endOf = (line) => model.runs[model.runOf(line)].end + model.runs[model.runOf(line)].offset;

    /* Moves capture `k` so that its moment 0 is at `offset` of the candidate. */
    model.align = function (k, offset) {
      const moved = model.runs[k], by = offset - moved.offset;
      for (let i = moved.first; i < moved.stop; i++) {
        start[i] += by;
        end[i] += by;
      }
      model.lines.forEach((line) => { if (line.run === k) line.time.forEach((time, at) => { line.time[at] = time + by; }); });
      moved.offset = offset;
      model.begin = Math.min(...model.runs.map((one) => one.begin + one.offset));
      model.end = Math.max(...model.runs.map((one) => one.end + one.offset));
    };
    return model;
  };
})(window.perfkit);
