/* Puts the page together, section by section; a section that fails says so and the rest stands. */
(function (P) {
  'use strict';
  function failed(step, place, error) {
    console.error('perfkit: ' + step + ': ' + error.stack);
    const target = P.section(place);
    if (target) target.append(P.el('p', { class: 'bad' }, 'This section could not be shown: ' + error.message));
  }

  const later = []; /* of sections that are finished after the others */
  [['overview', 'overview'], ['trust', 'trust'], ['tables', 'part-kernels'], ['memory', 'part-memory'], ['roofline', 'part-roofline'], ['comparison', 'part-kernels'],
    ['timeline', 'timeline'], ['flame', 'flame'], ['finish', 'foot'], ['theme', 'contents']].forEach(([step, place]) => {
    try {
      const promise = P[step]();
      if (promise) later.push(promise.catch((error) => failed(step, place, error)));
    } catch (error) {
      failed(step, place, error);
    }
  });
  Promise.all(later).then(() => document.documentElement.setAttribute('data-ready', 'true'));
})(window.perfkit);
