/* Draws the timeline on its canvas: ruler, tracks, selection, arrows. Knows nothing of keys and mice.
 * Events narrower than a pixel are drawn once per pixel, so a frame costs what the screen holds. */
(function (P) {
  'use strict';
  const ROW = 18, GAP = 7, RULER = 24, GROUP = 22;

  function palette() {
    const c = { slices: [] };
    ['page', 'panel', 'line', 'text', 'faint', 'grid', 'call', 'wait', 'mark', 'dim', 'focus', 'copy',
      'slice-text'].forEach((name) => { c[name] = P.css('--' + name); });
    for (let i = 0; i < 8; i++) c.slices.push(P.css('--s' + i));
    return c;
  }

  /* Tracks from top to bottom; with several processes each begins with a line of its own. */
  function layout(model) {
    const places = [], groups = [];
    let y = GAP, process = null;
    model.tracks.forEach((track) => {
      if (model.processes > 1 && track.pid !== process) {
        process = track.pid;
        groups.push({ y, text: 'process ' + track.pid + '  ' + (track.process || '') });
        y += GROUP;
      }
      places.push(y);
      y += track.rows.length * ROW + GAP;
    });
    return { places, groups, height: y };
  }

  /* Distance between marks of the ruler: 1, 2 or 5 times a power of ten, about 100 pixels. */
  function tick(span, width) {
    const least = (span * 100) / Math.max(width, 100);
    const power = Math.pow(10, Math.floor(Math.log10(Math.max(least, 1))));
    return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= least) || 1;
  }

  P.TimelineDraw = function (canvas, model) {
    const context = canvas.getContext('2d');
    const plan = layout(model);
    let colours = palette();
    const self = { plan, ROW, RULER, gutter: 190 };
    P.onRepaint(() => { colours = palette(); });

    function fillOf(row, i, hit) {
      const kind = model.kinds[row.kind[i]];
      if (hit && !hit[row.name[i]]) return colours.dim;
      if (kind === 'call') return colours.call;
      if (kind === 'wait' || kind === 'overhead') return colours.wait;
      return colours.slices[model.colours[row.name[i]]];
    }

    function drawRow(view, row, y, width) {
      const scale = width / (view.to - view.from), left = self.gutter;
      let drawnTo = -1;
      for (let i = model.firstAfter(row, view.from); i < row.n && row.start[i] < view.to; i++) {
        const from = Math.max(0, (row.start[i] - view.from) * scale);
        const to = Math.min(width, (row.end[i] - view.from) * scale);
        if (to <= drawnTo && to - from < 1) continue;
        const wide = Math.max(1, to - from);
        context.fillStyle = row.duration[i] < 0 || model.kinds[row.kind[i]] === 'mark' ? colours.mark
          : fillOf(row, i, view.hit);
        context.fillRect(left + from, y, wide > 3 ? wide - 1 : wide, ROW - 2);
        drawnTo = from + wide;
        if (wide > 34) drawText(row, i, left + from, y, wide, view);
      }
    }

    function drawText(row, i, x, y, wide, view) {
      const name = model.names[row.name[i]];
      const room = Math.floor((wide - 8) / 6.7);
      if (room < 3) return;
      let text = P.visible(name.slice(0, 400)).replace(/\s+/g, ' ');
      if (row.count[i] > 1) text = P.format.count(row.count[i]) + ' \u00d7 ' + text;
      if (text.length > room) text = text.slice(0, Math.max(1, room - 1)) + '\u2026';
      context.fillStyle = view.hit && !view.hit[row.name[i]] ? colours.faint : colours['slice-text'];
      context.fillText(text, x + 4, y + ROW / 2 - 0.5, wide - 6);
    }

    function drawRuler(view, width) {
      const span = view.to - view.from, step = tick(span, width), left = self.gutter;
      context.fillStyle = colours.panel;
      context.fillRect(0, 0, left + width, RULER);
      context.fillStyle = colours.faint;
      for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
        const x = left + ((t - view.from) * width) / span;
        context.fillRect(Math.round(x), RULER - 6, 1, 6);
        context.fillText(P.format.duration(t), x + 4, RULER / 2);
      }
      context.fillStyle = colours.line;
      context.fillRect(0, RULER - 1, left + width, 1);
      context.fillStyle = colours.text;
      context.fillText(P.format.duration(span) + (left < 150 ? '' : ' in view'), 8, RULER / 2, left - 12);
    }

    function drawGrid(view, width, height) {
      const span = view.to - view.from, step = tick(span, width);
      context.fillStyle = colours.grid;
      for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step)
        context.fillRect(Math.round(self.gutter + ((t - view.from) * width) / span), RULER, 1, height - RULER);
    }

    function drawLabels(view, height) {
      context.fillStyle = colours.page;
      context.fillRect(0, RULER, self.gutter - 4, height - RULER);
      model.tracks.forEach((track, t) => {
        const y = RULER + plan.places[t] - view.top;
        if (y > height || y + track.rows.length * ROW < RULER) return;
        context.fillStyle = view.track === t ? colours.focus : colours.text;
        const room = Math.floor((self.gutter - 22) / 6.9);
        let text = P.visible(track.label);
        if (text.length > room) text = text.slice(0, room - 1) + '\u2026';
        context.fillText((view.track === t ? '\u25b8 ' : '  ') + text, 6, y + ROW / 2 - 0.5, self.gutter - 12);
      });
      plan.groups.forEach((group) => {
        context.fillStyle = colours.faint;
        context.fillText(P.visible(group.text).slice(0, 160), 6, RULER + group.y - view.top + GROUP / 2);
      });
    }

    self.box = function (view, at) {
      const row = model.tracks[at.t].rows[at.r];
      const width = self.width - self.gutter, scale = width / (view.to - view.from);
      const x = self.gutter + (row.start[at.i] - view.from) * scale;
      return { x, wide: Math.max(2, (row.end[at.i] - row.start[at.i]) * scale),
        y: RULER + plan.places[at.t] + at.r * ROW - view.top };
    };

    function drawSelection(view) {
      if (!view.selected) return;
      const box = self.box(view, view.selected), other = model.other(view.selected);
      context.strokeStyle = colours.text;
      context.lineWidth = 2;
      context.strokeRect(box.x - 1, box.y - 1, box.wide + 2, ROW);
      if (!other) return;
      const end = self.box(view, other);
      context.strokeStyle = colours.mark;
      context.lineWidth = 1.5;
      context.strokeRect(end.x - 1, end.y - 1, end.wide + 2, ROW);
      const down = end.y > box.y ? 1 : -1;
      const y1 = box.y + (down > 0 ? ROW - 2 : 0), y2 = end.y + (down > 0 ? 0 : ROW - 2);
      context.beginPath();
      context.moveTo(box.x, y1);
      context.bezierCurveTo(box.x, y1 + 24 * down, end.x, y2 - 24 * down, end.x, y2);
      context.stroke();
    }

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

    self.draw = function (view) {
      const width = self.width - self.gutter, height = self.height;
      context.font = '12px ui-monospace, "DejaVu Sans Mono", Consolas, monospace';
      context.textBaseline = 'middle';
      context.fillStyle = colours.page;
      context.fillRect(0, 0, self.width, height);
      drawGrid(view, width, height);
      model.tracks.forEach((track, t) => track.rows.forEach((row, r) => {
        const y = RULER + plan.places[t] + r * ROW - view.top;
        if (y < height && y + ROW > RULER) drawRow(view, row, y, width);
      }));
      drawSelection(view);
      drawLabels(view, height);
      drawRuler(view, width);
    };

    /* What is at a point of the canvas: {t, r, i}, or the track alone, or null. */
    self.hit = function (view, x, y) {
      const below = y - RULER + view.top;
      if (y < RULER) return null;
      for (let t = 0; t < model.tracks.length; t++) {
        const r = Math.floor((below - plan.places[t]) / ROW), rows = model.tracks[t].rows;
        if (r < 0 || r >= rows.length) continue;
        const width = self.width - self.gutter, scale = (view.to - view.from) / width;
        const slack = 2 * scale, time = view.from + (x - self.gutter) * scale, row = rows[r];
        const i = model.firstAfter(row, time - slack);
        if (i < row.n && row.start[i] <= time + slack) return { t, r, i };
        return { t, r, i: -1 };
      }
      return null;
    };
    return self;
  };
})(window.perfkit);
