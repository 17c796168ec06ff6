/* How hands reach the timeline: keys, wheel, drag, pinch. One table of keys: what is pressed, what the
 * help says, what is done. Everything that a pointer does has its key. */
(function (P) {
  'use strict';
  const el = P.el;

  function keyTable(t) {
    const bySlice = (step, pan) => () => (t.view.selected >= 0 ? step() : pan());
    return [
      { keys: ['ArrowLeft', 'ArrowRight'], shown: '\u2190 \u2192', what: 'previous, next event of the row; move the view while no event is selected',
        run: [bySlice(() => t.step(-1), () => t.pan(-0.15)), bySlice(() => t.step(1), () => t.pan(0.15))] },
      { keys: ['ArrowUp', 'ArrowDown'], shown: '\u2191 \u2193', what: 'row above, below; while no event is selected the track',
        run: [bySlice(() => t.stepRow(-1), () => t.moveTrack(-1)), bySlice(() => t.stepRow(1), () => t.moveTrack(1))] },
      { keys: ['Enter'], shown: 'Enter', what: 'select an event of the track in view; tell and frame the selected one', run: [t.enter] },
      { keys: [',', '.'], shown: ', .', what: 'previous, next event of the track', run: [() => t.stepTrack(-1), () => t.stepTrack(1)] },
      { keys: ['a', 'd'], shown: 'A D', what: 'move the view', run: [() => t.pan(-0.15), () => t.pan(0.15)] },
      { keys: ['w', 's'], shown: 'W S', what: 'zoom in, out', run: [() => t.zoom(0.6), () => t.zoom(1 / 0.6)] },
      { keys: ['+', '=', '-'], shown: '+ \u2212', what: 'zoom in, out', run: [() => t.zoom(0.6), () => t.zoom(0.6), () => t.zoom(1 / 0.6)] },
      { keys: ['0', 'Home'], shown: '0 Home', what: 'everything', run: [t.everything, t.everything] },
      { keys: ['f'], shown: 'F', what: 'zoom to the selected event, or to the range', run: [t.frame] },
      { keys: ['g'], shown: 'G', what: 'from a call to what it launched, and back', run: [t.follow] },
      { keys: ['/'], shown: '/', what: 'search', run: [t.focusSearch] },
      { keys: ['n', 'N'], shown: 'N Shift+N', what: 'next, previous match or instance', run: [() => t.nextMatch(1), () => t.nextMatch(-1)] },
      { keys: ['l', 'x'], shown: 'L X', what: 'the longest match or instance; all of them in view', run: [t.longestMatch, t.allMatches] },
      { keys: ['c'], shown: 'C', what: 'fold, unfold the process of the track where there are several, else the track (as a click on its name)', run: [t.foldHere] },
      { keys: ['<', '>'], shown: '< >', what: 'make the track lower, higher', run: [() => t.heighten(-1), () => t.heighten(1)] },
      { keys: ['h', 'H'], shown: 'H Shift+H', what: 'hide the track; show all', run: [t.hideHere, t.showRows] },
      { keys: ['p'], shown: 'P', what: 'pin the track: it stays in sight above the others; back', run: [t.pinHere] },
      { keys: ['e'], shown: 'E', what: 'fill the window, and back', run: [t.fill] },
      { keys: ['m'], shown: 'M', what: 'statistics of the span of the selected event', run: [t.rangeOfSelected] },
      { keys: ['v'], shown: 'V', what: 'statistics of what is in view', run: [t.rangeOfView] },
      { keys: ['[', ']'], shown: '[ ]', what: 'begin, end the range at the selected event', run: [() => t.rangeEdge('from'), () => t.rangeEdge('to')] },
      { keys: ['Escape'], shown: 'Esc', what: 'clear the range, the selection, the marks; then back from the whole window', run: [t.clear] },
      { keys: ['?'], shown: '?', what: 'this list', run: [t.help] },
    ];
  }
  const POINTER = [['drag', 'move the view'], ['drag the lower edge of a track\u2019s name', 'make the track higher or lower'], ['Shift and drag, or drag on the ruler', 'select a range: statistics'],
    ['wheel, once the timeline is clicked; else Ctrl and wheel; pinch', 'zoom'], ['Shift and wheel, or sideways', 'move the view'],
    ['click', 'select an event'], ['double click', 'zoom to it']];

  P.TimelineHelp = function (timeline) {
    const line = ([key, what]) => el('tr', null, el('th', { scope: 'row', class: 'left' }, key), el('td', { class: 'left' }, what));
    const close = el('button', { type: 'button', onclick: () => dialog.close() }, 'Close');
    const dialog = el('dialog', { id: 'timeline-help', 'aria-labelledby': 'timeline-help-title' },
      el('div', { class: 'tools' }, el('h3', { id: 'timeline-help-title' }, 'Keys of the timeline'), close),
      el('table', null, el('tbody', null, ...keyTable(timeline).map((row) => line([row.shown, row.what])), ...POINTER.map(line))));
    return dialog;
  };

  P.timelineKeys = function (scroll, timeline) {
    const actions = {};
    keyTable(timeline).forEach((row) => row.keys.forEach((key, k) => { actions[key] = row.run[k]; }));
    scroll.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const action = actions[event.key] || actions[event.key.toLowerCase()];
      if (!action) return;
      event.preventDefault();
      action();
    });
  };

  /* The wheel zooms with Ctrl (also what a pinch on a touchpad sends), or once the timeline has the
   * focus; else the page scrolls, as over anything. Sideways it moves the view. */
  P.timelineWheel = function (scroll, canvas, timeline) {
    const draw = timeline.draw, view = timeline.view;
    scroll.addEventListener('wheel', (event) => {
      const box = canvas.getBoundingClientRect(), width = draw.width - draw.gutter;
      const overLabels = event.clientX - box.left < draw.gutter;
      const pixels = event.deltaMode ? 33 : 1; /* lines, where a wheel counts in them */
      if (event.ctrlKey || event.metaKey ||
          (document.activeElement === scroll && !event.shiftKey && !overLabels && Math.abs(event.deltaY) > Math.abs(event.deltaX))) {
        event.preventDefault();
        const by = Math.max(-80, Math.min(80, event.deltaY * pixels)) * (event.ctrlKey ? 0.008 : 0.004);
        timeline.zoom(Math.exp(by), draw.time(view, event.clientX - box.left));
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
        event.preventDefault();
        timeline.pan(((event.deltaX || event.deltaY) * pixels) / width);
      }
    }, { passive: false });
  };

  /* One pointer drags the view, or a range; two pinch; none held points. */
  P.timelinePointers = function (canvas, timeline) {
    const draw = timeline.draw, view = timeline.view, held = new Map();
    let grip = null;
    const point = (event) => {
      const box = canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };

    function grab(at, event) {
      const ranging = event.shiftKey || at.y < draw.RULER, hit = draw.hit(view, at.x, at.y), edge = hit && hit.edge ? hit.label : -1;
      grip = { at, edge, high: edge < 0 ? 0 : draw.highOf(edge), from: view.from, to: view.to, top: view.top, moved: false, time: draw.time(view, at.x), ranging };
    }

    function pinch() {
      const [a, b] = [...held.values()], wide = Math.max(20, Math.abs(a.x - b.x)), middle = (a.x + b.x) / 2;
      if (!grip || !grip.wide) {
        grip = { wide, span: view.to - view.from, time: draw.time(view, middle), moved: true };
        return;
      }
      const span = (grip.span * grip.wide) / wide, share = (middle - draw.gutter) / (draw.width - draw.gutter);
      timeline.show(grip.time - span * share, grip.time + span * (1 - share));
    }

    canvas.addEventListener('pointerdown', (event) => {
      if (event.button) return;
      const at = point(event);
      held.set(event.pointerId, at);
      canvas.setPointerCapture(event.pointerId);
      if (held.size === 1) grab(at, event);
      else if (held.size === 2) pinch();
    });
    canvas.addEventListener('pointermove', (event) => {
      const at = point(event);
      if (!held.has(event.pointerId)) {
        timeline.point(at);
        canvas.style.cursor = (draw.hit(view, at.x, at.y) || {}).edge ? 'ns-resize' : '';
        return;
      }
      held.set(event.pointerId, at);
      if (held.size === 2) {
        pinch();
        return;
      }
      if (!grip || grip.wide) return;
      if (Math.hypot(at.x - grip.at.x, at.y - grip.at.y) > 3) grip.moved = true;
      if (!grip.moved) return;
      timeline.point(null);
      if (grip.edge >= 0) {
        timeline.drag(grip.edge, grip.high + (at.y - grip.at.y) / timeline.model.tracks[grip.edge].rows.length);
      } else if (grip.ranging) {
        timeline.drawRange(grip.time, draw.time(view, at.x));
      } else {
        const ns = ((at.x - grip.at.x) * (grip.to - grip.from)) / (draw.width - draw.gutter);
        timeline.show(grip.from - ns, grip.to - ns);
        timeline.scrollTo(grip.top - (at.y - grip.at.y));
      }
    });
    canvas.addEventListener('pointerup', (event) => {
      held.delete(event.pointerId);
      if (grip && !grip.moved) timeline.click(grip.at);
      else if (grip && grip.ranging) timeline.tellRange();
      grip = null;
    });
    canvas.addEventListener('pointercancel', (event) => {
      held.delete(event.pointerId);
      grip = null;
    });
    canvas.addEventListener('pointerleave', () => timeline.point(null));
    canvas.addEventListener('dblclick', timeline.frame);
  };
})(window.perfkit);
