import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '@playline/infra/ports';
import { until } from '@playline/testkit';
import { afterAll, afterEach, expect, it, onTestFinished } from 'vitest';
import { openRedis, PRESENT_RUN_LUA, type Redis, runScript } from './redis.ts';

const PASSWORD = 'word';
const folder = mkdtempSync(join(tmpdir(), 'test-sentinel-'));
const children: ChildProcess[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function start(port: number, ...lines: string[]): Promise<ChildProcess> {
  const config = join(folder, `${port}.conf`);
  const isSentinel = lines.some((line) => line.startsWith('sentinel'));
  const login = isSentinel ? [] : [`requirepass ${PASSWORD}`, `masterauth ${PASSWORD}`, 'save ""'];
  writeFileSync(config, [`port ${port}`, 'bind 127.0.0.1', `dir ${folder}`, ...login, ...lines].join('\n'));
  const child = spawn('redis-server', [config, ...(isSentinel ? ['--sentinel'] : [])], { stdio: 'ignore' });
  children.push(child);
  const { redis, close } = openRedis({ url: `redis://${isSentinel ? '' : `:${PASSWORD}@`}127.0.0.1:${port}` });
  await until(`port ${port} responds`, () =>
    redis
      .ping()
      .then(() => true)
      .catch(() => false),
  );
  await close();
  return child;
}

async function openClient(...[options, limits]: Parameters<typeof openRedis>): Promise<Redis> {
  const { redis, opened, close } = openRedis(options, limits);
  onTestFinished(close);
  await opened;
  return redis;
}

const readRun = (redis: Redis) =>
  runScript(redis, { script: `#!lua flags=no-writes\n${PRESENT_RUN_LUA}\nreturn present_run()`, keys: [], args: [] });

it.each(['SIGKILL', 'SIGSTOP'] as const)(
  'behind Sentinel, writes resume after %s of the primary at the promoted replica, whose run differs',
  async (signal) => {
    const [primaryPort, replicaPort, ...sentinelPorts] = (await freePorts(5)) as [number, number, ...number[]];
    const primary = await start(primaryPort);
    await start(replicaPort, `replicaof 127.0.0.1 ${primaryPort}`, 'repl-diskless-sync-delay 0');
    for (const port of sentinelPorts)
      await start(
        port,
        `sentinel monitor main 127.0.0.1 ${primaryPort} 2`,
        `sentinel auth-pass main ${PASSWORD}`,
        'sentinel down-after-milliseconds main 1000',
        'sentinel failover-timeout main 5000',
      );
    const sentinels = sentinelPorts.map((port) => `127.0.0.1:${port}`).join();
    const redis = await openClient({ url: `redis://:${PASSWORD}@${sentinels}`, sentinel: 'main' });
    await redis.set('key', 'before');
    const run = await readRun(redis);
    await until('the replica is known and in sync', async () => {
      const info = await redis.info('replication');
      return /slave0:.*state=online/.test(info);
    });
    // A sentinel discovers the replica and the other sentinels from the primary, every ten seconds.
    const sentinel = await openClient({ url: `redis://127.0.0.1:${sentinelPorts[0]}` });
    await until('the sentinels know each other', async () => {
      const state = String(await sentinel.call('SENTINEL', 'MASTER', 'main'));
      return state.includes('num-slaves,1') && state.includes('num-other-sentinels,2');
    });
    primary.kill(signal);
    await until('writes resume', () =>
      redis
        .set('key', 'after')
        .then(() => true)
        .catch(() => false),
    );
    expect(await readRun(redis)).not.toBe(run);
  },
);

it('a client reconnects when its server has become a replica, because the address may lead to another server', async () => {
  const [port, otherPort] = (await freePorts(2)) as [number, number];
  await start(port);
  await start(otherPort);
  const redis = await openClient({ url: `redis://:${PASSWORD}@127.0.0.1:${port}` });
  const before = await redis.client('ID');
  await redis.call('REPLICAOF', '127.0.0.1', otherPort);
  await expect(redis.set('key', 'value')).rejects.toThrow('READONLY');
  await until('the client has a new connection', async () => {
    const id = await redis.client('ID').catch(() => before);
    return id !== before;
  });
});
