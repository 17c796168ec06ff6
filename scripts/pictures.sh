#!/usr/bin/env bash
# Makes the pictures of docs/ from two captures of one program:
#
#   scripts/pictures.sh BEFORE AFTER [FOLDER]
#
# report.png, roofline.png and top.png show BEFORE, timeline.png AFTER, two-captures.png both. The
# command and the folder in them are what the captures say: to show others, change copies of the
# captures first (UPDATE capture SET command = ..., directory = ...; UPDATE process SET command =
# ...). Needs iterations in both captures, perfkit (PERFKIT, else that of build/release), node,
# chromium, chromedriver and tmux; pngquant makes the files smaller by two thirds. FOLDER: where the
# pictures go, else docs.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
before=${1:?usage: scripts/pictures.sh BEFORE AFTER [FOLDER]} after=${2:?AFTER is missing}
perfkit=${PERFKIT:-$here/build/release/bin/perfkit}
work=$(mktemp -d)
end() {
    TMUX_TMPDIR=$work tmux -L pictures kill-server 2>"$work/tmux.log" || :
    rm -rf "$work"
}
trap end EXIT

"$perfkit" report "$before" --html "$work/before.html" 2>"$work/report.log"
"$perfkit" report "$after" --html "$work/after.html" 2>>"$work/report.log"
"$perfkit" report "$before" "$after" --html "$work/both.html" 2>>"$work/report.log"

# The screen of top, once it shows the findings; with its colours.
screen() { TMUX_TMPDIR=$work tmux -L pictures -f /dev/null "$@"; }
screen new-session -d -x 120 -y 36 "TERM=tmux-256color LC_ALL=C.UTF-8 '$perfkit' top '$before'"
for _ in $(seq 100); do
    sleep 0.2
    screen capture-pane -e -p -N >"$work/top.ansi"
    grep -q 'saves at most' "$work/top.ansi" && break
done
grep -q 'saves at most' "$work/top.ansi"

node - "$here" "$work" "${3:-$here/docs}" <<'END'
'use strict';
const fs = require('fs'), path = require('path');
const { execFileSync } = require('child_process');
const [root, work, target] = process.argv.slice(2);
const { open } = require(path.join(root, 'tests/report/browser.js'));
const find = (...names) => names.map((name) => {
  try { return execFileSync('which', [name], { encoding: 'utf8' }).trim(); } catch (error) { return null; }
}).find(Boolean);
const programs = { driver: find('chromedriver'), browser: find('chromium', 'chromium-browser', 'google-chrome') };
const pngquant = find('pngquant');

/* A terminal's text with its colours as HTML: dark on light. */
const INK = ['#24292f', '#b3261e', '#2e7d32', '#8a5a00', '#0550ae', '#8250df', '#00697a', '#57606a'];
const PAPER = ['#24292f', '#ffd7d5', '#c6e9b5', '#fbe5a6', '#cfe3ff', '#ecd8ff', '#b5e6ec', '#eaeef2'];
function terminal(text) {
  let ink = '', paper = '', bold = false;
  const change = (codes) => {
    for (let i = 0; i < codes.length; i++) {
      const code = codes[i];
      if (!code) ink = paper = '', bold = false;
      else if (code === 1) bold = true;
      else if (code === 38 && codes[i + 1] === 5) ink = '#0969da', i += 2;
      else if (code >= 30 && code < 38) ink = INK[code - 30];
      else if (code >= 40 && code < 48) paper = PAPER[code - 40];
      else if (code === 39) ink = '';
      else if (code === 49) paper = '';
    }
  };
  const quote = (one) => one.replace(/&/g, '&amp;').replace(/</g, '&lt;');
  const parts = text.split(/\x1b\[([\d;]*)m/).map((part, i) => {
    if (i % 2) return change(part.split(';').map(Number)), '';
    const style = `${ink && 'color:' + ink + ';'}${paper && 'background:' + paper + ';'}${bold ? 'font-weight:bold' : ''}`;
    return style ? `<span style="${style}">${quote(part)}</span>` : quote(part);
  });
  return '<!doctype html><meta charset="utf-8"><body style="margin:0;background:#fff"><pre style="margin:0;padding:10px;' +
    'display:inline-block;color:#24292f;font:15px/17px DejaVu Sans Mono,monospace">' + parts.join('') + '</pre>';
}

const VIEW = `const t = perfkit.timelineView, rows = perfkit.data.iterations.series[0].rows, i = rows.length >> 1;
  const [, start, duration] = rows[i];`;
/* Two iterations in the middle of the strip. */
const TWO = VIEW + 't.show(rows[i - 1][1], start + duration);';
/* What Enter shows of an iteration in the strip: that one of both runs, from its beginning. */
const SAME = `for (const key of ['Home', 'ArrowRight', 'ArrowRight', 'Enter'])
  document.getElementById('iterations-strip').dispatchEvent(new KeyboardEvent('keydown', { key }));`;
/* A fortieth of an iteration, its longest kernel selected. */
const PART = VIEW + `const from = start + duration / 10, to = from + duration / 40, e = t.model.events; let longest = -1;
  for (let k = 0; k < t.model.n; k++)
    if (t.model.kindOf(k) === 'kernel' && e.start[k] > from && e.end[k] < to &&
        (longest < 0 || e.end[k] - e.start[k] > e.end[longest] - e.start[longest])) longest = k;
  t.show(from, to); t.select(longest);`;
/* Name, page, what to do in the page, first and last element of the picture. */
const PICTURES = [
  ['report', 'before.html', PART, 'html', '#timeline-in-view'],
  ['timeline', 'after.html', TWO, '#timeline h2', '#timeline-in-view'],
  ['roofline', 'before.html', '', '#part-roofline h2', '#part-roofline figure ol'],
  ['two-captures', 'both.html', SAME, '#timeline h2', '#timeline-in-view'],
  ['top', 'top.html', '', 'pre', 'pre'],
];

async function main() {
  fs.writeFileSync(path.join(work, 'top.html'), terminal(fs.readFileSync(path.join(work, 'top.ansi'), 'utf8').trimEnd()));
  const browser = await open(programs, 1200, 1200, false);
  const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  try {
    for (const [name, page, script, first, last] of PICTURES) {
      await browser.go('about:blank');
      await browser.go('file://' + path.join(work, page));
      for (let i = 0; page !== 'top.html' && i < 600; i++) {
        if (await browser.run('return document.documentElement.getAttribute("data-ready")')) break;
        await rest(100);
      }
      await browser.run(script);
      await rest(600);
      const clip = await browser.run(`const [a, b] = [...arguments].map((one) => document.querySelector(one).getBoundingClientRect());
        const left = Math.max(0, a.left - 12), top = Math.max(0, a.top + scrollY - 8);
        return { x: left, y: top, width: Math.ceil(Math.min(innerWidth, a.right + 12) - left),
          height: Math.ceil(b.bottom + scrollY + 4 - top), scale: 1 };`, first, last);
      const { data } = await browser.devtools('Page.captureScreenshot', { format: 'png', clip, captureBeyondViewport: true });
      const file = path.join(target, name + '.png');
      fs.writeFileSync(file, Buffer.from(data, 'base64'));
      if (pngquant) execFileSync(pngquant, ['--force', '--strip', '--speed', '1', '--output', file, '96', file]);
      console.log(`${file}: ${clip.width} x ${clip.height}, ${fs.statSync(file).size} bytes`);
    }
  } finally {
    await browser.close();
  }
}
main().catch((error) => { console.error(error.stack); process.exitCode = 1; });
END
