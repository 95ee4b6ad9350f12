/** Operates a cluster on which every setting was changed, and recovers it after all Redis data was lost. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { readStackFile, type StackFile, stackPathsOf } from '@playline/infra/local';
import { testStackFolder, until } from '@playline/testkit';
import { afterAll, expect, it } from 'vitest';
import { SETTINGS, STACK_SETTINGS } from './night-settings.ts';
import { runProgram, trackMessage } from './stack.ts';

const NIGHT_MS = 600_000;
const COMMANDS_MS = 180_000;
/** Three brokers, the registry, six Redis nodes and two ClickHouse nodes. */
const STORES = 12;
const root = testStackFolder('cluster-night');
const paths = stackPathsOf(join(root, '.playline'));

async function runWith(settings: Record<string, string>, args: readonly string[]) {
  const env = { HOME: process.env.HOME ?? '', PLAYLINE_ROOT: root, ...settings };
  const { code, out, err } = await runProgram('infra/local/bootstrap.mjs', args, { env });
  return { code, out: out + err };
}

const run = (...args: readonly string[]) => runWith({}, args);
const up = (...args: readonly string[]) => runWith({ ...SETTINGS, ...STACK_SETTINGS }, ['up', '--cluster', ...args]);

const stack = (): StackFile => readStackFile(paths)!;

async function identify(anonymousId: string, gateway = stack().gateway): Promise<number> {
  const user = { userId: `user-of-${anonymousId}`, identityType: 'steam' };
  const message = trackMessage({ type: 'identify', eventName: undefined, anonymousId, ...user });
  const response = await fetch(`${gateway}/v1/audience/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-night-publishable-key': stack().keys!.development.publishable },
    body: JSON.stringify({ messages: [message] }),
  });
  return response.status;
}

const untilLinked = (anonymousId: string) =>
  until(`${anonymousId} is linked`, async () => {
    const subject = ['--environment', 'development', '--kind', 'anonymous', '--id', anonymousId];
    const { out } = await run('identity', 'resolve', ...subject, '--json');
    return JSON.parse(out.slice(out.indexOf('{'))).isLinked === true;
  });

afterAll(async () => {
  await run('down');
  rmSync(root, { recursive: true, force: true });
}, NIGHT_MS);

it('a cluster starts with every setting changed, and one command restores it after all Redis data was lost', {
  timeout: NIGHT_MS,
}, async () => {
  const started = await up('--no-chain');
  expect(started.out).toMatch(/all \d+ processes serve/);
  expect(started.code).toBe(0);
  for (const [index, gateway] of [stack().gateway, stack().others?.['gateway-2']].entries()) {
    expect(await identify(`before ${index}`, gateway)).toBe(200);
    await untilLinked(`before ${index}`);
  }
  await run('down');

  const stores = await up('--services', 'none');
  expect(stores.out).toContain(`all ${STORES} processes serve`);
  await run('down');
  for (const name of ['redis', ...[2, 3, 4, 5, 6].map((number) => `redis-${number}`)])
    rmSync(join(paths.state, 'data', name), { recursive: true });

  const empty = await up('--no-chain');
  expect(empty.out).toContain('identities, consents and erasures wait. Run `npm run rebuild`');
  expect(empty.code).toBe(1);
  expect(await identify('during')).toBe(200);
  const rebuilt = await run('rebuild');
  expect(rebuilt.code, rebuilt.out).toBe(0);
  for (const anonymousId of ['before 0', 'before 1', 'during']) await untilLinked(anonymousId);
  await until('all processes are ready again', async () => (await run('status')).code === 0, COMMANDS_MS);
  await until('verify finds no differences', async () => (await run('verify')).code === 0, COMMANDS_MS);
});
