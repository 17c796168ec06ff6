/* Flame graph: the code that used the device's time, moved the bytes, or launched so late that the device idled. From the
 * top down, with NVTX ranges or the operations first, or one frame with all of its callers and callees; against a
 * another capture where the page has one. The widest frames are on the left. A click or Enter makes a frame the whole width;
 * arrow keys walk the tree. Frames narrower than a pixel are not made. */
(function (P) {
  'use strict';
  const el = P.el, f = P.format;
  const HEIGHT = 20, LEVELS = 60, ABOVE = 12; /* drawn below and above the top frame */
  const CHANGED = 0.02; /* of a frame's own measure: less is not coloured */

  const RENAMED = ['range', 'process'];
  const KINDS = { frame: 'function', api: 'API call', transfer: 'memcpy', range: 'NVTX range' };
  const MEASURES = {
    time: { of: 'ns', format: f.duration, words: 'of device time' },
    bytes: { of: 'bytes', format: f.bytes, words: 'moved or set' },
    idle: { of: 'idle', format: f.duration, words: 'that the device had idled before it' },
  };

  /* How the frames of a path are ordered, the outermost first. */
  const VIEWS = {
    'top down': (path) => path,
    'NVTX ranges first': (path) => [...path.filter((one) => one.kind === 'range'), ...path.filter((one) => one.kind !== 'range')],
    'operations first': (path) => path.slice().reverse(),
  };

  const ORDERS = { 'top down': 'stack first (top down)', 'operations first': 'operations first (inverted)' };

  /* What each node has of its own, with the frames that lead to it. */
  function pathsOf(source) {
    const nodes = source.nodes.map(([parent, kind, name, ns, bytes, count, idle, file, line]) =>
      ({ parent, kind, name: name || '(empty)', ns, bytes, idle, count, place: file ? file + (line ? ':' + line : '') : '' }));
    const own = nodes.map((node) => ({ ns: node.ns, bytes: node.bytes, idle: node.idle, count: node.count }));
    nodes.slice(1).forEach((node) => ['ns', 'bytes', 'idle'].forEach((key) => { own[node.parent][key] -= node[key]; }));
    return nodes.map((node, i) => {
      const path = [];
      for (let one = node; one.parent >= 0; one = nodes[one.parent]) path.unshift(one);
      return Object.assign(own[i], { path });
    }).filter((one) => one.ns || one.bytes || one.idle || one.count);
  }

  /* A tree of paths: those of a frame with the same name (and place, by line) are one node. */
  function build(paths, byLine) {
    const nodes = [], known = [];
    const add = (parent, kind, name, place) => {
      nodes.push({ id: nodes.length, parent, kind, name, place, ns: 0, bytes: 0, idle: 0, count: 0, total: 0, base: null, children: [],
        depth: parent < 0 ? 0 : nodes[parent].depth + 1 });
      known.push(new Map());
      if (parent >= 0) nodes[parent].children.push(nodes[nodes.length - 1]);
      return nodes.length - 1;
    };
    add(-1, 'root', 'all', '');
    paths.forEach((one) => {
      let at = 0;
      const take = (node) => { node.ns += one.ns; node.bytes += one.bytes; node.idle += one.idle; };
      take(nodes[0]);
      one.path.forEach((frame) => {
        const key = frame.kind + '\n' + frame.name + (byLine ? '\n' + frame.place : '');
        if (!known[at].has(key)) known[at].set(key, add(at, frame.kind, frame.name, byLine ? frame.place : frame.place.replace(/:\d+$/, '')));
        at = known[at].get(key);
        take(nodes[at]);
      });
      nodes[at].count += one.count;
    });
    return nodes;
  }

  function measureBy(nodes, measure) {
    nodes.forEach((node) => { node.total = node[measure.of]; });
    nodes.forEach((node) => node.children.sort((a, b) => b.total - a.total));
  }

  /* Each node's own in the other capture, by its path; 0 where it has none. Of ranges the only one that is not in the other is taken for
   * the only one that is there alone: train-before, train-after. */
  function compareWith(nodes, others, measure) {
    const keyOf = (node) => node.kind + '\n' + node.name + '\n' + node.place;
    (function walk(node, other) {
      node.base = other ? other[measure.of] : 0;
      const theirs = new Map(other ? other.children.map((child) => [keyOf(child), child]) : []), known = new Set(node.children.map(keyOf));
      const renamed = (child) => {
        const alike = (one) => one.kind === child.kind, gone = other ? other.children.filter((one) => alike(one) && !known.has(keyOf(one))) : [];
        return RENAMED.includes(child.kind) && gone.length === 1 && node.children.filter((one) => alike(one) && !theirs.has(keyOf(one))).length === 1 ? gone[0] : null;
      };
      node.children.forEach((child) => {
        const found = theirs.get(keyOf(child)) || renamed(child);
        child.was = found && found.name !== child.name ? found.name : null;
        walk(child, found);
      });
    })(nodes[0], others[0]);
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

  /* One drawn tree. state: {measure, wanted, compared}; told(node): the frame that is pointed at. */
  function Drawing(label, state, told) {
    const frame = el('div', { class: 'flame', role: 'tree', 'aria-label': label, onmouseleave: () => told(self.top) });
    const self = { frame, nodes: [], top: null };
    let width = 0;
    const find = (node) => frame.querySelector('[data-node="' + node.id + '"]');

    self.above = function (node) {
      const list = [];
      for (let one = self.nodes[node.parent]; one; one = self.nodes[one.parent]) list.push(one);
      return list;
    };

    function focus(node) {
      if (!find(node)) { /* too narrow or too deep to be drawn */
        self.top = node;
        self.draw();
      }
      const button = find(node);
      frame.querySelectorAll('[tabindex="0"]').forEach((b) => { b.tabIndex = -1; });
      button.tabIndex = 0;
      button.focus();
    }

    self.zoomTo = function (node) {
      self.top = node;
      self.draw();
      focus(node);
    };

    function key(event, node) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const siblings = node.parent < 0 ? [node] : self.nodes[node.parent].children, at = siblings.indexOf(node);
      const target = { ArrowDown: node.children[0], ArrowUp: self.nodes[node.parent], ArrowRight: siblings[at + 1],
        ArrowLeft: siblings[at - 1] }[event.key];
      if (event.key === 'Escape') self.zoomTo(self.nodes[0]);
      else if (state.keys[event.key.toLowerCase()]) state.keys[event.key.toLowerCase()](node, self);
      else if (!target) return;
      else focus(target);
      event.preventDefault();
    }

    /* Longer than the other capture's, shorter, or neither. */
    function colourOf(node) {
      if (!state.compared) return P.family(node.kind, node.name);
      const change = node.total - node.base;
      return Math.abs(change) <= CHANGED * Math.max(node.total, node.base) ? 'call' : change > 0 ? 'wait' : 'kernel';
    }

    /* x and wide as shares, so that paper of another width shows the same. */
    function add(list, node, x, wide, level, above) {
      const root = self.nodes[0], dimmed = state.wanted && !matches(node, state.wanted);
      const button = el('button', { type: 'button', 'data-node': node.id, role: 'treeitem', tabindex: -1,
        'aria-level': level + 1, class: (above ? 'above ' : '') + (dimmed ? 'dimmed' : ''),
        'aria-label': node.name.slice(0, 300) + ', ' + state.measure.format(node.total) + ', ' + f.percent(node.total / root.total),
        onclick: () => self.zoomTo(node), onmouseenter: () => told(node), onfocus: () => told(node),
        onkeydown: (event) => key(event, node) }, wide * frame.clientWidth > 24 ? P.short(node.name).slice(0, 300) : '');
      button.style.left = x * 100 + '%';
      button.style.width = wide * 100 + '%';
      button.style.top = level * HEIGHT + 'px';
      button.style.background = 'var(--' + colourOf(node) + ')';
      list.push(button);
    }

    self.draw = function () {
      width = frame.clientWidth;
      const least = 1 / (width || 800), list = [], base = Math.max(0, self.top.depth - ABOVE), level = self.top.depth - base;
      let deepest = 0;
      for (let node = self.nodes[self.top.parent]; node && node.depth >= base; node = self.nodes[node.parent])
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
      })(self.top, 0, 1, level);
      frame.style.height = (deepest + 1) * HEIGHT + 'px';
      frame.replaceChildren(...list);
      const first = find(self.top);
      if (first) first.tabIndex = 0;
    };

    self.set = function (nodes) {
      self.nodes = nodes;
      self.top = nodes[0];
      measureBy(nodes, state.measure);
    };
    new ResizeObserver(() => { if (frame.clientWidth !== width && self.top) self.draw(); }).observe(frame);
    return self;
  }

  P.flame = function () {
    const place = P.section('flame'), known = new Map(), pathsOfRun = (k) => {
      if (!known.has(k)) known.set(k, P.runs[k].flame ? pathsOf(P.runs[k].flame) : []);
      return known.get(k);
    };
    let paths = pathsOfRun(0);
    const sums = { ns: 0, bytes: 0, idle: 0 };
    P.runs.forEach((run, k) => pathsOfRun(k).forEach((one) => Object.keys(sums).forEach((key) => { sums[key] += one[key]; })));
    if (!sums.ns && !sums.bytes) {
      place.append(el('p', { class: 'none' }, 'no device work'));
      return;
    }
    const state = { measure: MEASURES[sums.ns ? 'time' : 'bytes'], wanted: '', compared: false,
      keys: { t: (node, drawing) => { const locate = locateOf(node, drawing); if (locate) locate(); }, s: (node) => sandwich(node) } };
    let middle = null; /* the frame of the sandwich */
    const main = Drawing('Flame graph', state, (node) => tell(main, node)), callers = Drawing('Callers', state, (node) => tell(callers, node));
    const details = el('div', { class: 'details', 'aria-live': 'polite' });
    const found = el('span', { class: 'faint', 'aria-live': 'polite', id: 'flame-found' });
    const callersTitle = el('h3', { hidden: true }, 'Callers, the nearest on top'), calleesTitle = el('h3', { hidden: true });
    const choose = (id, options, changed) => el('select', { id, onchange: changed }, ...options.map(([value, text]) => el('option', { value }, text)));
    const search = el('input', { type: 'search', id: 'flame-search', oninput: () => {
      state.wanted = search.value.trim().toLowerCase();
      tellFound();
      redraw();
    } });
    const by = choose('flame-measure', [['time', 'time'], ['bytes', 'bytes'], ['idle', 'idle time before']].filter(([value]) => sums[MEASURES[value].of]), () => {
      state.measure = MEASURES[by.value];
      remake();
    });
    const view = choose('flame-view', Object.keys(VIEWS).map((name) => [name, ORDERS[name] || name]), () => {
      middle = null;
      remake();
    });
    const hasFrames = P.runs.flatMap((run, k) => pathsOfRun(k)).some((one) => one.path.some((frame) => frame.kind === 'frame'));
    const lines = choose('flame-lines', [['line', 'line'], ['function', 'function']], () => remake());
    const several = P.runs.length > 1, shown = P.chooseRun('flame-of', 0, () => {
      paths = pathsOfRun(Number(shown.value));
      remake();
    });
    const against = P.chooseRun('flame-against', 1, () => remake(), 'nothing'), other = () => (several ? Number(against.value) : -1);

    function tellFound() {
      const sum = state.wanted ? sumFound(main.nodes, state.wanted) : null;
      found.textContent = !sum ? '' : !sum.frames ? 'no frame'
        : P.plural(sum.frames, 'frame') + ', ' + f.percent(sum.total / main.nodes[0].total) + ' of all';
    }

    /* Paths that lead through the middle: down from its first frame, and up from it. */
    function aroundMiddle(list) {
      const is = (frame) => frame.kind === middle.kind && frame.name === middle.name;
      const through = list.map((one) => ({ one, at: one.path.findIndex(is) })).filter(({ at }) => at >= 0);
      return { down: through.map(({ one, at }) => Object.assign({}, one, { path: one.path.slice(at) })),
        up: through.map(({ one, at }) => Object.assign({}, one, { path: one.path.slice(0, at + 1).reverse() })) };
    }

    function treesOf(list) {
      const order = VIEWS[view.value], byLine = lines.value === 'line';
      const around = middle ? aroundMiddle(list) : { down: list.map((one) => Object.assign({}, one, { path: order(one.path) })), up: [] };
      return [build(around.down, byLine), build(around.up, byLine)];
    }

    function remake() {
      const trees = treesOf(paths), others = other() < 0 ? null : treesOf(pathsOfRun(other()));
      state.compared = Boolean(others);
      [main, callers].forEach((drawing, k) => {
        drawing.set(trees[k]);
        if (others) compareWith(trees[k], others[k], state.measure);
      });
      [callersTitle, calleesTitle, callers.frame].forEach((node) => { node.hidden = !middle; });
      calleesTitle.textContent = middle ? P.visible(P.short(middle.name)) + ' and its callees' : '';
      tellFound();
      tell(main, main.top);
      redraw();
    }

    function redraw() {
      main.draw();
      if (middle) callers.draw();
    }

    function sandwich(node) {
      middle = node.kind === 'root' ? null : node;
      remake();
    }

    /* Operations first: where the operation at the tree's top is, called as the frames below it say. */
    function locateOf(node, drawing) {
      const above = drawing.above(node), path = [node, ...above].filter((one) => one.kind !== 'root');
      const reversed = drawing === callers || view.value === 'operations first';
      if (!path.length) return null;
      const run = Number(shown.value);
      return reversed ? P.placeOfFrame(path[path.length - 1], path.slice(0, -1), run) : P.placeOfFrame(node, middle ? above : path.slice(1), run);
    }

    function tell(drawing, node) {
      const root = drawing.nodes[0], words = [(KINDS[node.kind] || node.kind) + (node.place ? ' at ' + node.place : ''),
        state.measure.format(node.total) + ' ' + state.measure.words, f.percent(node.total / root.total) + ' of all'];
      if (node.count) words.push(P.plural(node.count, 'operation') + ' of its own');
      if (state.compared) {
        const change = node.total - node.base;
        words.push(P.runs[other()].label + (node.was ? ', where it is ' + node.was + ',' : '') + ' ' + state.measure.format(node.base) + ', ' + (change < 0 ? '\u2212' : '+') + state.measure.format(Math.abs(change)) +
          (node.base ? ' (' + (change < 0 ? '\u2212' : '+') + f.percent(Math.abs(change) / node.base) + ')' : ''));
      }
      details.replaceChildren(el('b', { class: 'mono long' }, node.name), el('span', null, words.join(' \u00b7 ')));
      const locate = locateOf(node, drawing), tools = el('div', { class: 'tools' });
      if (locate) tools.append(el('button', { type: 'button', onclick: locate }, 'Show on the timeline'));
      if (node.kind !== 'root') tools.append(el('button', { type: 'button', onclick: () => sandwich(node) }, 'Callers and callees'));
      if (middle) tools.append(el('button', { type: 'button', onclick: () => sandwich(main.nodes[0]) }, 'Whole graph'));
      details.append(tools);
    }

    const labelled = (text, node) => [el('label', { for: node.id }, text), node];
    place.append(el('p', { class: 'faint' }, (hasFrames ? 'The host\u2019s stack, ' : '') +
      'NVTX ranges, the API call, the kernel or memcpy; the widest on the left. ' +
      'Select a frame to zoom in, the top frame to zoom out; T shows the focused one on the timeline, S its callers and callees.' +
      (P.data.flame.left_out ? ' ' + P.plural(P.data.flame.left_out, 'small frame') + ' left out.' : '') +
      (several ? ' Against another capture red is longer, blue shorter, gray within 2 %.' : '')),
    el('div', { class: 'tools' }, ...labelled('Width by', by), ...labelled('View', view), ...(hasFrames ? labelled('Frames by', lines) : []),
      ...(several ? [...labelled('Capture', shown), ...labelled('against', against)] : []), ...labelled('Search', search), found,
      el('button', { type: 'button', onclick: () => main.zoomTo(main.nodes[0]) }, 'Everything')),
    calleesTitle, main.frame, callersTitle, callers.frame, details);
    remake();
    P.flameView = { get nodes() { return main.nodes; }, get callers() { return callers.nodes; }, sandwich, zoomTo: main.zoomTo, get top() { return main.top; } };
  };
})(window.perfkit);
