import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@playline/testkit';
import { expect, onTestFinished, test, vi } from 'vitest';
import { publishDemoKey } from './demo-keys.ts';

const REDIS = 'redis://:secret@127.0.0.1:2';
const KEYS = {
  production: { publishable: 'pk-1', secret: 'sk-1' },
  development: { publishable: 'pk-2', secret: 'sk-2' },
};

/** Creates a folder with stack files. @param supervised simulates the supervisor, which copies `keys.json` */
function createFolder(supervised = true) {
  const folder = mkdtempSync(join(tmpdir(), 'demo-keys-test-'));
  const state = join(folder, '.playline');
  mkdirSync(state);
  const pathOf = (name: string) => join(state, `${name}.json`);
  const read = (name: string) => JSON.parse(readFileSync(pathOf(name), 'utf8'));
  const write = (name: string, value: object) => writeFileSync(pathOf(name), JSON.stringify(value), { mode: 0o600 });
  write('keys', KEYS);
  write('stack', { redis: REDIS, kafka: ['127.0.0.1:3'], processes: { kafka: 5 }, keys: KEYS });
  const copy = () => supervised && write('stack', { ...read('stack'), processes: { kafka: 6 }, keys: read('keys') });
  const timer = setInterval(copy, 50);
  onTestFinished(() => {
    clearInterval(timer);
    rmSync(folder, { recursive: true });
  });
  return { folder, state, pathOf, read };
}

const changed = { project: 'demo', environment: 'development', kind: 'secret', key: 'sk-new' } as const;
const KEYS_AFTER = { ...KEYS, development: { publishable: 'pk-2', secret: 'sk-new' } };

test('publishDemoKey updates both files before it resolves', async () => {
  const { folder, state, pathOf, read } = createFolder();
  await publishDemoKey({ folder, redisUrl: REDIS }, changed);
  expect(read('keys')).toEqual(KEYS_AFTER);
  expect(read('stack')).toEqual({ redis: REDIS, kafka: ['127.0.0.1:3'], processes: { kafka: 6 }, keys: KEYS_AFTER });
  expect(statSync(pathOf('keys')).mode & 0o777).toBe(0o600);
  expect(readdirSync(state).toSorted()).toEqual(['keys.json', 'stack.json']);
});

test('publishDemoKey updates stack.json itself if no supervisor is running', async () => {
  const { folder, pathOf, read } = createFolder(false);
  const now = performance.now.bind(performance);
  // Shortens the wait for the supervisor.
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => 10 * now());
  onTestFinished(() => clock.mockRestore());
  await publishDemoKey({ folder, redisUrl: REDIS }, changed);
  expect(read('stack')).toEqual({ redis: REDIS, kafka: ['127.0.0.1:3'], processes: { kafka: 5 }, keys: KEYS_AFTER });
  expect(statSync(pathOf('stack')).mode & 0o777).toBe(0o600);
});

test('concurrent commands publish all of their keys, even if a killed command has left its lock behind', async () => {
  const { folder, pathOf, read } = createFolder();
  writeFileSync(`${pathOf('keys')}.lock`, '');
  const all = (['production', 'development'] as const).flatMap((environment) =>
    (['publishable', 'secret'] as const).map((kind) => ({ project: 'demo', environment, kind, key: `new ${kind}` })),
  );
  await Promise.all(all.map((each) => publishDemoKey({ folder, redisUrl: REDIS }, each)));
  const pair = { publishable: 'new publishable', secret: 'new secret' };
  expect(read('keys')).toEqual({ production: pair, development: pair });
  await until('stack.json contains the new keys', () => read('stack').keys.production.secret === 'new secret');
});

test.each([
  ['another project', { folder: '', redisUrl: REDIS }, { ...changed, project: 'outlands' }],
  ['another deployment', { folder: '', redisUrl: 'redis://127.0.0.1:9' }, changed],
])('publishDemoKey does not change the stack files for a key of %s', async (_name, target, change) => {
  const { folder, read } = createFolder();
  await publishDemoKey({ ...target, folder }, change);
  expect(read('keys')).toEqual(KEYS);
});

test('publishDemoKey does not create files in a folder without a stack', async () => {
  const { folder, state } = createFolder(false);
  for (const name of readdirSync(state)) rmSync(join(state, name));
  await publishDemoKey({ folder, redisUrl: REDIS }, changed);
  expect(readdirSync(state)).toEqual([]);
});
