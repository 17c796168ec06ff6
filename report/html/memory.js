/* Live memory over time as a step line. The mouse or the arrow keys move a moment along it; Enter or
 * a click shows that moment on the timeline. */
(function (P) {
  'use strict';
  const el = P.el, f = P.format;
  const HEIGHT = 160, ROOM = 14;

  /* The last point that is not after `time`. */
  function pointAt(line, time) {
    let low = 0, high = line.time.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (line.time[middle] <= time) low = middle; else high = middle;
    }
    return low;
  }

  /* Of the highest value of each pixel. */
  function outline(high, y) {
    let path = 'M0 ' + HEIGHT;
    for (let x = 0, next; x < high.length; x = next) {
      for (next = x + 1; next < high.length && high[next] === high[x]; next++);
      path += 'V' + y(high[x]).toFixed(2) + 'H' + next;
    }
    return path + 'V' + HEIGHT + 'Z';
  }

  P.memory = function () {
    const memory = P.data.memory, place = P.section('part-memory');
    if (memory.points.length < 2 || !(memory.peak_bytes > 0)) return;
    const [time, bytes, peak] = [0, 1, 2].map((k) => memory.points.map((point) => point[k]));
    const line = { time, value: bytes, peak, unit: 'bytes' }, begin = time[0];
    const end = Math.max(begin + (P.data.wall_ns || 0), time[time.length - 1], begin + 1);
    let width = 0;
    const x = (t) => ((t - begin) * width) / (end - begin);
    const y = (level) => HEIGHT - (level * (HEIGHT - ROOM)) / memory.peak_bytes;
    const words = 'Memory over time, peak ' + f.bytes(memory.peak_bytes) + ' at ' + f.duration(memory.peak_ns);
    const told = el('p', { class: 'faint', id: 'memory-told', 'aria-live': 'polite' });
    let at = memory.peak_ns;
    const mark = el('line', { class: 'cursor', y1: 0, y2: HEIGHT });
    const peakLine = el('line', { class: 'peak', y1: 0, y2: HEIGHT }), path = el('path', { class: 'memory' });
    const stand = (node, t) => ['x1', 'x2'].forEach((name) => node.setAttribute(name, x(t)));
    const tell = (moved) => {
      stand(mark, at);
      told.textContent = words + (memory.thinned ? '; changes that are close together are joined, peaks kept' : '') +
        (moved ? '; at ' + f.duration(at) + ': ' + P.lineWords(line, pointAt(line, at)) : '');
    };
    const moveTo = (t) => {
      at = Math.min(Math.max(t, begin), end);
      tell(true);
    };
    const draw = () => {
      const wide = Math.round(chart.getBoundingClientRect().width) - 2; /* its border */
      if (wide <= 0 || wide === width) return;
      width = wide;
      chart.setAttribute('viewBox', '0 0 ' + width + ' ' + HEIGHT);
      path.setAttribute('d', outline(P.columns(line, begin, end, width, end), y));
      stand(peakLine, memory.peak_ns);
      stand(mark, at);
    };
    const timeAt = (event) => {
      const box = chart.getBoundingClientRect();
      return begin + ((event.clientX - box.left) / box.width) * (end - begin);
    };
    const show = () => {
      const pad = (end - begin) / 100;
      if (P.data.timeline.shown) window.perfkit_timeline.show({ start: at - pad, end: at + pad });
    };
    const step = (by) => {
      moveTo(time[Math.min(Math.max(pointAt(line, at) + by, 0), time.length - 1)]);
    };
    const keys = { ArrowLeft: () => step(-1), ArrowRight: () => step(1), Home: () => moveTo(begin),
      End: () => moveTo(end), Enter: show };
    const chart = el('svg', { height: HEIGHT, tabindex: 0,
      preserveAspectRatio: 'none', role: 'img', 'aria-describedby': 'memory-told',
      'aria-label': words + '. Arrow keys move, Enter shows the moment on the timeline.',
      onmousemove: (event) => moveTo(timeAt(event)), onclick: show, onkeydown: (event) => {
        if (!keys[event.key]) return;
        event.preventDefault();
        keys[event.key]();
      } }, path, peakLine, mark);
    tell(false);
    place.querySelector('h2').after(el('div', { class: 'chart', id: 'memory-chart' }, told, chart,
      el('div', { class: 'ends' }, el('span', null, f.duration(begin)), el('span', null, f.duration(end)))));
    new ResizeObserver(draw).observe(chart);
    draw();
  };
})(window.perfkit);
