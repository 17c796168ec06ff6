/* Flame graph from the top down: who asked for the device's time. A click or Enter makes a frame the
 * whole width; arrow keys walk the tree. Frames narrower than a pixel are not made. */
(function (P) {
  'use strict';
  const el = P.el, f = P.format;
  const HEIGHT = 20;

  function build(source) {
    const nodes = source.nodes.map(([parent, kind, name, self, total, count], id) =>
      ({ id, parent, kind, name: name || '(empty)', self, total, count, children: [] }));
    nodes.forEach((node) => { if (node.parent >= 0) nodes[node.parent].children.push(node); });
    nodes.forEach((node) => node.children.sort((a, b) => b.total - a.total));
    return nodes;
  }

  const depthOf = (nodes, node) => (node.parent < 0 ? 0 : 1 + depthOf(nodes, nodes[node.parent]));

  P.flame = function () {
    const place = P.section('flame'), source = P.data.flame;
    const nodes = source && source.nodes.length ? build(source) : [];
    if (!nodes.length || !nodes[0].total) {
      place.append(el('p', { class: 'none' }, 'no device work'));
      return;
    }
    const root = nodes[0];
    let top = root, wanted = '';
    const frame = el('div', { class: 'flame', role: 'tree', 'aria-label': 'Flame graph' });
    const details = el('div', { class: 'details', 'aria-live': 'polite' });
    const search = el('input', { type: 'search', id: 'flame-search', oninput: () => {
      wanted = search.value.trim().toLowerCase();
      draw();
    } });

    function tell(node) {
      details.replaceChildren(el('b', { class: 'mono long' }, node.name), el('span', null,
        node.kind + ' \u00b7 ' + f.duration(node.total) + ' of device time \u00b7 ' + f.percent(node.total / root.total) +
        ' of all' + (node.count ? ' \u00b7 ' + P.plural(node.count, 'operation') + ' of its own' : '')));
    }

    function focus(node) {
      const button = frame.querySelector('[data-node="' + node.id + '"]');
      if (!button) return;
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
      else if (!target) return;
      else focus(target);
      event.preventDefault();
    }

    function zoomTo(node) {
      top = node;
      draw();
      focus(node);
    }

    function add(list, node, x, wide, level, above) {
      const dimmed = wanted && !node.name.toLowerCase().includes(wanted);
      const button = el('button', { type: 'button', 'data-node': node.id, role: 'treeitem', tabindex: -1,
        'aria-level': level + 1, class: (above ? 'above ' : '') + (dimmed ? 'dimmed' : ''),
        'aria-label': node.name.slice(0, 300) + ', ' + f.duration(node.total) + ', ' + f.percent(node.total / root.total),
        onclick: () => zoomTo(node), onmouseenter: () => tell(node), onfocus: () => tell(node),
        onkeydown: (event) => key(event, node) }, wide > 24 ? node.name.slice(0, 300) : '');
      button.style.left = x + 'px';
      button.style.width = wide + 'px';
      button.style.top = level * HEIGHT + 'px';
      button.style.background = node.kind === 'api' ? 'var(--call)' : 'var(--s' + P.colour(node.name) + ')';
      list.push(button);
    }

    function draw() {
      const width = frame.clientWidth || 800, list = [];
      let deepest = 0, level = depthOf(nodes, top);
      for (let node = top, l = level; node.parent >= 0; l--) {
        node = nodes[node.parent];
        add(list, node, 0, width, l - 1, true);
      }
      (function walk(node, x, wide, l) {
        if (wide < 1) return;
        deepest = Math.max(deepest, l);
        add(list, node, x, wide, l, false);
        let left = x;
        node.children.forEach((child) => {
          const share = (child.total / node.total) * wide;
          walk(child, left, share, l + 1);
          left += share;
        });
      })(top, 0, width, level);
      frame.style.height = (deepest + 1) * HEIGHT + 'px';
      frame.replaceChildren(...list);
      const first = frame.querySelector('[data-node="' + top.id + '"]');
      if (first) first.tabIndex = 0;
    }

    place.append(el('p', { class: 'faint' }, 'Device time by who asked for it: NVTX ranges, then the call, then the kernel or copy. ' +
      'Select a frame to zoom into it, the top frame to come back.' +
      (source.left_out ? ' ' + P.plural(source.left_out, 'small frame') + ' left out.' : '')),
    el('div', { class: 'tools' }, el('label', { for: 'flame-search' }, 'Search'), search,
      el('button', { type: 'button', onclick: () => zoomTo(root) }, 'Everything')), frame, details);
    tell(root);
    new ResizeObserver(draw).observe(frame.parentNode);
    draw();
    P.flameView = { nodes, zoomTo, get top() { return top; } };
  };
})(window.perfkit);
