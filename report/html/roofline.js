/* The roofline's picture is markup; here its points tell what they are where the mouse or the focus
 * is, and the list below it shows which one that was. */
(function (P) {
  'use strict';

  function enliven(figure) {
    const tip = figure.querySelector('.tip'), rest = 'Point at a disc, or tab through them, to see what it is.';
    const points = Array.from(figure.querySelectorAll('.point'));
    const lines = Array.from(figure.querySelectorAll('li'));
    const pair = (number) => [...points, ...lines].filter((node) => node.dataset.point === number);
    const on = (event) => {
      const number = event.currentTarget.dataset.point;
      off();
      pair(number).forEach((node) => node.classList.add('told'));
      tip.textContent = number + ': ' + points.find((point) => point.dataset.point === number).getAttribute('aria-label');
    };
    const off = () => {
      figure.querySelectorAll('.told').forEach((node) => node.classList.remove('told'));
      tip.textContent = rest;
    };
    [...points, ...lines].forEach((node) => {
      node.addEventListener('mouseenter', on);
      node.addEventListener('focus', on);
      node.addEventListener('mouseleave', off);
      node.addEventListener('blur', off);
    });
    figure.addEventListener('keydown', (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const here = points.indexOf(document.activeElement);
      if (!step || here < 0) return;
      event.preventDefault();
      points[(here + step + points.length) % points.length].focus();
    });
    off();
  }

  P.roofline = () => document.querySelectorAll('figure.roofline').forEach(enliven);
})(window.perfkit);
