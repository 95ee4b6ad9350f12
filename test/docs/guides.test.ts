import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createContext, runInContext } from 'node:vm';
import { createDocuments } from '@playline/api-docs';
import { buildSdk } from '@playline/audience-client/sdk';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createChainDocs } from '../../services/chain-api/src/docs/source.ts';
import { openGateway, sentMessages, type TestGateway } from '../../services/gateway/src/test/open-gateway.ts';
import { PUBLIC_URL, SOURCE } from './gateways.ts';

const documents = createDocuments(SOURCE);
const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'playline-guides-'));
let gateway: TestGateway;

beforeAll(async () => {
  const installed = join(folder, 'node_modules', '@playline', 'audience-client');
  mkdirSync(installed, { recursive: true });
  const tarball = join(folder, 'client.tgz');
  writeFileSync(tarball, buildSdk().get('/sdk/playline-audience-client.tgz')!.bytes!);
  await run('tar', ['xzf', tarball, '--strip-components=1', '-C', installed]);
});
beforeEach(async () => {
  gateway = await openGateway();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ENTITIES: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' };

/** Returns the code with this label, with the URL and the key of the gateway. */
function codeOf(page: string, label: string): string {
  const text = documents.get(`/docs/${page}`)?.text ?? '';
  const [, code] = new RegExp(`class="label"[^>]*>${label}</p>\n<pre [^>]*>([\\s\\S]*?)</pre>`).exec(text) ?? [];
  if (code === undefined) throw new Error(`${page} has no code with the label ${label}`);
  return code
    .replace(/&(?:lt|gt|quot|amp|#39);/g, (entity) => ENTITIES[entity] ?? entity)
    .replaceAll(PUBLIC_URL, gateway.url)
    .replaceAll("publishableKey: 'PUBLISHABLE_KEY'", `publishableKey: '${gateway.key}'`);
}

const runProgram = async (program: string, args: string[]) => {
  const env = { PATH: process.env.PATH, PUBLISHABLE_KEY: gateway.key, SECRET_KEY: gateway.secretKey };
  return (await run(program, args, { cwd: folder, env })).stdout;
};

/** Runs code twice and returns the messages that the gateway accepted, which all have different ids. */
async function runTwice(page: string, label: string, execute: (code: string) => Promise<unknown>) {
  for (let round = 0; round < 2; round++) await execute(codeOf(page, label));
  const messages = sentMessages(gateway.producer);
  const ids = messages.map(({ messageId }) => Buffer.from(messageId).toString('hex'));
  expect(new Set(ids).size).toBe(ids.length);
  return messages;
}

/** The Python example needs the package requests, which npm cannot install. */
const hasPython = spawnSync('python3', ['-c', 'import requests']).status === 0;

const asModule = async (code: string) => {
  writeFileSync(join(folder, 'example.mjs'), code);
  await runProgram(process.execPath, ['example.mjs']);
};

/** Runs a page in which the scripts of the gateway are loaded in order. */
async function asPage(markup: string): Promise<void> {
  const context = createContext({
    fetch,
    URL,
    TextEncoder,
    Blob,
    CompressionStream,
    Response,
    AbortController,
    crypto,
    performance,
    setTimeout,
    clearTimeout,
    console,
  });
  for (const [, source, inline = ''] of markup.matchAll(/<script(?: src="([^"]*)")?>([\s\S]*?)<\/script>/g))
    runInContext(source === undefined ? inline : await (await fetch(source)).text(), context);
  await runInContext('client.flush()', context);
}

it.each([
  ['quickstart', 'curl', 2, (code: string) => runProgram('sh', ['-c', code])],
  ['quickstart', 'JavaScript', 2, asModule],
  ['quickstart', 'Script tag', 2, asPage],
  ['quickstart', 'Node server', 4, asModule],
  ['quickstart', 'Python', 2, (code: string) => runProgram('python3', ['-c', code])],
  ['sdks', 'JavaScript', 4, asModule],
  ['sdks', 'Script tag', 4, asPage],
] as const)(
  'the example of /docs/%s in "%s" runs as printed, twice, and sends %i messages',
  async (page, label, count, execute) => {
    if (label === 'Python' && !hasPython) return;
    const messages = await runTwice(page, label, execute);
    const named = messages.filter(({ eventName, type }) => eventName === 'level_complete' || type === 'identify');
    expect(named).toHaveLength(count);
  },
);

it.each([...(hasPython ? ['Python'] : []), 'Node server'])(
  'the example "%s" sends the same message again after a 500',
  async (label) => {
    gateway.producer.mode = 'fail';
    const recovers = setInterval(() => {
      if (gateway.producer.sent.length > 0) gateway.producer.mode = 'acknowledge';
    }, 5);
    const code = codeOf('quickstart', label);
    await (label === 'Python' ? runProgram('python3', ['-c', code]) : asModule(code));
    clearInterval(recovers);
    const ids = sentMessages(gateway.producer).map(({ messageId }) => Buffer.from(messageId).toString('hex'));
    expect(ids.length).toBeGreaterThan(new Set(ids).size);
  },
);

it('the commands of the consent and erasure guides return the documented status, twice', async () => {
  for (let round = 0; round < 2; round++) {
    expect(await runProgram('sh', ['-c', codeOf('consent', 'Store the choice')])).toBe('');
    expect(await runProgram('sh', ['-c', codeOf('consent', 'Read the choice')])).toBe('{"status":"full"}');
    expect(await runProgram('sh', ['-c', codeOf('erasure', 'Erase a user')])).toMatch(
      /^HTTP\/1.1 202[\s\S]*x-erasure-identity: userId=pat%40game.example\r/,
    );
    expect(await runProgram('sh', ['-c', codeOf('erasure', 'Erase a visitor')])).toMatch(/^HTTP\/1.1 202/);
  }
});

it('both services serve the same guides, and links to pages of the other service are absolute', () => {
  const chains = [{ name: 'demo-chain', id: 'eip155:31337' }];
  const settings = { publicUrl: 'https://chain.test', headerPrefix: 'x-service', gatewayUrl: PUBLIC_URL, chains };
  const mounted = createDocuments(createChainDocs(settings));
  const guides = SOURCE.articles.map(({ name }) => name).filter((name) => !/^(messages|limits|cookbook)$/.test(name));
  expect(guides.length).toBeGreaterThan(9);
  for (const name of guides) expect(mounted.has(`/docs/${name}`), name).toBe(true);
  const targets = [...mounted].flatMap(([path, { type, text }]) =>
    type.startsWith('text/html')
      ? [...text.matchAll(/ href="([^"]*)"/g)].map(([, target = '']) => ({ path, target }))
      : [],
  );
  for (const { path, target } of targets) {
    const { origin, pathname } = new URL(target, settings.publicUrl + path);
    const served = origin === PUBLIC_URL ? documents : mounted;
    expect(served.has(pathname), `${path} to ${target}`).toBe(true);
  }
  expect(targets.filter(({ target }) => target === `${PUBLIC_URL}/docs/messages`).length).toBeGreaterThan(10);
});

it('the search index finds a field, an error code and a guide, and no page contains an unknown value', () => {
  const index = JSON.parse(documents.get('/docs/search.json')!.text) as { path: string; page: string; text: string }[];
  const pathsOf = (term: string) =>
    index.filter(({ page, text }) => `${page} ${text}`.includes(term)).map(({ path }) => path);
  expect(pathsOf('pageReferrer')).toContain('/docs/messages#context');
  expect(pathsOf('DUPLICATE_MESSAGE_ID')).toContain('/docs/rejections/DUPLICATE_MESSAGE_ID');
  expect(pathsOf('lower case')).toContain('/docs/identity#e-mail-case');
  for (const [path, { text }] of documents)
    if (!/json$/.test(path)) expect(text, path).not.toMatch(/\{\{(gatewayUrl|views|runbook|\w*Header)\}\}/);
});
