/* Draws the timeline on its canvas: ruler, lines, tracks, range, selection, arrows. Knows nothing of
 * keys and mice. Events narrower than two pixels are drawn as one column a pixel, in the colour of the
 * longest, or of one that is marked, and the higher the more of its time something ran (by the square root, so that little shows
 * too), so that a frame costs what the screen holds, however many events there are. */
(function (P) {
  'use strict';
  const GAP = 7, TEXT_ROW = 14, RULER = 24, GROUP = 22, LINE = 40, LEAST_LINE = 32; /* two lines of text */
  const LEAST = 5, NARROW = 2, CHARACTER = 6.7;

  function palette() {
    const c = {};
    ['page', 'panel', 'line', 'text', 'faint', 'grid', 'dim', 'focus', 'bar', 'slice-text', 'other', ...P.SHADES,
      ...Object.keys(P.FAMILIES)].forEach((name) => { c[name] = P.css('--' + name); });
    return c;
  }

  /* From top to bottom: pinned tracks, which stay in sight, lines (numbers of them), then tracks in their order. With several
   * processes each begins with a line of its own. Tracks of a folded process and those that are hidden have no place (below 0);
   * each is as high as `rows` says. */
  function layout(model, rows) {
    const places = model.tracks.map(() => -1e9), high = model.tracks.map((track, t) => rows.highOf(t));
    const groups = [], lines = [], order = [], lineHigh = Math.max(LEAST_LINE, Math.round((LINE * rows.height) / rows.USUAL));
    let y = GAP, process = null, empty = 0;
    const takes = (t) => Math.max(model.tracks[t].rows.length * high[t], 14) + GAP;
    const put = (t) => {
      places[t] = y;
      order.push(t);
      y += takes(t);
    };
    const pinned = new Set(rows.order.filter((t) => rows.pinned.has(t) && !rows.hidden.has(t)));
    pinned.forEach(put);
    const pinnedHeight = pinned.size ? y : 0;
    if (pinned.size) y += GAP;
    rows.lines.forEach((line) => {
      lines.push({ y, line: model.lines[line] });
      y += lineHigh + GAP;
    });
    rows.order.forEach((t) => {
      const track = model.tracks[t], folded = rows.folded.has(track.process);
      if (model.processes > 1 && track.process !== process) {
        process = track.process;
        groups.push({ y, process, text: (folded ? '\u25b8' : '\u25be') + (model.runs.length < 2 ? '' : ' ' + model.runs[model.runOf(track)].label + ':') + ' process ' + track.pid + '  ' + (track.command || '') });
        y += GROUP;
      }
      if (folded || rows.hidden.has(t) || pinned.has(t)) return;
      if (rows.empty.has(t)) empty += takes(t);
      else put(t);
    });
    return { places, high, lineHigh, order, groups, lines, pinned, pinnedHeight, height: y, withEmpty: y + empty };
  }

  /* Distance between marks of the ruler: 1, 2 or 5 times a power of ten, about 120 pixels. */
  function tick(span, width) {
    const least = (span * 120) / Math.max(width, 120);
    const power = Math.pow(10, Math.floor(Math.log10(Math.max(least, 1))));
    return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= least) || 1;
  }

  /* A moment with the digits that tell it from its neighbours `step` away. */
  function moment(t, step) {
    const [unit, size] = [['s', 1e9], ['ms', 1e6], ['us', 1e3], ['ns', 1]].find(([, ns]) => Math.abs(t) >= ns) || ['s', 1e9];
    const digits = Math.max(0, Math.round(Math.log10(size)) - Math.floor(Math.log10(Math.max(step, 1))));
    return t === 0 ? '0' : (t / size).toFixed(Math.min(digits, 9)) + ' ' + unit;
  }
  P.moment = moment;

  /* Of a line's unit; what is not one of the page's is counted. */
  P.lineValue = function (line, value) {
    if (Number.isNaN(value)) return 'not sampled';
    if (line.unit === 'per second') {
      const power = Math.min(4, Math.max(0, Math.floor(Math.log10(value || 1) / 3)));
      return Number((value / Math.pow(1000, power)).toPrecision(3)) + ' ' + ['', 'k', 'M', 'G', 'T'][power] + '/s';
    }
    if (line.unit === 'percent') return P.format.percent(value / 100);
    return P.format.value(line.unit, value) + (line.unit === 'share' ? ' of peak' : '');
  };

  /* Of a line's place; where changes were joined the mean and the most of them. */
  P.lineWords = function (line, i) {
    const value = i < 0 ? NaN : line.value[i];
    return P.lineValue(line, value) + (i >= 0 && line.peak[i] > value ? ' (mean), at most ' + P.lineValue(line, line.peak[i]) : '');
  };

  /* Rectangles without text, thousands a frame: written as pixels, which costs a browser less than as many fillRect. */
  function Pixels() {
    const canvas = P.el('canvas'), on = canvas.getContext('2d', { willReadFrequently: true }), words = new Map();
    let image = null, all = null, scale = 1, low = 0, high = 0;
    /* As a pixel stands in memory, of #rrggbb. */
    function wordOf(colour) {
      if (!words.has(colour)) words.set(colour, new Uint32Array(new Uint8Array([1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16)).concat(255)).buffer)[0]);
      return words.get(colour);
    }
    return {
      begin: (width, height, ratio) => {
        const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
        if (!image || image.width !== w || image.height !== h) {
          [canvas.width, canvas.height] = [w, h];
          image = on.createImageData(w, h);
          all = new Uint32Array(image.data.buffer);
        } else if (high > low) {
          all.fill(0, low * w, high * w);
        }
        [scale, low, high] = [ratio, h, 0];
      },
      rect: (x, y, wide, tall, colour) => {
        const place = (v, most) => Math.min(Math.max(Math.round(v * scale), 0), most), word = wordOf(colour), w = image.width;
        const [left, right, top, bottom] = [place(x, w), place(x + wide, w), place(y, image.height), place(y + tall, image.height)];
        for (let line = top * w; line < bottom * w; line += w) for (let k = line + left; k < line + right; k++) all[k] = word;
        low = Math.min(low, top);
        high = Math.max(high, bottom);
      },
      end: (context) => {
        if (high <= low) return;
        on.putImageData(image, 0, 0, 0, low, image.width, high - low);
        context.imageSmoothingEnabled = false;
        context.drawImage(canvas, 0, low, image.width, high - low, 0, low / scale, image.width / scale, (high - low) / scale);
      },
    };
  }

  P.TimelineDraw = function (canvas, model) {
    const context = canvas.getContext('2d', { alpha: false });
    const pixels = Pixels(), e = model.events, self = { RULER, LINE, gutter: 190 };
    let colours = palette(), drawn = 0, plan = null, hits = null;
    self.layout = (rows) => { self.plan = plan = layout(model, rows); };
    self.highOf = (t) => plan.high[t];
    self.yOf = (row) => plan.places[row.t] + row.r * plan.high[row.t];
    /* How far a track is scrolled. */
    const scrolled = (view, t) => (plan.pinned.has(t) ? 0 : view.top);
    P.onRepaint(() => { colours = palette(); });

    /* The first event from `from` on that is marked. */
    const markedFrom = (from) => hits[model.bisect(0, hits.length, (k) => hits[k] >= from)];

    function fillOf(i) {
      return hits && markedFrom(i) !== i ? colours.dim : colours[model.family(i)];
    }

    /* Columns of a pixel that look alike and touch are one rectangle. */
    function Columns(top, full) {
      let x = 0, wide = 0, high = 0, fill = null;
      function flush() {
        if (!wide) return;
        pixels.rect(x, top + full - high, wide, high, fill);
        wide = 0;
      }
      return { flush, add: (at, height, colour) => {
        if (wide && at === x + wide && height === high && colour === fill) {
          wide++;
          return;
        }
        flush();
        [x, wide, high, fill] = [at, 1, height, colour];
        drawn++;
      } };
    }

    function drawRow(view, row, y, width) {
      const scale = width / (view.to - view.from), left = self.gutter, stop = row.first + row.n;
      const full = plan.high[row.t] - 2, columns = Columns(y, full);
      for (let i = model.firstAfter(row, view.from); i < stop && e.start[i] < view.to;) {
        const from = Math.max(0, (e.start[i] - view.from) * scale), to = Math.min(width, (e.end[i] - view.from) * scale);
        if (to - from >= NARROW) {
          columns.flush();
          drawSlice(i, left + from, y, to - from, full);
          i++;
          continue;
        }
        const pixel = Math.floor(from);
        let next = Math.max(i + 1, model.startsAt(i, stop, view.from + (pixel + 1) / scale));
        if (next - 1 > i && (e.end[next - 1] - e.start[next - 1]) * scale >= NARROW) next--;
        const share = (model.busy[next] - model.busy[i]) * scale;
        const high = Math.min(full, Math.max(LEAST, Math.round(Math.sqrt(share) * full)));
        const marked = hits ? markedFrom(i) : next;
        columns.add(left + pixel, marked < next && hits ? full : high, fillOf(marked < next ? marked : model.longest(i, next)));
        i = next;
      }
      columns.flush();
    }

    function drawSlice(i, x, y, wide, full) {
      const fill = fillOf(i);
      context.fillStyle = fill;
      context.fillRect(x, y, wide > 3 ? wide - 1 : wide, full);
      drawn++;
      if (full + 2 < TEXT_ROW) return;
      const room = Math.floor((wide - 8) / CHARACTER);
      if (room < 3) return;
      let text = P.visible(model.labels[e.name[i]]).replace(/\s+/g, ' ');
      if (model.countOf(i) > 1) text = P.format.count(model.countOf(i)) + ' \u00d7 ' + text;
      if (text.length > room) text = text.slice(0, Math.max(1, room - 1)) + '\u2026';
      context.fillStyle = fill === colours.dim ? colours.faint : colours['slice-text'];
      context.fillText(text, x + 4, y + full / 2 + 0.5, wide - 6);
    }

    /* A step line as an area, the most of each pixel; pixels that are equally high are one rectangle. */
    function drawLine(view, line, y, width) {
      const tall = plan.lineHigh, left = self.gutter, high = P.columns(line, view.from, view.to, width, model.endOf(line));
      context.fillStyle = colours.bar;
      for (let x = 0, next; x < width; x = next) {
        for (next = x + 1; next < width && high[next] === high[x]; next++);
        const height = Math.ceil((high[x] / (line.most || 1)) * (tall - 2));
        if (height) context.fillRect(left + x, y + tall - height, next - x, height);
      }
      context.fillStyle = colours.line;
      context.fillRect(left, y + tall, width, 1);
    }

    function drawRuler(view, width) {
      const span = view.to - view.from, step = tick(span, width), left = self.gutter;
      context.fillStyle = colours.panel;
      context.fillRect(0, 0, left + width, RULER);
      context.fillStyle = colours.faint;
      for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
        const x = left + ((t - view.from) * width) / span, text = moment(t, step);
        context.fillRect(Math.round(x), RULER - 6, 1, 6);
        if (x + 4 + context.measureText(text).width <= left + width) context.fillText(text, x + 4, RULER / 2);
      }
      context.fillStyle = colours.line;
      context.fillRect(0, RULER - 1, left + width, 1);
      context.fillStyle = colours.panel;
      context.fillRect(0, 0, left, RULER - 1);
      context.fillStyle = colours.text;
      context.fillText(P.format.duration(span) + (left < 150 ? '' : ' in view'), 8, RULER / 2, left - 12);
    }

    function drawGrid(view, width, height) {
      const span = view.to - view.from, step = tick(span, width);
      context.fillStyle = colours.grid;
      for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step)
        context.fillRect(Math.round(self.gutter + ((t - view.from) * width) / span), RULER, 1, height - RULER);
    }

    /* Where nothing was recorded no device is idle: bands over all tracks, with the reason where it has room. */
    function drawUnrecorded(view, width, height) {
      const scale = width / (view.to - view.from);
      let drawnTo = -1;
      model.unrecorded.forEach(([begin, end, why]) => {
        const from = Math.max(0, (begin - view.from) * scale), to = Math.min(width, Math.max((end - view.from) * scale, from + 1));
        if (to <= from || from > width || end < view.from || to <= drawnTo) return;
        drawnTo = to;
        context.fillStyle = colours.grid;
        context.fillRect(self.gutter + from, RULER, to - from, height - RULER);
        context.fillStyle = colours.line;
        for (let y = RULER; y < height; y += 8) context.fillRect(self.gutter + from, y, to - from, 1);
        const room = (to - from) / (CHARACTER + 0.6) - 2;
        const text = ['not recorded: ' + why, 'not recorded'].find((words) => words.length < room);
        if (text) {
          context.fillStyle = colours.page;
          context.fillRect(self.gutter + from + 2, RULER + 2, text.length * (CHARACTER + 0.6) + 4, 18);
          context.fillStyle = colours.text;
          context.fillText(text, self.gutter + from + 4, RULER + 11);
        }
      });
    }

    /* Cut in the middle: what tells a track from its neighbours often stands at the end. */
    function label(text, y, colour) {
      const room = Math.floor((self.gutter - 22) / 6.9), tail = Math.floor(room * 0.4);
      context.fillStyle = colour;
      context.fillText(text.length > room ? text.slice(0, room - tail - 1) + '\u2026' + text.slice(-tail) : text, 6, y, self.gutter - 12);
    }

    function drawLabels(view, height) {
      context.fillStyle = colours.page;
      context.fillRect(0, RULER, self.gutter - 4, height - RULER);
      const trackLabel = (track, t) => {
        const y = RULER + plan.places[t] - scrolled(view, t), focus = view.track === t;
        if (y > height || y + track.rows.length * plan.high[t] < RULER) return;
        label((focus ? '\u25b8 ' : '  ') + P.visible(!track.short || plan.pinned.has(t) ? track.label : track.short), y + Math.max(plan.high[t], 14) / 2 - 0.5, focus ? colours.focus : colours.text);
      };
      model.tracks.forEach((track, t) => { if (!plan.pinned.has(t)) trackLabel(track, t); });
      plan.lines.forEach(({ line, y: top }) => {
        const y = RULER + top - view.top;
        label('  ' + P.visible(line.label), y + 9, colours.text);
        label((self.gutter < 150 ? '  ' : '  up to ') + P.lineValue(line, line.most), y + 25, colours.faint);
      });
      plan.groups.forEach((group) => {
        context.fillStyle = colours.faint;
        context.fillText(P.visible(group.text).slice(0, 160), 6, RULER + group.y - view.top + GROUP / 2);
      });
      if (!plan.pinned.size) return;
      context.fillStyle = colours.page;
      context.fillRect(0, RULER, self.gutter - 4, plan.pinnedHeight);
      plan.pinned.forEach((t) => trackLabel(model.tracks[t], t));
      context.fillStyle = colours.faint;
      context.fillRect(0, RULER + plan.pinnedHeight, self.width, 1);
    }

    self.x = (view, time) => self.gutter + ((time - view.from) * (self.width - self.gutter)) / (view.to - view.from);
    self.time = (view, x) => view.from + ((x - self.gutter) / (self.width - self.gutter)) * (view.to - view.from);

    self.box = function (view, i) {
      const row = model.rowOf(i), x = self.x(view, e.start[i]);
      return { x, wide: Math.max(2, self.x(view, e.end[i]) - x), y: RULER + self.yOf(row) - scrolled(view, row.t), high: plan.high[row.t] };
    };

    /* A frame that stays within the canvas: slices may be a million pixels wide. */
    function frame(box, colour, wide) {
      const from = Math.max(box.x - 1, self.gutter - 3), to = Math.min(box.x + box.wide + 1, self.width + 3);
      context.strokeStyle = colour;
      context.lineWidth = wide;
      if (to > from) context.strokeRect(from, box.y - 1, to - from, box.high);
    }

    /* The arrow goes from the call to what it asked for, whichever of them is selected. */
    function drawArrow(call, device) {
      const down = device.y > call.y ? 1 : -1;
      const y1 = call.y + (down > 0 ? call.high - 2 : 0), y2 = device.y + (down > 0 ? 0 : device.high - 2);
      context.beginPath();
      context.moveTo(call.x, y1);
      context.bezierCurveTo(call.x, y1 + 24 * down, device.x, y2 - 24 * down, device.x, y2);
      context.moveTo(device.x - 4, y2 - 6 * down);
      context.lineTo(device.x, y2);
      context.lineTo(device.x + 4, y2 - 6 * down);
      context.stroke();
    }

    function drawSelection(view) {
      if (view.selected < 0 || plan.places[model.rowOf(view.selected).t] < 0) return;
      const box = self.box(view, view.selected), other = model.other(view.selected);
      frame(box, colours.text, 2.5);
      if (other < 0) return;
      if (plan.places[model.rowOf(other).t] < 0) return;
      const end = self.box(view, other);
      frame(end, colours.mark, 1.5);
      if (model.trackOf(other).lane === 'stream') drawArrow(box, end); else drawArrow(end, box);
    }

    /* The range whose statistics are shown: what is outside is veiled. */
    function drawRange(view, height) {
      if (!view.range) return;
      const from = Math.max(self.gutter, Math.min(self.width, self.x(view, view.range.from)));
      const to = Math.max(self.gutter, Math.min(self.width, self.x(view, view.range.to)));
      context.globalAlpha = 0.55;
      context.fillStyle = colours.page;
      context.fillRect(self.gutter, RULER, from - self.gutter, height - RULER);
      context.fillRect(to, RULER, self.width - to, height - RULER);
      context.globalAlpha = 1;
      context.fillStyle = colours.focus;
      context.fillRect(from - 1, 0, 2, height);
      context.fillRect(to - 1, 0, 2, height);
      context.fillRect(from, RULER - 4, to - from, 3);
    }

    /* Where marked events are between two moments, as ticks. */
    self.ticks = function (on, view, from, to, left, width, y) {
      const found = view.marks ? view.marks.found : [], ns = (to - from) / width;
      const next = (time) => model.bisect(0, found.length, (k) => e.start[found[k]] >= time);
      on.fillStyle = colours.mark;
      for (let k = next(from); k < found.length && e.start[found[k]] < to;) {
        const x = Math.floor((e.start[found[k]] - from) / ns);
        on.fillRect(left + x, y, 2, 6);
        k = Math.max(k + 1, next(from + (x + 1) * ns));
      }
    };

    self.resize = function (width, height) {
      const ratio = window.devicePixelRatio || 1;
      self.width = width;
      self.height = height;
      self.gutter = width < 600 ? 110 : 190;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = width + 'px';
      canvas.style.height = height + 'px';
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
    };

    /* Returns how many rectangles it took. */
    self.draw = function (view) {
      const width = self.width - self.gutter, height = self.height;
      drawn = 0;
      hits = view.marks && view.marks.numbers;
      context.font = '12px ui-monospace, "DejaVu Sans Mono", Consolas, monospace';
      context.textBaseline = 'middle';
      context.fillStyle = colours.page;
      context.fillRect(0, 0, self.width, height);
      drawGrid(view, width, height);
      drawUnrecorded(view, width, height);
      plan.lines.forEach(({ line, y }) => drawLine(view, line, RULER + y - view.top, width));
      const drawRows = (wanted) => {
        pixels.begin(self.width, height, window.devicePixelRatio || 1);
        model.rows.filter(wanted).forEach((row) => {
          const y = RULER + self.yOf(row) - scrolled(view, row.t);
          if (y < height && y + plan.high[row.t] > RULER) drawRow(view, row, y, width);
        });
        pixels.end(context);
      };
      drawRows((row) => !plan.pinned.has(row.t));
      if (plan.pinned.size) {
        context.fillStyle = colours.page;
        context.fillRect(0, RULER, self.width, plan.pinnedHeight);
        drawGrid(view, width, RULER + plan.pinnedHeight);
        drawRows((row) => plan.pinned.has(row.t));
      }
      drawSelection(view);
      drawRange(view, height);
      drawLabels(view, height);
      drawRuler(view, width);
      self.ticks(context, view, view.from, view.to, self.gutter, width, 0);
      return drawn;
    };

    /* What is at a point of the canvas: {t, r, i} with i < 0 beside the events, {line}, {process} on the line that begins one, {label, edge}
     * on the label of a track, edge: on the lower one, or null. */
    self.hit = function (view, x, y) {
      const fixed = y - RULER < plan.pinnedHeight, below = y - RULER + (fixed ? 0 : view.top);
      if (y < RULER) return null;
      const group = !fixed && plan.groups.find((one) => below >= one.y && below < one.y + GROUP);
      if (group) return { process: group.process };
      const at = !fixed && plan.lines.find((one) => below >= one.y && below < one.y + plan.lineHigh);
      if (at) return x < self.gutter ? null : { line: at.line };
      const t = model.tracks.findIndex((track, k) => plan.pinned.has(k) === fixed && below >= plan.places[k] && below < plan.places[k] + Math.max(track.rows.length * plan.high[k], 14) + (x < self.gutter ? 4 : 0));
      if (t < 0) return null;
      if (x < self.gutter) return { label: t, edge: below > plan.places[t] + Math.max(model.tracks[t].rows.length * plan.high[t], 14) - 4 };
      const r = Math.min(Math.floor((below - plan.places[t]) / plan.high[t]), model.tracks[t].rows.length - 1), row = model.tracks[t].rows[r], stop = row.first + row.n;
      const slack = (2 * (view.to - view.from)) / (self.width - self.gutter), time = self.time(view, x);
      const exact = model.firstAfter(row, time);
      if (exact < stop && e.start[exact] <= time) return { t, r, i: exact };
      const near = model.firstAfter(row, time - slack);
      return { t, r, i: near < stop && e.start[near] <= time + slack ? near : -1 };
    };
    return self;
  };
})(window.perfkit);
