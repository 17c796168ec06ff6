/* The page's data, and what every section uses: making elements, numbers as people read them. Texts
 * of the program that was profiled reach the document only as text nodes. */
window.perfkit = (function () {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);

  /* el('td', {class: 'name', onclick: f}, 'text', child): attributes, then children. */
  function el(tag, attributes, ...children) {
    const svg = ['svg', 'path', 'line', 'rect', 'text', 'g', 'circle', 'title'];
    const node = svg.includes(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag)
      : document.createElement(tag);
    Object.entries(attributes || {}).forEach(([key, value]) => {
      if (value === null || value === undefined || value === false) return;
      if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? '' : String(value));
    });
    node.append(...children.filter((c) => c !== null && c !== undefined).map((c) =>
      (c instanceof Node ? c : visible(String(c)))));
    return node;
  }

  /* Characters that would turn or hide the text around them are shown as escapes. */
  function visible(text) {
    return text.replace(
      /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]/g,
      (c) => (c < '\u0100' ? '\\x' + c.charCodeAt(0).toString(16).padStart(2, '0')
        : '\\u{' + c.charCodeAt(0).toString(16) + '}'));
  }

  const unknown = (v) => v === null || v === undefined || Number.isNaN(v);

  function three(value) {
    const size = Math.abs(value);
    return value.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
  }

  function duration(ns) {
    if (unknown(ns)) return 'n/a';
    const size = Math.abs(ns);
    if (size < 999.5) return (Number.isInteger(ns) || size >= 9.95 ? ns.toFixed(0) : ns.toFixed(1)) + ' ns';
    if (size < 999.5e3) return three(ns / 1e3) + ' us';
    if (size < 999.5e6) return three(ns / 1e6) + ' ms';
    if (size < 59.95e9) return three(ns / 1e9) + ' s';
    const seconds = Math.round(size / 1e9), minutes = Math.floor(seconds / 60);
    const sign = ns < 0 ? '-' : '';
    return minutes < 60 ? sign + minutes + ' min ' + String(seconds % 60).padStart(2, '0') + ' s'
      : sign + Math.floor(minutes / 60) + ' h ' + String(minutes % 60).padStart(2, '0') + ' min';
  }

  function scaled(value, step, units) {
    if (unknown(value)) return 'n/a';
    let unit = 0;
    while (Math.abs(value) >= step * 0.9995 && unit + 1 < units.length) {
      value /= step;
      unit++;
    }
    return (unit ? three(value) : value.toFixed(Number.isInteger(value) ? 0 : 1)) + ' ' + units[unit];
  }

  const bytes = (v) => scaled(v, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']);
  const rate = (v) => scaled(v, 1000, ['B/s', 'kB/s', 'MB/s', 'GB/s', 'TB/s']);
  const flops = (v) => scaled(v, 1000, ['FLOP/s', 'kFLOP/s', 'MFLOP/s', 'GFLOP/s', 'TFLOP/s', 'PFLOP/s']);
  const count = (v) => (unknown(v) ? 'n/a' : Math.round(v).toString().replace(/\B(?=(\d{3})+$)/g, ','));

  function percent(share) {
    if (unknown(share)) return 'n/a';
    if (share > 0 && share < 0.0005) return '<0.1 %';
    if (share >= 0.9995 && share < 1 - 1e-9) return '>99.9 %';
    return (share * 100).toFixed(1) + ' %';
  }

  function value(unit, v) {
    if (unknown(v)) return 'n/a';
    switch (unit) {
      case 'ns': case 'moment': return duration(v);
      case 'bytes': return bytes(v);
      case 'rate': return rate(v);
      case 'flops': return flops(v);
      case 'joules': return scaled(v * 1000, 1000, ['mJ', 'J', 'kJ', 'MJ', 'GJ']);
      case 'ratio': return unknown(v) ? 'n/a' : Number(v.toPrecision(3)).toString();
      case 'count': return count(v);
      case 'share': return percent(v);
      default: return typeof v === 'number' && !Number.isInteger(v) ? v.toFixed(2) : String(v);
    }
  }

  /* A step line {time, peak}: peak[i] holds from time[i] to time[i + 1], the last one to `end`; NaN =
   * not known. Of each of `width` pixels over [from, to) the highest value, never one of its neighbour. */
  function columns(line, from, to, width, end) {
    const { time, peak } = line, n = time.length, high = new Float64Array(Math.max(0, width)), scale = width / (to - from);
    const first = (t) => {
      let low = 0, above = n;
      while (low < above) {
        const middle = (low + above) >>> 1;
        if (time[middle] > t) above = middle; else low = middle + 1;
      }
      return Math.max(0, low - 1);
    };
    for (let i = first(from); i < n && time[i] < to; i++) {
      const stop = Math.min(i + 1 < n ? time[i + 1] : Math.max(end, time[i] + 1), to);
      const last = Math.min(width, Math.ceil((stop - from) * scale));
      for (let x = Math.max(0, Math.floor((time[i] - from) * scale)); x < last; x++) if (peak[i] > high[x]) high[x] = peak[i];
    }
    return high;
  }

  const plural = (n, one, many) => count(n) + ' ' + (n === 1 ? one : many || one + 's');
  const section = (id) => document.getElementById(id);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /* One colour for each family of work, in every section and at every zoom: its variable in the style
   * sheet, and what the legend says. Kernels share a hue; the shade tells neighbours apart, and those that
   * take most time come first and so differ. */
  const FAMILIES = { kernel: 'kernel', h2d: 'memcpy H2D', d2h: 'memcpy D2H', d2d: 'memcpy D2D and other', memset: 'memset', nvtx: 'NVTX range',
    call: 'API call', wait: 'synchronization, overhead', mark: 'mark, no end seen',
    frame: 'CPU sample', other: 'blocked', preempted: 'preempted' };
  const SHADES = ['kernel', 'kernel-1', 'kernel-2', 'kernel-3'], shades = new Map();
  function family(kind, name) {
    switch (kind) {
      case 'kernel':
        if (!shades.has(name)) shades.set(name, SHADES[shades.size % SHADES.length]);
        return shades.get(name);
      case 'copy': case 'transfer': return name.startsWith('HtoD') ? 'h2d' : name.startsWith('DtoH') ? 'd2h' : 'd2d';
      case 'fill': case 'memset': return 'memset';
      case 'range': case 'projected': return 'nvtx';
      case 'call': case 'api': return 'call';
      case 'frame': case 'running': return 'frame';
      case 'preempted': return 'preempted';
      case 'wait': case 'overhead': return 'wait';
      case 'mark': return 'mark';
      default: return 'other';
    }
  }
  /* What tells kernels apart by, where the whole of their names has no room. */
  const shortNames = new Map();
  const short = (name) => shortNames.get(name) || name;
  data.tables.filter((table) => table.name === 'kernels').forEach((table) => {
    const at = table.columns.findIndex((column) => column.key === 'name');
    table.rows.slice(0, 100).forEach((row) => family('kernel', row[at] || '(empty)'));
    table.rows.forEach((row, i) => { if (data.kernel_short_names[i]) shortNames.set(row[at], data.kernel_short_names[i]); });
  });

  /* Called with every change between light, dark and paper. */
  const repaints = [];
  function onRepaint(f) { repaints.push(f); }
  function repaint() { repaints.forEach((f) => f()); }
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
  /* Called with true before the page is printed, with false afterwards. */
  const papers = [];
  function onPaper(f) { papers.push(f); }
  function setPaper(paper) {
    document.documentElement.classList.toggle('paper', paper);
    papers.forEach((f) => f(paper));
    repaint();
  }
  window.addEventListener('beforeprint', () => setPaper(true));
  window.addEventListener('afterprint', () => setPaper(false));

  return { data, el, visible, unknown, columns, plural, section, css, family, FAMILIES, SHADES, short, onRepaint, onPaper, repaint,
    format: { duration, bytes, rate, count, percent, value } };
})();
