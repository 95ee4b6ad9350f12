// Follows the page infra/redis/cluster.md, "When a primary and its replica are lost".
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { cellOf } from '@playline/people';
import { openRedisPeople } from '@playline/people/redis';
import { openRedisCluster, until } from '@playline/testkit';
import { afterAll, expect, it } from 'vitest';

const CELLS = 12;
const WAIT_MS = 60_000;
const cluster = await openRedisCluster();
const people = await openRedisPeople({ url: cluster.url, cluster: true, cells: CELLS });
afterAll(async () => {
  await people.close();
  await cluster.close();
});

/** An environment in each cell. */
const environmentIds = Array.from({ length: CELLS }, (_, cell) => {
  let at = 0;
  while (cellOf(`game-${at}`, CELLS) !== cell) at++;
  return `game-${at}`;
});
const readEpochs = () => Promise.all(environmentIds.map((id) => people.readEpoch(id)));
const isLost = async (cell: number, port: number) => (await cluster.primaryOf(`{c${cell}/${CELLS}}`)).port === port;

it('after a primary and its replica are lost, the commands of the page give their slots to other nodes, and a rebuild fills only their cells', {
  timeout: 300_000,
}, async () => {
  await people.rebuild.mintEpoch();
  const before = await readEpochs();
  const [primary, replica] = [await cluster.primaryOf(`{c0/${CELLS}}`), await cluster.replicaOf(`{c0/${CELLS}}`)];
  const lost = await Promise.all(environmentIds.map((_, cell) => isLost(cell, primary.port)));
  const ids = await Promise.all(
    [primary, replica].map(async ({ client }) => String(await client.call('CLUSTER', 'MYID'))),
  );
  const existing = cluster.nodes.find((node) => node !== primary && node !== replica)!;
  const addressOf = ({ port }: { readonly port: number }) => `127.0.0.1:${port}`;
  const env = { PATH: process.env.PATH ?? '', REDISCLI_AUTH: existing.client.options.password ?? '' };
  const runCli = async (...args: string[]) => {
    const options = { env, timeout: WAIT_MS };
    const running = promisify(execFile)('sh', ['-c', 'echo yes | redis-cli --cluster "$@"', '-', ...args], options);
    await running.catch(({ stdout }: { stdout: string }) => {
      throw new Error(stdout.slice(-1_000));
    });
    return true;
  };
  const redisCli = (...args: string[]) =>
    until(`redis-cli --cluster ${args.join(' ')}`, () => runCli(...args), WAIT_MS);

  await Promise.all([primary.kill(), replica.kill()]);
  await expect(people.rebuild.missing()).rejects.toThrow();
  await redisCli('fix', addressOf(existing), '--cluster-fix-with-unreachable-masters');
  const isMissing = await until('the rebuild can start', () => people.rebuild.missing().catch(() => null), WAIT_MS);
  expect(environmentIds.map(isMissing)).toEqual(lost);
  await until('the epochs are set', () => people.rebuild.mintEpoch().catch(() => null), WAIT_MS);
  for (const id of ids) await redisCli('call', addressOf(existing), 'CLUSTER', 'FORGET', id);
  const [newPrimary, newReplica] = [await cluster.startNode(), await cluster.startNode()];
  await redisCli('add-node', addressOf(newPrimary), addressOf(existing));
  await redisCli('add-node', addressOf(newReplica), addressOf(existing), '--cluster-slave');
  const rebalance = () =>
    runCli('rebalance', addressOf(existing), '--cluster-use-empty-masters', '--cluster-pipeline', '1000');
  await until('the slots are moved', () => rebalance().catch(() => runCli('fix', addressOf(existing)).then(rebalance)));

  const after = await until('all cells respond', () => readEpochs().catch(() => null), WAIT_MS);
  expect(after).not.toContain(null);
  expect(after.map((epoch, cell) => epoch !== before[cell])).toEqual(lost);
});
