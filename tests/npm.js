/* Where npm packages of the tests may be: $NODE_PATH, the folder that scripts/check.sh fills, and where
 * `npm install -g` puts them.
 */
'use strict';
const path = require('path');
const { execFileSync } = require('child_process');

module.exports = function roots() {
  const found = (process.env.NODE_PATH || '').split(':').filter(Boolean);
  found.push(path.join(__dirname, '../build/npm/node_modules'));
  try {
    found.push(execFileSync('npm', ['root', '-g'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim());
  } catch (error) { /* no npm */ }
  return found;
};
