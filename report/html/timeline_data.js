/* Unpacks the timeline's events: base64, gzip, then columns of variable-length integers
 * (report/pack.h describes them). 1 M events take about a quarter of a second, so the rest of
 * the page is drawn first. No document here but the element that carries the text. */
(function (P) {
  'use strict';

  P.unpacks = () => typeof DecompressionStream === 'function';

  /* A promise of {head, bytes, at}: the head as an object, and where the columns begin in bytes. */
  P.unpack = async function (text) {
    const packed = atob(text.trim()), bytes = new Uint8Array(packed.length);
    for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    const whole = new Uint8Array(await new Response(stream).arrayBuffer());
    const line = whole.indexOf(10), length = Number(new TextDecoder().decode(whole.subarray(0, line)));
    const head = JSON.parse(new TextDecoder().decode(whole.subarray(line + 1, line + 1 + length)));
    return { head, bytes: whole, at: line + 1 + length };
  };

  /* Reads numbers one after the other. Beyond 2^53 they lose their last digits, as all numbers here. */
  function Reader(bytes, at) {
    function uint() {
      let value = bytes[at] & 127;
      if (bytes[at++] < 128) return value;
      let factor = 128;
      do {
        value += (bytes[at] & 127) * factor;
        factor *= 128;
      } while (bytes[at++] >= 128);
      return value;
    }
    return { uint, int: () => {
      const folded = uint();
      return folded % 2 ? -(folded + 1) / 2 : folded / 2;
    } };
  }

  const NO_CALL = -2147483648;

  function readRows(rows, begin, starts, durations, events) {
    rows.forEach((row) => {
      let before = begin;
      for (let i = row.first; i < row.first + row.n; i++) {
        const start = before + starts.int(), duration = durations.int();
        events.start[i] = start;
        before = events.end[i] = start + Math.max(0, duration);
        events.unended[i] = duration < 0 ? 1 : 0;
      }
    });
  }

  /* Calls and device records name each other: place + 1, 0 = none. */
  function readCalls(calls, n, other) {
    let place = 0;
    for (let i = 0; i < n; i++) {
      const delta = calls.int();
      if (delta === NO_CALL) continue;
      place += delta;
      other[i] = place;
      other[place - 1] = i + 1;
    }
  }

  /* All rows in the order of their events; each track has its own again. */
  function makeRows(tracks) {
    const rows = [];
    let first = 0;
    tracks.forEach((track, t) => {
      track.rows = track.rows.map((n, r) => {
        const row = { t, r, first, n };
        first += n;
        rows.push(row);
        return row;
      });
    });
    return rows;
  }

  /* Typed arrays of all events. An event's number is its place in them; those of a row, {first, n}, do
   * not overlap and stand in order of time. */
  function readEvents(packed, rows, begin) {
    const n = rows.reduce((sum, row) => sum + row.n, 0), readers = {};
    let at = packed.at;
    Object.entries(packed.head.columns).forEach(([name, length]) => {
      readers[name] = Reader(packed.bytes, at);
      at += length;
    });
    const e = { n, start: new Float64Array(n), end: new Float64Array(n), unended: new Uint8Array(n),
      name: new Uint32Array(n), kind: new Uint8Array(n), extra: new Float64Array(n),
      other: new Int32Array(n), count: null, busy: null, stack: null };
    const fill = (array, reader) => { for (let i = 0; i < n; i++) array[i] = reader.int(); return array; };
    readRows(rows, begin, readers.start, readers.duration, e);
    fill(e.name, readers.name);
    fill(e.kind, readers.kind);
    fill(e.extra, readers.extra);
    readCalls(readers.call, n, e.other);
    if (readers.count) e.count = fill(new Uint32Array(n), readers.count);
    if (readers.busy) e.busy = fill(new Float64Array(n), readers.busy);
    if (readers.stack) e.stack = fill(new Uint32Array(n), readers.stack);
    e.lines = readLines(packed.head.lines, Reader(packed.bytes, at));
    return e;
  }

  /* All of a run's timeline: `source` as the page has it at once, `packed` as unpacked. */
  P.readTimeline = function (source, packed) {
    const rows = makeRows(packed.head.tracks);
    return { head: packed.head, kinds: source.kinds, rows, events: readEvents(packed, rows, source.begin_ns), begin: source.begin_ns,
      end: Math.max(source.end_ns, source.begin_ns + 1), merge: source.merge_ns };
  };

  /* Step lines: from time[i] on it is value[i], peak[i] at most until the next; NaN = not known. */
  function readLines(lines, reader) {
    return lines.map((line) => {
      const read = { label: line.label, unit: line.unit, most: 0, mean: 0,
        time: new Float64Array(line.points), value: new Float64Array(line.points), peak: new Float64Array(line.points) };
      const known = (packed) => (packed < 0 ? NaN : packed / line.scale);
      let time = 0, sum = 0, length = 0;
      for (let i = 0; i < line.points; i++) {
        const delta = reader.int();
        if (i && read.value[i - 1] >= 0) {
          sum += read.value[i - 1] * delta;
          length += delta;
        }
        read.time[i] = time += delta;
        read.value[i] = known(reader.int());
        read.peak[i] = known(reader.int());
        if (read.peak[i] > read.most) read.most = read.peak[i];
      }
      read.mean = length ? sum / length : 0;
      return read;
    });
  }
})(window.perfkit);
