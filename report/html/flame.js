/* Flame graph from the top down: the code that used the device's time, moved the bytes, or launched so late that
 * the device idled. A click or Enter makes a frame the whole width; arrow keys walk the tree. Frames narrower
 * than a pixel are not made. */
(function (P) {
  'use strict';
  const el = P.el, f = P.format;
  const HEIGHT = 20, LEVELS = 60, ABOVE = 12; /* drawn below and above the top frame */

  const MEASURES = {
    time: { of: 'ns', format: f.duration, words: 'of device time' },
    bytes: { of: 'bytes', format: f.bytes, words: 'moved or set' },
    idle: { of: 'idle', format: f.duration, words: 'that the device had idled before it' },
  };

  function build(source) {
    const nodes = source.nodes.map(([parent, kind, name, ns, bytes, count, idle, file, line], id) =>
      ({ id, parent, kind, name: name || '(empty)', ns, bytes, count, idle, total: ns, depth: 0, children: [],
        place: file ? file + (line ? ':' + line : '') : '' }));
    nodes.slice(1).forEach((node) => { /* parents stand before their children */
      node.depth = nodes[node.parent].depth + 1;
      nodes[node.parent].children.push(node);
    });
    return nodes;
  }

  function measureBy(nodes, measure) {
    nodes.forEach((node) => { node.total = node[measure.of]; });
    nodes.forEach((node) => node.children.sort((a, b) => b.total - a.total));
  }

  const matches = (node, wanted) => node.name.toLowerCase().includes(wanted) || node.place.toLowerCase().includes(wanted);

  /* What the search found, each frame once: those inside a found one are of it already. */
  function sumFound(nodes, wanted) {
    const sum = { frames: 0, total: 0 }, inside = new Uint8Array(nodes.length);
    nodes.slice(1).forEach((node) => {
      const hit = matches(node, wanted);
      inside[node.id] = hit || inside[node.parent] ? 1 : 0;
      if (hit) sum.frames++;
      if (hit && !inside[node.parent]) sum.total += node.total;
    });
    return sum;
  }

  P.flame = function () {
    const place = P.section('flame'), source = P.data.flame;
    const nodes = source && source.nodes.length ? build(source) : [];
    if (!nodes.length || !(nodes[0].ns || nodes[0].bytes)) {
      place.append(el('p', { class: 'none' }, 'no device work'));
      return;
    }
    const root = nodes[0];
    let top = root, wanted = '', width = 0, measure = MEASURES[root.ns ? 'time' : 'bytes'];
    measureBy(nodes, measure);
    const frame = el('div', { class: 'flame', role: 'tree', 'aria-label': 'Flame graph', onmouseleave: () => tell(top) });
    const details = el('div', { class: 'details', 'aria-live': 'polite' });
    const search = el('input', { type: 'search', id: 'flame-search', oninput: () => {
      wanted = search.value.trim().toLowerCase();
      tellFound();
      draw();
    } });
    const found = el('span', { class: 'faint', 'aria-live': 'polite', id: 'flame-found' });
    const by = el('select', { id: 'flame-measure', onchange: () => {
      measure = MEASURES[by.value];
      measureBy(nodes, measure);
      top = root;
      tellFound();
      tell(root);
      draw();
    } }, root.ns ? el('option', { value: 'time' }, 'time') : null,
    root.bytes ? el('option', { value: 'bytes' }, 'bytes') : null,
    root.idle ? el('option', { value: 'idle' }, 'idle time before') : null);

    function tellFound() {
      const sum = wanted ? sumFound(nodes, wanted) : null;
      found.textContent = !sum ? '' : !sum.frames ? 'no frame'
        : P.plural(sum.frames, 'frame') + ', ' + f.percent(sum.total / root.total) + ' of all';
    }

    function tell(node) {
      details.replaceChildren(el('b', { class: 'mono long' }, node.name), el('span', null,
        (node.kind === 'frame' ? 'function' : node.kind) + (node.place ? ' at ' + node.place : '') + ' \u00b7 ' + measure.format(node.total) + ' ' + measure.words + ' \u00b7 ' + f.percent(node.total / root.total) +
        ' of all' + (node.count ? ' \u00b7 ' + P.plural(node.count, 'operation') + ' of its own' : '')));
      const locate = P.placeOfFrame(node, above(node));
      if (locate) details.append(el('p', null, el('button', { type: 'button', onclick: locate }, 'Show on the timeline')));
    }

    function above(node) {
      const list = [];
      for (let one = nodes[node.parent]; one; one = nodes[one.parent]) list.push(one);
      return list;
    }

    const find = (node) => frame.querySelector('[data-node="' + node.id + '"]');

    function focus(node) {
      if (!find(node)) { /* too narrow or too deep to be drawn */
        top = node;
        draw();
      }
      const button = find(node);
      frame.querySelectorAll('[tabindex="0"]').forEach((b) => { b.tabIndex = -1; });
      button.tabIndex = 0;
      button.focus();
    }

    function key(event, node) {
      const siblings = node.parent < 0 ? [node] : nodes[node.parent].children;
      const at = siblings.indexOf(node);
      const target = { ArrowDown: node.children[0], ArrowUp: nodes[node.parent], ArrowRight: siblings[at + 1],
        ArrowLeft: siblings[at - 1] }[event.key];
      if (event.key === 'Escape') zoomTo(root);
      else if (event.key === 't' && P.placeOfFrame(node, above(node))) P.placeOfFrame(node, above(node))();
      else if (!target) return;
      else focus(target);
      event.preventDefault();
    }

    function zoomTo(node) {
      top = node;
      draw();
      focus(node);
    }

    /* x and wide as shares, so that paper of another width shows the same. */
    function add(list, node, x, wide, level, above) {
      const dimmed = wanted && !matches(node, wanted);
      const button = el('button', { type: 'button', 'data-node': node.id, role: 'treeitem', tabindex: -1,
        'aria-level': level + 1, class: (above ? 'above ' : '') + (dimmed ? 'dimmed' : ''),
        'aria-label': node.name.slice(0, 300) + ', ' + measure.format(node.total) + ', ' + f.percent(node.total / root.total),
        onclick: () => zoomTo(node), onmouseenter: () => tell(node), onfocus: () => tell(node),
        onkeydown: (event) => key(event, node) }, wide * frame.clientWidth > 24 ? P.short(node.name).slice(0, 300) : '');
      button.style.left = x * 100 + '%';
      button.style.width = wide * 100 + '%';
      button.style.top = level * HEIGHT + 'px';
      button.style.background = 'var(--' + P.family(node.kind, node.name) + ')';
      list.push(button);
    }

    function draw() {
      width = frame.clientWidth;
      const least = 1 / (width || 800), list = [];
      const base = Math.max(0, top.depth - ABOVE), level = top.depth - base;
      let deepest = 0;
      for (let node = nodes[top.parent]; node && node.depth >= base; node = nodes[node.parent])
        add(list, node, 0, 1, node.depth - base, true);
      (function walk(node, x, wide, l) {
        if (!(wide >= least) || l > level + LEVELS) return;
        deepest = Math.max(deepest, l);
        add(list, node, x, wide, l, false);
        let left = x;
        node.children.forEach((child) => {
          const share = (child.total / node.total) * wide;
          walk(child, left, share, l + 1);
          left += share;
        });
      })(top, 0, 1, level);
      frame.style.height = (deepest + 1) * HEIGHT + 'px';
      frame.replaceChildren(...list);
      const first = find(top);
      if (first) first.tabIndex = 0;
    }

    place.append(el('p', { class: 'faint' }, 'From the top down: ' + (nodes.some((node) => node.kind === 'frame') ? 'the host\u2019s stack, ' : '') +
      'NVTX ranges, the API call, the kernel or memcpy. ' +
      'Select a frame to zoom in, the top frame to zoom out; T shows the focused one on the timeline.' +
      (source.left_out ? ' ' + P.plural(source.left_out, 'small frame') + ' left out.' : '')),
    el('div', { class: 'tools' }, el('label', { for: 'flame-measure' }, 'Width by'), by,
      el('label', { for: 'flame-search' }, 'Search'), search, found,
      el('button', { type: 'button', onclick: () => zoomTo(root) }, 'Everything')), frame, details);
    tell(root);
    new ResizeObserver(() => { if (frame.clientWidth !== width) draw(); }).observe(frame);
    draw();
    P.flameView = { nodes, zoomTo, get top() { return top; } };
  };
})(window.perfkit);
