// Follows the page infra/redis/cluster.md, "Add a node and move slots", while a gateway and a linker work.
import { execFile } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { TOPICS } from '@playline/contracts';
import { openMemoryErasureRecords } from '@playline/erasure/memory';
import { cellOf, createIdentityKeyer } from '@playline/people';
import { openRedisPeople } from '@playline/people/redis';
import { createLogger } from '@playline/runtime';
import { type ClusterNode, openRedisCluster, openServiceProcesses, testStores, until } from '@playline/testkit';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { openFenceKeeper } from '../../services/eraser/src/pipeline.ts';
import { consentChange, getConsent, putConsent } from '../../services/gateway/src/test/audience-calls.ts';
import { openKeyStores } from '../../services/gateway/src/test/key-stores.ts';
import { openProcess } from '../../services/gateway/src/test/open-process.ts';

/** Cells 5 and 7 are in slots that `rebalance` moves to a fourth primary; cells 0 and 1 are not. */
const CELLS = 12;
const MOVED_CELLS = [5, 7];
const USED_CELLS = [0, 1, ...MOVED_CELLS];
const STEP_MS = 25;
/** How the gateway reports a slot that is open for too long, or a cell that waits for a comparison with the log. */
const FAILED_BY_MOVE = /TRYAGAIN|redirections|may lack/;
const WAIT_MS = 120_000;
const LINKER = new URL('../../services/identity-linker/src/main.ts', import.meta.url).pathname;

const cluster = await openRedisCluster();
const pepper = randomBytes(32);
const settings = {
  REDIS_URL: cluster.url,
  REDIS_CLUSTER: 'true',
  IDENTITY_CELLS: String(CELLS),
  IDENTITY_PEPPER: pepper.toString('hex'),
};
const stores = await openKeyStores({ redisUrl: cluster.url, settings });
const people = await openRedisPeople({
  url: cluster.url,
  cluster: true,
  cells: CELLS,
  consentTopic: stores.topicPrefix + TOPICS.consents.name,
});
await people.rebuild.mintEpoch();
// An eraser sets the fences of moved cells again, as after a failover.
const keeper = openFenceKeeper({
  people,
  records: openMemoryErasureRecords(Date.now),
  logger: createLogger({ service: 'test', level: 'silent' }),
  onRestored: () => {},
});
const gateway = await openProcess(stores.topicPrefix, {
  ...settings,
  RATE_LIMIT_FAILED_KEYS_PER_MINUTE: '1000000',
  RATE_LIMIT_CONSENTS_PER_S: '10000',
  RATE_LIMIT_CONSENTS_BURST: '20000',
});
const { kafka, registry } = testStores();
const linkers = openServiceProcesses(LINKER, {
  ...settings,
  LOG_LEVEL: 'error',
  KAFKA_BROKERS: kafka.join(),
  SCHEMA_REGISTRY_URL: registry,
  TOPIC_PREFIX: stores.topicPrefix,
  CONSUMER_GROUP: stores.topicPrefix,
});
afterAll(async () => {
  await linkers.close();
  await gateway.close();
  await keeper.close();
  await people.close();
  await stores.close();
  await cluster.close();
});

interface Game {
  readonly environmentId: string;
  readonly cell: number;
  readonly key: string;
}

/** Creates a project whose production environment is in the cell. */
async function createGame(cell: number): Promise<Game> {
  let id: string;
  do id = `game-${randomBytes(4).toString('hex')}`;
  while (cellOf(`${id}-production`, CELLS) !== cell);
  await stores.projects('create', '--name', id, '--id', id);
  const options = ['--environment', 'production', '--kind', 'publishable', '--json', '--project', id];
  const { key } = JSON.parse(await stores.keys('create', ...options)) as { key: string };
  return { environmentId: `${id}-production`, cell, key };
}

/** Sends messages, consents and reads of consents for a game, one after another, until it is stopped. */
function startRequests({ key, ...game }: Game) {
  const acknowledged: Record<'message' | 'consent', string[]> = { message: [], consent: [] };
  const stopped = new AbortController();
  const caller = { url: gateway.url, key };
  const step = async (id: string) => {
    const eventTimestamp = new Date().toISOString();
    const ids = { messageId: randomUUID(), anonymousId: id, userId: `user ${id}`, identityType: 'steam' };
    const posted = await gateway.post(key, { messages: [{ type: 'identify', eventTimestamp, ...ids }] });
    if (posted.ok) acknowledged.message.push(id);
    const put = await putConsent(caller, consentChange({ anonymousId: id }));
    if (!put.ok) return;
    acknowledged.consent.push(id);
    const read = await getConsent(caller, `?anonymousId=${id}`);
    if (read.ok) expect(await read.json()).toMatchObject({ status: 'full' });
  };
  const running = (async () => {
    for (let count = 0; !stopped.signal.aborted; count++) {
      await step(`v${count}`);
      await delay(STEP_MS);
    }
  })();
  return {
    ...game,
    acknowledged,
    stop: async () => {
      stopped.abort();
      await running;
    },
  };
}

const [first] = cluster.nodes;
const addressOf = ({ port }: { readonly port: number }) => `127.0.0.1:${port}`;

const runCli = (...args: string[]) => {
  const env = { PATH: process.env.PATH ?? '', REDISCLI_AUTH: first!.client.options.password ?? '' };
  return promisify(execFile)('redis-cli', ['--cluster', ...args], { env });
};

/** Repeats a command, which fails while the nodes have not heard of the latest change. */
const redisCli = (...args: string[]): Promise<unknown> =>
  until(
    `redis-cli --cluster ${args.join(' ')}`,
    () =>
      runCli(...args).catch(({ stdout }: { stdout: string }) => {
        throw new Error(stdout.slice(-1_000));
      }),
    WAIT_MS,
  );

/** Kills the command when the added node has some of its slots. */
async function interruptRebalance(added: ClusterNode): Promise<void> {
  const running = runCli('rebalance', addressOf(first!), '--cluster-use-empty-masters', '--cluster-pipeline', '1000');
  const ended = running.then(
    () => 'completed',
    () => 'killed',
  );
  const isPartial = async () =>
    /myself,master.* connected [\d[]/.test(String(await added.client.call('CLUSTER', 'NODES')));
  await until('a slot has moved', isPartial, WAIT_MS);
  running.child.kill('SIGKILL');
  expect(await ended).toBe('killed');
}

it('requests are answered and nothing acknowledged is lost while slots move to an added primary', {
  timeout: 400_000,
}, async () => {
  const games: Game[] = [];
  for (const cell of USED_CELLS) games.push(await createGame(cell));
  for (const { key } of games)
    await until('the key is accepted', async () => (await gateway.post(key, { messages: [] })).status !== 401);
  await until('the fences are complete', async () => (await people.guards.fenceStatus()).isComplete, WAIT_MS);
  await linkers.start();
  const before = await Promise.all(MOVED_CELLS.map((cell) => cluster.primaryOf(`{c${cell}/${CELLS}}`)));
  const loads = games.map(startRequests);
  onTestFinished(async () => void (await Promise.allSettled(loads.map((load) => load.stop()))));
  const countOf = () => Math.min(...loads.map(({ acknowledged }) => acknowledged.consent.length));
  await until('requests are answered', () => countOf() > 10, WAIT_MS);

  const [primary, replica] = [await cluster.startNode(), await cluster.startNode()];
  await redisCli('add-node', addressOf(primary), addressOf(first!));
  await redisCli('add-node', addressOf(replica), addressOf(first!), '--cluster-slave');
  await interruptRebalance(primary);
  await redisCli('fix', addressOf(first!));
  await redisCli('rebalance', addressOf(first!), '--cluster-use-empty-masters', '--cluster-pipeline', '1000');

  for (const [at, cell] of MOVED_CELLS.entries())
    expect((await cluster.primaryOf(`{c${cell}/${CELLS}}`)).port).not.toBe(before[at]!.port);
  const during = countOf();
  await until('requests are answered afterwards', () => countOf() > during + 10, WAIT_MS);
  for (const load of loads) await load.stop();
  // Requests may also fail because brokers or nodes do not respond in time, for example on a busy machine.
  expect(gateway.output()).not.toMatch(FAILED_BY_MOVE);

  const keyOf = createIdentityKeyer(pepper);
  for (const { environmentId, acknowledged } of loads) {
    const key = (kind: 'anonymous' | 'steam', id: string) => keyOf(environmentId, kind, id);
    await until('consents are current', () => people.consents.read(environmentId, key('anonymous', 'v0')), WAIT_MS);
    for (const id of acknowledged.consent)
      expect(await people.consents.read(environmentId, key('anonymous', id))).toMatchObject({ status: 'full' });
    await until(
      'every link is applied',
      async () => {
        const keys = acknowledged.message.flatMap((id) => [key('anonymous', id), key('steam', `user ${id}`)]);
        const roots = (await people.graph.rootsOf(environmentId, keys)).map((root) => root?.toString('hex'));
        return acknowledged.message.every(
          (_, at) => roots[2 * at] !== undefined && roots[2 * at] === roots[2 * at + 1],
        );
      },
      WAIT_MS,
    );
  }
});
