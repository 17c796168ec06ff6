/* Light or dark: as the system has it, or as chosen here. The dark colours are one media rule of the
 * style sheet; choosing changes when it holds. */
(function (P) {
  'use strict';
  const KEY = 'perfkit-colours';

  function darkRule() {
    return Array.from(document.styleSheets).flatMap((sheet) => Array.from(sheet.cssRules))
      .find((rule) => rule.media && rule.media.mediaText.includes('prefers-color-scheme'));
  }

  /* A page in a file may not be allowed to remember. */
  function remembered() {
    try { return localStorage.getItem(KEY); } catch (error) { return null; }
  }

  function remember(choice) {
    try { localStorage.setItem(KEY, choice); } catch (error) { /* then it is for this time only */ }
  }

  P.theme = function () {
    const rule = darkRule(), automatic = rule.media.mediaText;
    const when = { automatic, light: 'not all', dark: 'screen' };
    const choose = (choice) => {
      rule.media.mediaText = when[choice];
      P.repaint();
    };
    const select = P.el('select', { id: 'colours', onchange: () => {
      choose(select.value);
      remember(select.value);
    } }, ...Object.keys(when).map((choice) => P.el('option', { value: choice }, choice)));
    P.section('contents').append(P.el('span', { class: 'colours' },
      P.el('label', { for: 'colours' }, 'Colours '), select));
    const before = remembered();
    if (before !== null && before in when && before !== 'automatic') {
      select.value = before;
      choose(before);
    }
  };
})(window.perfkit);
