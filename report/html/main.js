/* Puts the page together, section by section; a section that fails says so and the rest stands. */
(function (P) {
  'use strict';
  [['overview', 'overview'], ['trust', 'trust'], ['tables', 'tables'], ['memory', 'memory'],
    ['timeline', 'timeline'], ['flame', 'flame'], ['finish', 'foot']].forEach(([step, place]) => {
    try {
      P[step]();
    } catch (error) {
      console.error('perfkit: ' + step + ': ' + error.stack);
      const target = P.section(place);
      if (target) target.append(P.el('p', { class: 'bad' }, 'This section could not be shown: ' + error.message));
    }
  });
  document.documentElement.setAttribute('data-ready', 'true');
})(window.perfkit);
