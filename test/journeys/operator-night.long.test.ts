/** Operates a stack on which every setting was changed, and recovers it after failures, using only commands. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { freePorts, readStackFile, type StackFile, stackPathsOf } from '@playline/infra/local';
import { testStackFolder, until } from '@playline/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configSchema as activityWriterSettings } from '../../services/activity-writer/src/config.ts';
import { configSchema as chainSettings } from '../../services/chain-api/src/config.ts';
import { configSchema as indexerSettings } from '../../services/chain-indexer/src/config.ts';
import { configSchema as eraserSettings } from '../../services/eraser/src/config.ts';
import { configSchema as writerSettings } from '../../services/event-writer/src/config.ts';
import { configSchema as gatewaySettings } from '../../services/gateway/src/config.ts';
import { configSchema as linkerSettings } from '../../services/identity-linker/src/config.ts';
import { configSchema as portalSettings } from '../../services/portal/src/config.ts';
import { SETTINGS, STACK_SETTINGS } from './night-settings.ts';
import { query, runProgram, trackMessage } from './stack.ts';

const NIGHT_MS = 300_000;
const root = testStackFolder('night');
const paths = stackPathsOf(join(root, '.playline'));

const OPTIONAL_STORE_SETTINGS = /_(TLS_(CA_FILE|CERT_FILE|KEY_FILE|SERVER_NAME)|SASL_\w+|USERNAME|PASSWORD)$/;

const STORE_PORTS = ['KAFKA', 'CONTROLLER', 'REGISTRY', 'REDIS', 'CLICKHOUSE'];
const PORTS = [...STORE_PORTS, 'GATEWAY', 'GATEWAY_ADMIN', 'EVENT_WRITER_ADMIN', 'ERASER_ADMIN'];
let ports: Record<string, string> = {};

/** Runs a command as `npm run` does. */
async function run(args: readonly string[], environment: Record<string, string> = {}) {
  const env = { HOME: process.env.HOME ?? '', PLAYLINE_ROOT: root, ...environment };
  const { code, out, err } = await runProgram('infra/local/bootstrap.mjs', args, { env });
  return { code, out: out + err };
}

const up = (...args: string[]) => run(['up', ...args], { ...SETTINGS, ...STACK_SETTINGS, ...ports });
const stack = (): StackFile => readStackFile(paths)!;

async function post(message: object): Promise<number> {
  const { gateway, keys } = stack();
  const response = await fetch(`${gateway}/v1/audience/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-night-publishable-key': keys!.development.publishable },
    body: JSON.stringify({ messages: [message] }),
  });
  return response.status;
}

const identify = (anonymousId: string) => {
  const user = { userId: `user-of-${anonymousId}`, identityType: 'steam' };
  return post(trackMessage({ type: 'identify', eventName: undefined, anonymousId, ...user }));
};

async function countLinks(): Promise<number> {
  const [row] = await query<{ n: string }>(stack().clickhouse, 'SELECT toString(count()) AS n FROM identity_links');
  return Number(row?.n);
}

/** Resolves the first message's anonymous id, in a terminal with another deployment's pepper. */
const resolveFirst = () => {
  const subject = ['--environment', 'development', '--kind', 'anonymous', '--id', 'before'];
  return run(['identity', 'resolve', ...subject, '--json'], { IDENTITY_PEPPER: 'cd'.repeat(32) });
};

const untilMoreLinksThan = (count: number) =>
  until('a new link is decided and stored', async () => (await countLinks()) > count, 60_000);

/** `status` checks the processes immediately. The supervisor checks each process only once a minute. */
const untilAllReady = () =>
  until('all processes are ready again', async () => (await run(['status'])).code === 0, 60_000);

beforeAll(async () => {
  const found = await freePorts(PORTS.length);
  ports = Object.fromEntries(PORTS.map((name, index) => [`PLAYLINE_${name}_PORT`, String(found[index])]));
});
afterAll(async () => {
  await run(['down']);
  rmSync(root, { recursive: true, force: true });
}, NIGHT_MS);

it('this test changes every setting of every service', () => {
  const eventSettings = [gatewaySettings, linkerSettings, writerSettings, eraserSettings];
  const known = [...eventSettings, activityWriterSettings, indexerSettings, chainSettings, portalSettings].flatMap(
    ({ shape }) => Object.keys(shape),
  );
  const tested = new Set([...Object.keys(SETTINGS), ...Object.keys(STACK_SETTINGS)]);
  expect(known.filter((name) => !tested.has(name) && !OPTIONAL_STORE_SETTINGS.test(name))).toEqual([]);
});

describe('a stack with changed settings', { timeout: NIGHT_MS }, () => {
  it('a stack starts with every setting changed, and uses the changed names', async () => {
    const started = await up();
    const ignored = Object.keys(STACK_SETTINGS).sort().join(', ');
    expect(started.out).toContain(`ignored, because the stack sets them itself: ${ignored}`);
    expect(started.out).toContain('all 14 processes serve');
    expect(started.code).toBe(0);
    expect(new URL(stack().gateway!).port).toBe(ports.PLAYLINE_GATEWAY_PORT);
    expect(stack().keys!.development.publishable).toMatch(/^pk_night_test-/);
    expect(started.out).toContain("-H 'x-night-publishable-key: ");
    expect(await identify('before')).toBe(200);
    await untilMoreLinksThan(0);
  });

  it("`identity resolve` uses the running stack's pepper", async () => {
    const { code, out } = await resolveFirst();
    expect(code, out).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ environmentId: 'demo-development', isLinked: true });
  });

  it('every command reports which processes do not serve and why, and exits with an error', async () => {
    const { processes, redis } = stack();
    const client = new Redis(redis);
    await client.config('SET', 'maxmemory', '1kb');
    for (const name of ['gateway', 'event-writer']) process.kill(processes[name]!, 'SIGSTOP');
    const [status, doctor, again, verify] = await Promise.all(
      ['status', 'doctor', 'up', 'verify'].map((command) => run([command])),
    );
    for (const name of ['gateway', 'event-writer']) process.kill(processes[name]!, 'SIGCONT');
    await client.config('SET', 'maxmemory', '512mb');
    client.disconnect();
    expect(status!.code).toBe(1);
    expect(status!.out).toMatch(
      /^gateway +does not serve +\d+ (s|min) +0 +- +\d+\n +why: it does not (answer|respond)$/m,
    );
    expect(status!.out).toMatch(/^event-writer +does not serve +\d+ (s|min) +0 +\d+ +\d+$/m);
    expect(status!.out).toMatch(/^redis +degraded .*\n +why: it refuses writes: OOM/m);
    expect(status!.out).toMatch(/^identity-linker .*\n +why: not ready: graph; Redis rejects writes \(OOM\)/m);
    for (const result of [doctor!, again!]) {
      expect(result.code).toBe(1);
      // Six if the activity writer is affected as well, because it writes to Redis only when it publishes.
      expect(result.out).toMatch(/[56] of 14 processes: .*gateway does not serve, .*\(details: `npm run status`\)/);
    }
    expect(verify!.code).toBe(3);
    expect(verify!.out).toContain('event-writer does not serve');
    await untilAllReady();
  });

  it('`up` starts the stores alone, and a stack whose Redis data was lost, and one command restores the data', async () => {
    await run(['down']);
    const stores = await up('--services', 'none');
    expect(stores.out).toMatch(/tables and views created[\s\S]*all 4 processes serve/);
    expect(stores.code).toBe(0);
    expect(await countLinks()).toBeGreaterThan(0);
    await run(['down']);
    rmSync(join(paths.state, 'data', 'redis'), { recursive: true });
    const started = await up('--no-chain');
    expect(started.out).toContain('identities, consents and erasures wait. Run `npm run rebuild`');
    const waiting = '3 of 11 processes: gateway is degraded, identity-linker does not serve, eraser does not serve';
    expect(started.out).toContain(waiting);
    expect(started.code).toBe(1);
    expect(await resolveFirst()).toMatchObject({ code: 3, out: expect.stringContaining('npm run rebuild') });
    expect(await post(trackMessage({ anonymousId: 'during' }))).toBe(200);
    const links = await countLinks();
    expect(await identify('during')).toBe(200);

    const rebuilt = await run(['rebuild']);
    expect(rebuilt.code, rebuilt.out).toBe(0);
    await untilMoreLinksThan(links);
    await untilAllReady();
    expect(JSON.parse((await resolveFirst()).out)).toMatchObject({ isLinked: true });
    await until('the supervisor logs the recovery', () =>
      readFileSync(join(paths.state, 'logs', 'supervisor.log'), 'utf8').includes('identity-linker is ready again'),
    );
    const verified = await run(['verify']);
    expect(verified.out).toContain('all log records are stored exactly once or accounted for');
    expect(verified.code).toBe(0);
  });
});
