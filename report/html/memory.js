/* Live memory over time as a step line, under the memory table. */
(function (P) {
  'use strict';
  const el = P.el, f = P.format;
  const WIDTH = 1000, HEIGHT = 160;

  P.memory = function () {
    const memory = P.data.memory, place = P.section('memory');
    if (!place || memory.points.length < 2 || !(memory.peak_bytes > 0)) return;
    const begin = memory.points[0][0];
    const end = Math.max(begin + (P.data.wall_ns || 0), memory.points[memory.points.length - 1][0], begin + 1);
    const x = (t) => ((t - begin) * WIDTH) / (end - begin);
    const y = (bytes) => HEIGHT - (bytes * (HEIGHT - 14)) / memory.peak_bytes;
    let line = 'M0 ' + HEIGHT;
    memory.points.forEach((point, i) => {
      const next = i + 1 < memory.points.length ? memory.points[i + 1][0] : end;
      const height = y(point[2]).toFixed(2);
      line += 'L' + x(point[0]).toFixed(2) + ' ' + height + 'L' + x(next).toFixed(2) + ' ' + height;
    });
    line += 'L' + WIDTH + ' ' + HEIGHT + 'Z';
    const peak = x(memory.peak_ns);
    const words = 'Memory over time, peak ' + f.bytes(memory.peak_bytes) + ' at ' + f.duration(memory.peak_ns);
    const told = el('p', { class: 'faint', 'aria-live': 'off' }, words +
      (memory.thinned ? '; thinned for drawing, peaks kept' : ''));
    const chart = el('svg', { viewBox: '0 0 ' + WIDTH + ' ' + HEIGHT, height: HEIGHT,
      preserveAspectRatio: 'none', role: 'img', 'aria-label': words, onmousemove: (event) => {
        const box = chart.getBoundingClientRect();
        const t = begin + ((event.clientX - box.left) / box.width) * (end - begin);
        let low = 0, high = memory.points.length;
        while (high - low > 1) {
          const middle = (low + high) >> 1;
          if (memory.points[middle][0] <= t) low = middle; else high = middle;
        }
        told.textContent = words + '; at ' + f.duration(t) + ': ' + f.bytes(memory.points[low][1]);
      } },
    el('path', { d: line, style: 'fill:var(--bar);stroke:var(--kernel);stroke-width:1;vector-effect:non-scaling-stroke' }),
    el('line', { x1: peak, x2: peak, y1: 0, y2: HEIGHT,
      style: 'stroke:var(--mark);stroke-dasharray:4 3;vector-effect:non-scaling-stroke' }));
    place.append(el('div', { class: 'chart', id: 'memory-chart' }, told, chart,
      el('div', { class: 'ends' }, el('span', null, f.duration(begin)), el('span', null, f.duration(end)))));
  };
})(window.perfkit);
