/* Live memory over time as a step line. The mouse or the arrow keys move a moment along it; Enter or
 * a click shows that moment on the timeline. */
(function (P) {
  'use strict';
  const el = P.el, f = P.format;
  const WIDTH = 1000, HEIGHT = 160, ROOM = 14;

  /* The last point that is not after `time`. */
  function pointAt(points, time) {
    let low = 0, high = points.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (points[middle][0] <= time) low = middle; else high = middle;
    }
    return low;
  }

  function outline(points, end, x, y) {
    let path = 'M0 ' + HEIGHT;
    points.forEach((point, i) => {
      const next = i + 1 < points.length ? points[i + 1][0] : end, height = y(point[2]).toFixed(2);
      path += 'L' + x(point[0]).toFixed(2) + ' ' + height + 'L' + x(next).toFixed(2) + ' ' + height;
    });
    return path + 'L' + WIDTH + ' ' + HEIGHT + 'Z';
  }

  P.memory = function () {
    const memory = P.data.memory, points = memory.points, place = P.section('part-memory');
    if (points.length < 2 || !(memory.peak_bytes > 0)) return;
    const begin = points[0][0];
    const end = Math.max(begin + (P.data.wall_ns || 0), points[points.length - 1][0], begin + 1);
    const x = (t) => ((t - begin) * WIDTH) / (end - begin);
    const y = (bytes) => HEIGHT - (bytes * (HEIGHT - ROOM)) / memory.peak_bytes;
    const words = 'Memory over time, peak ' + f.bytes(memory.peak_bytes) + ' at ' + f.duration(memory.peak_ns);
    const told = el('p', { class: 'faint', id: 'memory-told', 'aria-live': 'polite' });
    let time = memory.peak_ns;
    const mark = el('line', { class: 'cursor', y1: 0, y2: HEIGHT });
    const tell = (moved) => {
      mark.setAttribute('x1', x(time));
      mark.setAttribute('x2', x(time));
      told.textContent = words + (memory.thinned ? '; thinned for drawing, peaks kept' : '') +
        (moved ? '; at ' + f.duration(time) + ': ' + f.bytes(points[pointAt(points, time)][1]) : '');
    };
    const moveTo = (t) => {
      time = Math.min(Math.max(t, begin), end);
      tell(true);
    };
    const timeAt = (event) => {
      const box = chart.getBoundingClientRect();
      return begin + ((event.clientX - box.left) / box.width) * (end - begin);
    };
    const show = () => {
      const pad = (end - begin) / 100;
      if (P.data.timeline.shown) window.perfkit_timeline.show({ start: time - pad, end: time + pad });
    };
    const step = (by) => {
      const next = Math.min(Math.max(pointAt(points, time) + by, 0), points.length - 1);
      moveTo(points[next][0]);
    };
    const keys = { ArrowLeft: () => step(-1), ArrowRight: () => step(1), Home: () => moveTo(begin),
      End: () => moveTo(end), Enter: show };
    const chart = el('svg', { viewBox: '0 0 ' + WIDTH + ' ' + HEIGHT, height: HEIGHT, tabindex: 0,
      preserveAspectRatio: 'none', role: 'img', 'aria-describedby': 'memory-told',
      'aria-label': words + '. Arrow keys move, Enter shows the moment on the timeline.',
      onmousemove: (event) => moveTo(timeAt(event)), onclick: show, onkeydown: (event) => {
        if (!keys[event.key]) return;
        event.preventDefault();
        keys[event.key]();
      } },
    el('path', { class: 'memory', d: outline(points, end, x, y) }),
    el('line', { class: 'peak', x1: x(memory.peak_ns), x2: x(memory.peak_ns), y1: 0, y2: HEIGHT }), mark);
    tell(false);
    place.querySelector('h2').after(el('div', { class: 'chart', id: 'memory-chart' }, told, chart,
      el('div', { class: 'ends' }, el('span', null, f.duration(begin)), el('span', null, f.duration(end)))));
  };
})(window.perfkit);
