/* The head, the cards, where to look next, how busy each device was, and the trust block. */
(function (P) {
  'use strict';
  const el = P.el, data = P.data, f = P.format;

  function fact(label, value) {
    return P.unknown(value) || value === '' ? null : el('span', null, label + ' ', el('b', null, value));
  }

  /* The captures of the page by their names on it. */
  function captures() {
    if (P.runs.length < 2) return null;
    return el('p', { class: 'facts' }, ...P.runs.map((run) => el('span', null, run.label + ' ', el('a', { href: '#comparison' }, run.capture.path))),
      el('span', null, 'Text that names no capture is about the candidate.'));
  }

  function head() {
    const c = data.capture;
    const bad = c.exit_signal > 0 || c.exit_status > 0;
    document.title = 'perfkit: ' + P.visible(c.command || c.path || 'report').slice(0, 80);
    P.section('head').append(...[
      el('h1', { class: 'mono' }, el('span', { class: 'long' }, c.command || 'n/a')),
      el('p', { class: 'facts' }, fact('on', c.host), fact('started', c.start_utc),
        el('span', null, 'ended with ', el('b', { class: bad ? 'bad' : null }, c.ending)),
        fact('in', c.directory)), captures(),
      el('p', { class: 'facts' }, ...uniqueDevices().map((d) => fact(d.label, d.name + ' (' + (d.api || 'n/a') +
          (d.memory_bytes ? ', ' + f.bytes(d.memory_bytes) : '') + ')')))].filter(Boolean));
    if (data.filtered)
      P.section('head').append(el('p', { class: 'warning' },
        'A filter is set: every figure below is of a part of the capture.'));
  }

  function uniqueDevices() {
    return data.devices_seen.filter((d) => d.physical === d.id && d.name);
  }

  function contents() {
    const links = Array.from(document.querySelectorAll('main > section:not([hidden])')).map((section) =>
      el('a', { href: '#' + section.id }, section.querySelector('h2').textContent.replace(/:.*/, '')));
    P.section('contents').append(...links);
  }

  /* As prof_trust_status_words() has them. */
  const statusWords = (trust) => trust.complete ? trust.status : trust.status.toUpperCase();

  const deviceOf = (run) => run.busy.slice().sort((a, b) => b.busy_ns - a.busy_ns)[0];
  const shareOf = (device) => (device && device.window_ns > 0 ? device.busy_ns / device.window_ns : null);

  const busyWords = (device) => (device && device.behind ? 'at least ' : '') + f.percent(shareOf(device));

  function memoryNote(run, unseen) {
    if (!(run.leaks > 0)) return unseen || (run.peak_bytes > 0 ? 'everything freed' : 'no allocations');
    return P.plural(run.leaks, 'allocation') + ' (' + f.bytes(run.leaked_bytes) + ') ' +
      (/^still running|^perfkit was killed/.test(run.capture.ending) ? 'not freed so far' : 'never freed');
  }

  function trustNote(trust) {
    if (trust.complete) return trust.status === 'no loss known' ? 'calls were not counted to prove it' : 'every call counted is accounted for';
    return trust.status === 'at risk' ? 'records of its end may be missing, see Trust'
      : P.plural(trust.statements.filter((s) => s.level === 'loss').length, 'loss', 'losses') + ', see Trust';
  }

  const trustClass = (trust) => (!trust.complete ? 'bad' : trust.status === 'no loss known' ? 'open' : 'good');

  /* [kind, label, of a capture its value, and what else there is to say]. */
  function cardsOf(run) {
    const busiest = deviceOf(run), unseen = run.capture.summary ? 'a summary has no single events' : null,
      imported = run.capture.state === 'imported';
    return [['wall', 'Wall time', f.duration(run.wall_ns), null],
      ['busy', busiest ? busiest.label + ' busy' : 'Device busy', busyWords(busiest),
        busiest ? f.duration(busiest.busy_ns) + ', ' + (busiest.name || 'unnamed device') : unseen || 'no device work was recorded'],
      ['kernels', 'Kernels', f.count(run.kernels),
        run.kernels_in_graphs > 0 ? 'executions; ' + f.count(run.kernels_in_graphs) + ' in graphs' : run.kernels === 1 ? 'launch' : 'launches'],
      ['transfers', 'Memcpy', f.bytes(run.memcpy_bytes), unseen || P.plural(run.memcpys, 'memcpy') +
        (run.memsets > 0 ? '; ' + P.plural(run.memsets, 'memset') + ', ' + f.bytes(run.memset_bytes) : '')],
      imported && !(run.peak_bytes > 0) ? ['memory', 'Peak memory', 'n/a', 'the imported file has no allocations']
        : ['memory', 'Peak memory', f.bytes(run.peak_bytes), memoryNote(run, unseen)],
      [trustClass(run.trust), 'Capture', statusWords(run.trust), trustNote(run.trust)]];
  }

  /* One for each figure: the candidate's, and below it those of the others. */
  function cards() {
    const all = P.runs.map(cardsOf), several = all.length > 1;
    return el('div', { class: 'cards' }, ...all[0].map(([kind, label, value, note], k) => {
      const trust = k === all[0].length - 1;
      return el('div', { class: 'card', id: 'card-' + kind }, el('span', { class: 'label' }, label + (several ? ', candidate' : '')),
        el('span', { class: 'value' + (kind === 'bad' || kind === 'good' ? ' ' + kind : '') }, trust ? el('a', { href: '#trust' }, value) : value),
        note ? el('span', { class: 'note' }, note) : null,
        ...all.slice(1).map((run, i) => el('span', { class: 'other' }, P.runs[i + 1].label + ' ', el('b', { class: trust ? run[k][0] : null }, run[k][2]))));
    }));
  }

  /* Share of each span of time in which the device was busy, as an area; kernels are drawn over all of it. */
  function area(values, width, height) {
    let path = 'M0 ' + height;
    values.forEach((v, i) => {
      const x = (i * width) / values.length, next = ((i + 1) * width) / values.length;
      const y = (height - v * height).toFixed(1);
      path += 'L' + x.toFixed(1) + ' ' + y + 'L' + next.toFixed(1) + ' ' + y;
    });
    return path + 'L' + width + ' ' + height + 'Z';
  }

  function key(colour, text) {
    return el('span', { class: 'keyed' },
      el('span', { class: 'legend', style: 'background:var(' + colour + ')' }), text);
  }

  /* Where nothing was recorded. */
  function unknown(values, width, height) {
    return values.map((v, i) => v !== null ? '' : 'M' + ((i * width) / values.length).toFixed(1) + ' 0h' +
      (width / values.length).toFixed(1) + 'v' + height + 'h-' + (width / values.length).toFixed(1) + 'Z').join('');
  }

  function strip(device, run) {
    const width = 1000, height = 44, gaps = unknown(device.all, width, height);
    const share = busyWords(device), whose = P.runs.length > 1 ? run.label + ' ' : '';
    const words = whose + device.label + ' busy ' + share + ' of the time';
    return el('div', { class: 'strip' },
      el('p', null, el('b', null, whose + device.label), ' ' + (device.name || '') + ': busy ' + share +
        ', ' + f.duration(device.busy_ns) + ' of ' + f.duration(device.window_ns),
        key('--kernel', 'kernels'), ' ', key('--h2d', 'memcpy and memset'), ...(gaps ? [' ', key('--dim', 'not recorded')] : [])),
      el('svg', { viewBox: '0 0 ' + width + ' ' + height, preserveAspectRatio: 'none', height,
        role: 'img', 'aria-label': words },
      ...(gaps ? [el('path', { d: gaps, style: 'fill:var(--dim)' })] : []),
      el('path', { d: area(device.all, width, height), style: 'fill:var(--h2d)' }),
      el('path', { d: area(device.kernels, width, height), style: 'fill:var(--kernel)' })));
  }

  /* Paper has nothing to click: what is folded is open there. */
  function openOnPaper() {
    let closed = [];
    P.onPaper((paper) => {
      if (paper) closed = Array.from(document.querySelectorAll('details:not([open])'));
      closed.forEach((details) => { details.open = paper; });
    });
  }

  /* A link to what is folded unfolds it. */
  function openTarget() {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (!target || target.tagName !== 'DETAILS') return;
    for (let one = target; one; one = one.parentElement.closest('details')) one.open = true;
    target.scrollIntoView(); /* it may have been folded in another */
  }

  P.overview = function () {
    head();
    P.section('summary').append(cards());
    if (data.next.length)
      P.section('busy').append(el('ul', { class: 'steps' }, ...data.next.map((step) => el('li', null,
        ...step.split(/(--[a-z][a-z=-]*)/).map((part, i) => (i % 2 ? el('span', { class: 'keyed' }, part) : part))))));
    P.runs.forEach((run) => run.busy.forEach((device) => P.section('busy').append(strip(device, run))));
    openOnPaper();
    window.addEventListener('hashchange', openTarget);
    openTarget();
  };

  function balance(row) {
    const words = [['failed', row.failed], ['captured into graphs', row.captured],
      ['dropped', row.dropped], ['outstanding', row.outstanding], ['filtered out', row.filtered],
      ['without their call', row.uncalled], ['missing', row.remainder]];
    const rest = words.filter(([, v]) => v).map(([w, v]) => f.count(v) + ' ' + w);
    return el('li', null, row.subject + ': ' + [f.count(row.called) + ' called',
      f.count(row.recorded) + ' recorded', ...rest].join(', '));
  }

  function trustOf(run) {
    const trust = run.trust, place = P.section('trust');
    const meaning = trust.status === 'at risk' ? 'records of its end may be missing'
      : !trust.complete ? 'figures may lack work'
      : trust.status === 'no loss known' ? 'but calls were not counted to prove it'
        : 'every call that was counted is accounted for';
    place.append(el('p', null, P.runs.length > 1 ? run.title + ': ' : 'This capture: ',
      el('span', { class: trust.complete ? 'good' : 'bad' }, statusWords(trust)), ', ' + meaning + '.',
      P.unknown(trust.clock_error_ns) ? ''
        : ' Device times are off by at most ' + f.duration(trust.clock_error_ns) + '.'));
    const marks = { loss: ['bad', 'Loss: '], risk: ['bad', 'Risk: '], warning: ['warning', 'Warning: '], note: ['faint', 'Note: '] };
    const line = (s) => el('li', null, el('span', { class: marks[s.level][0] }, marks[s.level][1]), s.text);
    const list = el('ul', { class: 'statements' }, ...trust.statements.slice(0, 40).map(line));
    if (trust.statements.length) place.append(list);
    if (trust.statements.length > 40)
      place.append(el('details', null, el('summary', null, P.plural(trust.statements.length - 40, 'more line')),
        el('ul', { class: 'statements' }, ...trust.statements.slice(40).map(line))));
    if (trust.totals.length)
      place.append(el('details', { open: !trust.complete }, el('summary', null, 'Calls and records'),
        el('ul', null, ...trust.totals.map(balance))));
  }

  P.trust = () => P.runs.forEach(trustOf);

  P.finish = function () {
    const c = data.capture;
    contents();
    P.section('foot').append(el('p', null, 'perfkit ' + (c.perfkit_version || 'n/a') + ', capture ' +
      (c.path || 'n/a') + ', ' + f.bytes(c.file_bytes) + '. Unknown values are n/a, never 0.'));
  };
})(window.perfkit);
