import { type ClusterNode, openRedisCluster, type TestRedisCluster, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { assertTakesWrites, nodesOf, openRedis, primariesOf, runScript } from './redis.ts';

let cluster: TestRedisCluster;
beforeAll(async () => {
  cluster = await openRedisCluster();
});
afterAll(() => cluster.close());

async function open() {
  const connection = openRedis({ url: cluster.url, cluster: true });
  onTestFinished(connection.close);
  await connection.opened;
  await until('the cluster responds', () => connection.ready().catch(() => false));
  return connection;
}

it('concurrent first commands reach every primary of a cluster', async () => {
  const { redis, ready } = await open();
  const keys = Array.from({ length: 64 }, (_, at) => `first:${at}`);
  await Promise.all(keys.map((key) => redis.set(key, key)));
  expect(await Promise.all(keys.map((key) => redis.get(key)))).toEqual(keys);
  expect([primariesOf(redis).length, nodesOf(redis).length, await ready()]).toEqual([3, 6, true]);
  await assertTakesWrites(redis);
});

it('a script runs on the node of its keys, also where the node has not cached it', async () => {
  const { redis } = await open();
  const script = "#!lua\nreturn redis.call('SET', KEYS[1], ARGV[1])";
  for (const key of ['a', 'b', 'c', 'd']) await runScript(redis, { script, keys: [`{${key}}`], args: [key] });
  expect(await redis.get('{c}')).toBe('c');
});

it('a cluster refuses a script that starts with #!lua and uses keys of two slots', async () => {
  const { redis } = await open();
  const [source] = await Promise.all([cluster.primaryOf('{a}')]);
  // Two tags whose slots are on the same node: without the line, Redis would write both.
  let other = 0;
  while ((await cluster.primaryOf(`{${other}}`)) !== source) other++;
  const write = "redis.call('SET', KEYS[1], 1) return redis.call('SET', ARGV[1], 1)";
  const call = (script: string) => runScript(redis, { script, keys: ['{a}'], args: [`{${other}}`] });
  await call(write);
  await expect(call(`#!lua\n${write}`)).rejects.toThrow('same slot');
});

it('while a slot moves, only scripts that declare a missing key are refused instead of missing keys that have not moved', async () => {
  const { redis } = await open();
  const [declared, data, missing] = ['{m}:declared', '{m}:data', '{m}:missing'];
  for (const key of [declared, data]) await redis.set(key, 'value');
  const script = "#!lua\nreturn redis.call('GET', ARGV[1])";
  const read = (...keys: string[]) => runScript(redis, { script, keys, args: [data] });
  expect(await read(declared, missing)).toBe('value');
  const slot = await cluster.startMove('{m}');
  await slot.move([declared]);
  expect(await read(declared)).toBeNull();
  await expect(read(declared, missing)).rejects.toThrow('redirections');
  await slot.finish();
  expect(await read(declared, missing)).toBe('value');
});

const faults = [
  ['killed', (node: ClusterNode) => node.kill(), (node: ClusterNode) => node.start()],
  ['suspended', async (node: ClusterNode) => node.suspend(), async (node: ClusterNode) => node.resume()],
] as const;

it.each(faults)(
  'writes resume soon after a primary was %s, and other nodes keep serving',
  async (name, fail, repair) => {
    const { redis } = await open();
    const failed = await cluster.primaryOf('{x}');
    let other = 0;
    while ((await cluster.primaryOf(`{${other}}`)) === failed) other++;
    await fail(failed);
    const startMs = performance.now();
    let longestMs = 0;
    await until('writes resume', async () => {
      const sentMs = performance.now();
      const isWritten = redis.set('{x}', 'resumed').then(
        () => true,
        () => false,
      );
      await redis.set(`{${other}}`, 'served');
      longestMs = Math.max(longestMs, performance.now() - sentMs);
      return isWritten;
    });
    const gapMs = performance.now() - startMs;
    console.log(
      `${name}: writes resumed after ${Math.round(gapMs)} ms; others took at most ${Math.round(longestMs)} ms`,
    );
    await repair(failed);
    await until('the node is a replica', async () => (await failed.client.role().catch(() => ['']))[0] === 'slave');
    // On an idle machine three and four seconds: commands to a suspended node first wait until it has been silent.
    expect(gapMs).toBeLessThan(name === 'killed' ? 5_000 : 8_000);
    expect(longestMs).toBeLessThan(3_000);
  },
);
