/* What lies within a span of time: events counted, their time cut to the span and summed, and the time
 * in which at least one of them ran. Pure data: no document here. */
(function (P) {
  'use strict';

  /* Of capture `run`. `brief`: without unions of the kinds, and without the names, which is a quarter of the work. */
  P.within = function (model, from, to, brief, run = 0) {
    const e = model.events, kinds = model.kinds.length;
    const cut = (i) => {
      const whole = e.end[i] - e.start[i], inside = Math.min(e.end[i], to) - Math.max(e.start[i], from);
      return e.busy ? (whole > 0 ? (e.busy[i] * inside) / whole : 0) : inside;
    };

    const parts = model.runs[run].rows.map((row) => {
      const [first, last] = model.touching(row, from, to);
      return { row, first, last };
    }).filter((part) => part.last > part.first);

    /* Sums of a list of events in order of time; unions need that order. */
    function sums(list) {
      let count = 0, ns = 0, union = 0, seen = from, longest = list[0];
      for (const i of list) {
        const inside = cut(i), begin = Math.max(e.start[i], seen), end = Math.min(e.end[i], to);
        count += model.countOf(i);
        ns += inside;
        if (end > begin) union += e.count && e.count[i] > 1 ? Math.min(inside, end - begin) : end - begin;
        seen = Math.max(seen, end);
        if (e.end[i] - e.start[i] > e.end[longest] - e.start[longest]) longest = i;
      }
      return { count, ns, union, longest };
    }

    function countKinds() {
      const all = model.kinds.map((kind) => ({ kind, count: 0, ns: 0 }));
      parts.forEach((part) => {
        for (let i = part.first; i < part.last; i++) {
          const sum = all[e.kind[i]];
          sum.count += model.countOf(i);
          sum.ns += cut(i);
        }
      });
      return all.filter((sum) => sum.count);
    }

    /* Lists by key: one pass to count, one to fill; a row's events stay in order. */
    function group(size, keyOf, only) {
      const chosen = only ? parts.filter((part) => only(part.row)) : parts;
      const at = new Uint32Array(size + 1), all = chosen.reduce((n, part) => n + part.last - part.first, 0);
      const each = (f) => chosen.forEach((part) => { for (let i = part.first; i < part.last; i++) f(i, part.row); });
      each((i, row) => { at[keyOf(i, row) + 1]++; });
      for (let k = 0; k < size; k++) at[k + 1] += at[k];
      const list = new Uint32Array(all), next = at.slice();
      each((i, row) => { list[next[keyOf(i, row)]++] = i; });
      const lists = [];
      for (let k = 0; k < size; k++) if (at[k + 1] > at[k]) lists.push([k, ordered(list.subarray(at[k], at[k + 1]))]);
      return lists;
    }

    /* A list holds rows one after the other: cut where a row ends, merged by time. */
    function ordered(list) {
      const runs = [];
      for (let i = 0; i < list.length;) {
        const row = model.rowOf(list[i]), stop = row.first + row.n;
        let low = i, high = list.length;
        while (low < high) {
          const middle = (low + high) >>> 1;
          if (list[middle] >= stop) high = middle; else low = middle + 1;
        }
        runs.push(list.subarray(i, low));
        i = low;
      }
      return model.byStart(runs);
    }

    const devices = [...new Set(model.tracks.filter((track) => track.lane === 'stream' && model.runOf(track) === run).map((track) => track.device))];
    const deviceOf = (row) => devices.indexOf(model.tracks[row.t].device);
    /* Of the capture's own time: with several on one axis a view reaches beyond the ends of each. */
    const one = model.runs[run], first = Math.max(from, one.begin + one.offset), last = Math.max(first, Math.min(to, one.end + one.offset));
    const recorded = run ? last - first : model.recorded(first, last);
    return {
      from, to, recorded, missing: last - first - recorded,
      kinds: brief ? countKinds() : group(kinds, (i) => e.kind[i]).map(([k, list]) => Object.assign({ kind: model.kinds[k] }, sums(list))),
      devices: group(devices.length, (i, row) => deviceOf(row), (row) => model.tracks[row.t].lane === 'stream')
        .map(([k, list]) => {
          const track = model.tracks.find((one) => one.lane === 'stream' && one.device === devices[k] && model.runOf(one) === run);
          return Object.assign({ device: devices[k], label: track.device_label }, sums(list));
        }),
      names: brief ? [] : group(model.names.length * kinds, (i) => e.name[i] * kinds + e.kind[i])
        .map(([k, list]) => Object.assign({ name: model.names[Math.floor(k / kinds)], kind: model.kinds[k % kinds] }, sums(list)))
        .sort((a, b) => b.ns - a.ns),
    };
  };

  /* Of a line within [from, to): the mean over the time in which it is known, NaN where it never is, and
   * the most. */
  P.lineWithin = function (model, line, from, to) {
    const n = line.time.length;
    let sum = 0, known = 0, most = NaN;
    for (let i = Math.max(0, model.bisect(0, n, (k) => line.time[k] > from) - 1); i < n && line.time[i] < to; i++) {
      const inside = Math.min(i + 1 < n ? line.time[i + 1] : to, to) - Math.max(line.time[i], from);
      if (Number.isNaN(line.value[i]) || inside <= 0) continue;
      sum += line.value[i] * inside;
      known += inside;
      if (!(most >= line.peak[i])) most = line.peak[i];
    }
    return { mean: known ? sum / known : NaN, most };
  };
})(window.perfkit);
