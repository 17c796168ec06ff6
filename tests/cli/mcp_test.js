/* perfkit mcp, spoken to by the protocol's own client (@modelcontextprotocol/sdk):
 *     node mcp_test.js PERFKIT REPORT_TOOL SQL_FOLDER WORK_FOLDER
 * Exit 77 (skipped) without the package. */
'use strict';
const assert = require('assert');
const fs = require('fs');
const path = require('path');
const { execFileSync } = require('child_process');
const { pathToFileURL } = require('url');
const roots = require('../npm.js');

const [perfkit, tool, source, work] = process.argv.slice(2).map((name) => path.resolve(name));
const sdk = roots().map((root) => path.join(root, '@modelcontextprotocol/sdk/dist/esm/client')).find((folder) => fs.existsSync(folder));
if (!sdk) {
  console.log('SKIP: @modelcontextprotocol/sdk is not installed');
  process.exit(77);
}

async function main() {
  const { Client } = await import(pathToFileURL(path.join(sdk, 'index.js')));
  const { StdioClientTransport } = await import(pathToFileURL(path.join(sdk, 'stdio.js')));
  const capture = path.join(work, 'normal.sqlite');
  fs.mkdirSync(work, { recursive: true });
  execFileSync(tool, ['make', path.join(source, 'normal.sql'), capture]);
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StdioClientTransport({ command: perfkit, args: ['mcp'] }));
  assert.strictEqual(client.getServerVersion().name, 'perfkit');
  const { tools } = await client.listTools();
  assert(tools.length >= 10 && tools.every((one) => one.description && one.inputSchema.type === 'object'));
  await client.ping();
  const answer = await client.callTool({ name: 'sql', arguments: { capture, query: 'SELECT count(*) AS n FROM kernels' } });
  assert.deepStrictEqual(JSON.parse(answer.content[0].text), JSON.parse(execFileSync(perfkit, ['sql', '--json', capture, 'SELECT count(*) AS n FROM kernel'], { input: '' })));
  const report = await client.callTool({ name: 'report', arguments: { capture } });
  assert(!report.isError && report.content[0].text.includes('Kernels'));
  const wrong = await client.callTool({ name: 'sql', arguments: { capture, query: 'DROP TABLE kernel' } });
  assert(wrong.isError && wrong.content[0].text.includes('a query reads'));
  await assert.rejects(client.callTool({ name: 'nothing', arguments: {} }), /no such tool/);
  await client.close();
  console.log('ok:', tools.length, 'tools');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
