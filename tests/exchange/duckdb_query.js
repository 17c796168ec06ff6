/* Runs SQL on DuckDB for the tests: statements as a JSON array on the standard input, in the current folder; the
 * rows of each as a JSON array on the standard output. Exit 77 where the npm package @duckdb/node-api is not
 * where ../npm.js looks, or has no binary for this machine.
 */
'use strict';
const fs = require('fs');
const path = require('path');
const roots = require('../npm.js');

function load() {
  const root = roots().find((folder) => fs.existsSync(path.join(folder, '@duckdb/node-api')));
  if (!root) return [null, 'the npm package @duckdb/node-api is not installed'];
  try { return [require(path.join(root, '@duckdb/node-api')), '']; } catch (error) { return [null, `@duckdb/node-api does not load: ${error.message}`]; }
}

async function main() {
  const [duckdb, why] = load();
  if (!duckdb) {
    process.stderr.write(`SKIP: ${why}\n`);
    process.exit(77);
  }
  const connection = await (await duckdb.DuckDBInstance.create(':memory:')).connect();
  const results = [];
  for (const sql of JSON.parse(fs.readFileSync(0, 'utf8'))) {
    const reader = await connection.runAndReadAll(sql);
    results.push(reader.getRowsJson());
  }
  process.stdout.write(JSON.stringify(results));
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
