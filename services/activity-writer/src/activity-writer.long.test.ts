import type { ShownActivity } from '@playline/chain';
import type { ActivityRecord, TokenRecord } from '@playline/contracts';
import { readTopic } from '@playline/stream/kafka';
import { testStores, until } from '@playline/testkit';
import { Kafka, logLevel, Partitioners } from 'kafkajs';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type Follower, openRealWriters, partitionOf, type RealWriters } from './test/real-writer.ts';
import { activityOf, activityValue, detailsOf, tokenOf, tokenValue } from './test/records.ts';

const [CHAIN, KILLED_CHAIN, ABORTED_CHAIN] = ['test-one', 'test-four', 'test-five'] as const;

const numbersFrom = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index);
const detailsIn = ({ members }: ShownActivity): string => JSON.stringify(JSON.parse(`{${members}}`).details);

let real: RealWriters;
const toActivity = (record: ActivityRecord) => ({
  topic: real.activities,
  key: Buffer.from(record.chain),
  value: activityValue(real.schemaIdOf(real.activities), record),
});
const toToken = (record: TokenRecord) => ({
  topic: real.tokens,
  key: Buffer.concat([Buffer.from(record.chain), record.contractAddress]),
  value: tokenValue(real.schemaIdOf(real.tokens), record),
});
const publishActivities = (chain: string, numbers: readonly number[]) =>
  real.publish(numbers.map((number) => toActivity(activityOf(number, { chain }))));
const untilSeen = (follower: Follower, count: number) => {
  const isSeen = async () => {
    await follower.catchUp();
    return follower.seen.length >= count;
  };
  return until('the replica has all rows', isSeen, 150_000);
};
const expectOnce = ({ seen }: Follower, count: number) => {
  expect(new Set(seen.map(({ id }) => id)).size).toBe(count);
  expect(seen).toHaveLength(count);
};
beforeAll(async () => {
  real = await openRealWriters();
});
afterEach(() => real.kill());
afterAll(() => real.close());

it('the activity writer stores activities and tokens, and rejects updates that readers would miss', async () => {
  const writer = await real.start();
  await publishActivities(CHAIN, [1, 2, 3]);
  const follower = real.follow(CHAIN);
  await untilSeen(follower, 3);
  await real.publish([
    toActivity(activityOf(2, { chain: CHAIN, details: detailsOf(2, '2') })),
    toActivity(activityOf(3, { chain: CHAIN, type: 'deposit' })),
    { ...toActivity(activityOf(4, { chain: CHAIN })), value: Buffer.from('no frame') },
    toToken(tokenOf(7, { chain: CHAIN, symbol: 'OLD' })),
    toToken(tokenOf(7, { chain: CHAIN, symbol: 'NEW' })),
  ]);
  await untilSeen(follower, 4);
  expect(follower.seen.map(detailsIn)).toEqual([...[1, 2, 3].map((number) => detailsOf(number)), detailsOf(2, '2')]);
  expect(follower.seen[3]!.id).toBe(follower.seen[1]!.id);
  const contract = `0x${tokenOf(7).contractAddress.toString('hex')}`;
  await until('the token is updated', async () => (await real.reader.readToken(CHAIN, contract))?.symbol === 'NEW');
  const deadLetters = await until('two dead letters are written', async () => {
    const found = await readTopic({ brokers: testStores().kafka, topic: `${real.activities}.dead` });
    return found.length === 2 ? found : null;
  });
  expect(deadLetters.map(({ headers }) => String(headers.reason)).toSorted()).toEqual([
    'changes type',
    'not in the Confluent wire format',
  ]);
  expect(await writer.stop('SIGTERM')).toBe(0);
}, 60_000);

it('ticks advance the watermarks of idle partitions, and restore watermarks that Redis has lost', async () => {
  const writer = await real.start();
  const readWatermarks = async () => Promise.all([0, 1].map((partition) => real.watermarks.read(partition)));
  const untilAdvanced = (before: readonly (number | null)[]) =>
    until('every watermark advances', async () => {
      const now = await readWatermarks();
      const hasAdvanced = now.every((each, partition) => each !== null && each > (before[partition] ?? 0));
      return hasAdvanced ? now : null;
    });
  const first = await untilAdvanced([0, 0]);
  const second = await untilAdvanced(first);
  await real.redis.client.del('chain:watermark');
  await untilAdvanced(second);
  const metrics = await (await fetch(`${writer.admin}/metrics`)).text();
  expect(metrics).toMatch(/playline_activity_writer_ticks_total\{outcome="sent".*\} [1-9]/);
  expect(metrics).not.toMatch(/outcome="failed"/);
  expect(await writer.stop('SIGTERM')).toBe(0);
}, 60_000);

it('an activity keeps its time when its writer is killed between publishing the watermark and the commit', async () => {
  const chain = KILLED_CHAIN;
  const monitor = await real.redis.client.monitor();
  const watermarkOf = (partition: number) =>
    new Promise<void>((resolve) => {
      monitor.on('monitor', (_time: string, [command, key, field]: string[]) => {
        const isWatermark = command?.toLowerCase() === 'hset' && key === 'chain:watermark';
        if (isWatermark && field === String(partition)) resolve();
      });
    });
  for (let cut = 0; cut < 3; cut++) {
    const writer = await real.start();
    await watermarkOf(0);
    const watermarkMoved = watermarkOf(partitionOf(chain));
    await publishActivities(chain, numbersFrom(400_000 + cut * 20, 20));
    await watermarkMoved;
    await writer.stop('SIGKILL');
    monitor.removeAllListeners('monitor');
  }
  monitor.disconnect();
  const writer = await real.start();
  const follower = real.follow(chain);
  await untilSeen(follower, 60);
  expectOnce(follower, 60);
  expect(await real.rowsOf(chain)).toHaveLength(60);
  expect(await writer.stop('SIGTERM')).toBe(0);
}, 90_000);

it('the watermark does not pass an open transaction, and aborted records are never read', async () => {
  const chain = ABORTED_CHAIN;
  const writer = await real.start();
  const transaction = await openTransaction(toActivity(activityOf(300_001, { chain })));
  const { offset } = await real.producer.sendForOffset(toActivity(activityOf(300_002, { chain })));
  const before = await real.watermarks.read(partitionOf(chain));
  await until('the watermark of the other partition advances', async () => {
    const other = await real.watermarks.read(1 - partitionOf(chain));
    return other !== null && other > (before ?? 0) + 3_000_000;
  });
  expect(await real.rowsOf(chain)).toEqual([]);
  await transaction.abort();
  const rows = await until('the activity is stored', async () => {
    const found = await real.rowsOf(chain);
    return found.length > 0 ? found : null;
  });
  expect(rows.map((row) => row.offset)).toEqual([offset]);
  await until(
    "the watermark of the activity's partition advances",
    async () => ((await real.watermarks.read(partitionOf(chain))) ?? 0) > rows[0]!.us,
  );
  expect(await real.rowsOf(chain)).toEqual(rows);
  expect(await writer.stop('SIGTERM')).toBe(0);
}, 60_000);

async function openTransaction({ topic, key, value }: ReturnType<typeof toActivity>) {
  const kafka = new Kafka({ clientId: 'test', brokers: testStores().kafka, logLevel: logLevel.NOTHING });
  const producer = kafka.producer({
    transactionalId: `${real.activities}-test`,
    idempotent: true,
    maxInFlightRequests: 1,
    createPartitioner: Partitioners.DefaultPartitioner,
  });
  await producer.connect();
  const transaction = await producer.transaction();
  await transaction.send({ topic, messages: [{ key, value }] });
  return {
    abort: async () => {
      await transaction.abort();
      await producer.disconnect();
    },
  };
}
