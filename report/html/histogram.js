/* Pictures of how a duration spreads, from histograms of eight steps to an octave: small ones for the
 * cells of a table, on one logarithmic scale, and large ones with their own. */
(function (P) {
  'use strict';
  const el = P.el, f = P.format;
  const COLUMNS = 50, CELL = { width: 100, height: 18 }, LARGE = { width: 640, height: 110 };

  /* The least value of a step; see prof_summaries.h. */
  function low(step) {
    return step < 8 ? step : (8 + (step % 8)) * Math.pow(2, Math.floor(step / 8) - 1);
  }

  /* [first, count, count, ...] as [{from, to, count}], empty steps left out. */
  function steps(histogram) {
    return histogram.slice(1).map((count, i) => ({ from: low(histogram[0] + i), to: low(histogram[0] + i + 1), count }))
      .filter((step) => step.count > 0);
  }

  const log = (v) => Math.log(Math.max(v, 0.5));

  P.histogramScale = function (histograms) {
    let least = Infinity, most = -Infinity;
    histograms.forEach((histogram) => steps(histogram).forEach((step) => {
      least = Math.min(least, log(step.from));
      most = Math.max(most, log(step.to));
    }));
    return most > least ? { least, most } : null;
  };

  /* In columns of equal width on the scale; a step as narrow as a column goes into one. */
  P.histogramCell = function (histogram, scale, words) {
    const counts = new Array(COLUMNS).fill(0);
    steps(histogram).forEach((step) => {
      const middle = ((log(step.from) + log(step.to)) / 2 - scale.least) / (scale.most - scale.least);
      counts[Math.min(COLUMNS - 1, Math.floor(middle * COLUMNS))] += step.count;
    });
    const most = Math.max(...counts, 1), wide = CELL.width / COLUMNS;
    const bars = counts.map((count, i) => (count ? 'M' + i * wide + ' ' + CELL.height + 'v' +
      -Math.max(1.5, (count / most) * CELL.height).toFixed(1) + 'h' + wide + 'V' + CELL.height + 'z' : '')).join('');
    return el('svg', { class: 'spread', viewBox: '0 0 ' + CELL.width + ' ' + CELL.height, width: CELL.width,
      height: CELL.height, role: 'img', 'aria-label': words }, el('title', null, words),
    el('line', { x1: 0, x2: CELL.width, y1: CELL.height, y2: CELL.height }), el('path', { d: bars }));
  };

  P.histogramLarge = function (histogram) {
    const list = steps(histogram), scale = P.histogramScale([histogram]);
    if (!scale) return el('p', { class: 'none' }, 'no durations');
    const x = (v) => ((log(v) - scale.least) / (scale.most - scale.least)) * LARGE.width;
    const most = Math.max(...list.map((step) => step.count));
    const fullest = list.find((step) => step.count === most);
    const words = 'Most of them, ' + f.count(most) + ', between ' + f.duration(fullest.from) + ' and ' +
      f.duration(fullest.to);
    const bars = list.map((step) => el('rect', { x: x(step.from), width: Math.max(1, x(step.to) - x(step.from) - 0.5),
      y: LARGE.height - Math.max(1.5, (step.count / most) * LARGE.height),
      height: Math.max(1.5, (step.count / most) * LARGE.height) },
    el('title', null, f.count(step.count) + ' of ' + f.duration(step.from) + ' to ' + f.duration(step.to))));
    return el('div', { class: 'chart histogram' },
      el('p', { class: 'faint' }, words + '; logarithmic scale'),
      el('svg', { viewBox: '0 0 ' + LARGE.width + ' ' + LARGE.height, preserveAspectRatio: 'none', height: LARGE.height,
        role: 'img', 'aria-label': 'Histogram of durations. ' + words }, ...bars),
      el('div', { class: 'ends' }, el('span', null, f.duration(list[0].from)),
        el('span', null, f.duration(list[list.length - 1].to))));
  };
})(window.perfkit);
