/* The minimap: the whole run in a strip, what the devices did in each pixel by family, where marked events are, and the part
 * in view, which is dragged along it. */
(function (P) {
  'use strict';
  const HIGH = 36, LANES = ['kernel', 'h2d', 'd2h', 'd2d', 'memset', 'call', 'wait'];

  /* Of each pixel the time of each family; of the host's calls where there is no device work. */
  function density(model, width) {
    const e = model.events, scale = width / (model.end - model.begin), device = model.tracks.some((track) => track.lane === 'stream');
    const sums = LANES.map(() => new Float64Array(width));
    model.ownRows.filter((row) => model.tracks[row.t].lane === (device ? 'stream' : 'calls')).forEach((row) => {
      for (let i = row.first; i < row.first + row.n; i++) {
        const family = model.family(i), lane = LANES.indexOf(family.startsWith('kernel') ? 'kernel' : family);
        if (lane < 0) continue;
        const from = (e.start[i] - model.begin) * scale, to = Math.min(width, (e.end[i] - model.begin) * scale);
        const busy = e.busy && e.end[i] > e.start[i] ? e.busy[i] / (e.end[i] - e.start[i]) : 1;
        for (let x = Math.max(0, Math.floor(from)); x < to; x++) sums[lane][x] += (Math.min(to, x + 1) - Math.max(from, x)) * busy;
      }
    });
    return sums;
  }

  P.TimelineMap = function (model, timeline) {
    const view = timeline.view, canvas = P.el('canvas', { class: 'timeline-map', 'aria-hidden': 'true', height: HIGH });
    const context = canvas.getContext('2d', { alpha: false });
    const strip = P.el('canvas');
    let width = 0, sums = null;

    /* What does not change with the view. */
    function paint() {
      const colours = LANES.map((name) => P.css('--' + name)), on = strip.getContext('2d');
      strip.width = width - timeline.draw.gutter;
      strip.height = HIGH;
      for (let k = 0; k < strip.width; k++) {
        const all = sums.reduce((sum, lane) => sum + lane[k], 0), high = Math.sqrt(Math.min(1, all)) * (HIGH - 8);
        let y = HIGH;
        sums.forEach((lane, l) => {
          const part = all ? (lane[k] / all) * high : 0;
          on.fillStyle = colours[l];
          if (part > 0.3) on.fillRect(k, (y -= part), 1, part);
        });
      }
    }

    function draw() {
      if (!width) return;
      const left = timeline.draw.gutter, room = width - left, x = (time) => left + ((time - model.begin) * room) / (model.end - model.begin);
      context.fillStyle = P.css('--panel');
      context.fillRect(0, 0, width, HIGH);
      context.drawImage(strip, left, 0, room, HIGH);
      timeline.draw.ticks(context, view, model.begin, model.end, left, room, 0);
      const from = Math.max(left, x(view.from)), to = Math.min(width, Math.max(x(view.to), from + 3));
      context.globalAlpha = 0.6;
      context.fillStyle = P.css('--page');
      context.fillRect(left, 0, from - left, HIGH);
      context.fillRect(to, 0, width - to, HIGH);
      context.globalAlpha = 1;
      context.strokeStyle = P.css('--focus');
      context.lineWidth = 2;
      context.strokeRect(from, 1, to - from, HIGH - 2);
      context.fillStyle = P.css('--faint');
      context.font = '12px ui-monospace, "DejaVu Sans Mono", Consolas, monospace';
      context.textBaseline = 'middle';
      context.fillText(model.runs.length > 1 ? 'candidate' : 'whole run', 8, HIGH / 2, left - 12);
    }

    /* The axis has changed. */
    function renew() {
      if (!width) return;
      sums = density(model, width - timeline.draw.gutter);
      paint();
    }

    function resize(wide) {
      const ratio = window.devicePixelRatio || 1;
      if (!wide || wide === width) return draw();
      width = wide;
      canvas.width = Math.round(wide * ratio);
      canvas.height = HIGH * ratio;
      canvas.style.width = wide + 'px';
      canvas.style.height = HIGH + 'px';
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      renew();
      return draw();
    }

    const move = (event) => {
      const left = timeline.draw.gutter, span = view.to - view.from, box = canvas.getBoundingClientRect();
      const time = model.begin + ((event.clientX - box.left - left) / (width - left)) * (model.end - model.begin);
      timeline.show(time - span / 2, time + span / 2);
    };
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      move(event);
    });
    canvas.addEventListener('pointermove', (event) => { if (event.buttons & 1) move(event); });
    P.onRepaint(() => {
      if (width) paint();
      draw();
    });
    return { canvas, draw, resize, renew };
  };
})(window.perfkit);
