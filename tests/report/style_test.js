/* The contrast of the HTML report's colours, computed from its style sheet (WCAG 2, success criteria
 * 1.4.3 and 1.4.11): text against what it stands on 4.5, marks and frames of focus 3. Each slice of a bar has a colour.
 *     node style_test.js STYLE_SHEET */
'use strict';
const fs = require('fs');
const path = require('path');
const assert = require('assert');

const style = fs.readFileSync(process.argv[2], 'utf8');

function colours(block) {
  return Object.fromEntries(Array.from(block.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6})/g), (m) => [m[1], m[2]]));
}

const blocks = Array.from(style.matchAll(/:root[^{]*\{([^}]*)\}/g), (m) => colours(m[1]));
assert.strictEqual(blocks.length, 2, 'light, then dark');
const themes = { light: blocks[0], dark: Object.assign({}, blocks[0], blocks[1]) };
assert.deepStrictEqual(Object.keys(blocks[0]).sort(), Object.keys(blocks[1]).sort(), 'every colour has both');

/* The states of the waterfall, and what the bars of ranks name: each has a rule, and each rule is of one. */
const product = (...names) => fs.readFileSync(path.join(path.dirname(process.argv[2]), '..', '..', ...names), 'utf8');
const states = Array.from(product('libprof', 'include', 'prof_findings.h').matchAll(/^ {4}X\([A-Z_]+, "([a-z_]+)"/gm), (m) => m[1]);
const named = Array.from(product('report', 'html_panels.c').matchAll(/slice-([a-z_]+)/g), (m) => m[1]);
assert.ok(states.includes('kernel') && named.includes('wait'));
assert.deepStrictEqual(Array.from(style.matchAll(/\.slice-([a-z_]+) \{/g), (m) => m[1]).sort(), [...new Set([...states, ...named])].sort());

function luminance(hex) {
  const part = (i) => {
    const v = parseInt(hex.slice(i, i + 2), 16) / 255;
    return v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

function contrast(a, b) {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

const grounds = ['page', 'panel'];
const texts = ['text', 'faint', 'link', 'good', 'bad', 'warn'].flatMap((ink) => grounds.map((ground) => [ink, ground]));
const families = ['kernel', 'kernel-1', 'kernel-2', 'kernel-3', 'h2d', 'd2h', 'd2d', 'memset', 'nvtx', 'call', 'wait', 'mark', 'frame', 'other', 'preempted'];
families.forEach((ground) => texts.push(['slice-text', ground]));
['bad', 'warn', 'faint'].forEach((badge) => texts.push(['page', badge]));
texts.push(['text', 'bar'], ['faint', 'dim']);
const marks = ['focus', ...families].flatMap((ink) => grounds.map((ground) => [ink, ground]));

let poor = 0;
for (const [name, theme] of Object.entries(themes)) {
  for (const [least, pairs] of [[4.5, texts], [3, marks]]) {
    for (const [ink, ground] of pairs) {
      assert.ok(theme[ink] && theme[ground], ink + ' on ' + ground);
      const ratio = contrast(theme[ink], theme[ground]);
      if (ratio >= least) continue;
      poor++;
      console.log(name + ': ' + ink + ' on ' + ground + ' is ' + ratio.toFixed(2) + ', not ' + least);
    }
  }
}
process.exitCode = poor ? 1 : 0;
