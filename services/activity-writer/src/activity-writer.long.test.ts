import type { ShownActivity } from '@playline/chain';
import type { ActivityRecord, TokenRecord } from '@playline/contracts';
import { readTopic } from '@playline/stream/kafka';
import { testStores, until } from '@playline/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openRealWriters, partitionOf, type RealWriters } from './test/real-writer.ts';
import { activityOf, activityValue, detailsOf, tokenOf, tokenValue } from './test/records.ts';

const CHAINS = ['test-one', 'test-two', 'test-three', 'test-four', 'test-five'];
const CHAIN = CHAINS[0]!;

const detailsIn = ({ members }: ShownActivity): string => JSON.stringify(JSON.parse(`{${members}}`).details);

describe('the activity writer as a process', () => {
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
  beforeAll(async () => {
    real = await openRealWriters();
  });
  afterEach(() => real.kill());
  afterAll(() => real.close());

  it('stores activities and tokens, refuses updates that readers would lose, and a reader follows the feed', async () => {
    const writer = await real.start();
    await real.publish([1, 2, 3].map((number) => toActivity(activityOf(number, { chain: CHAIN }))));
    const follower = real.follow(CHAIN);
    await until('three activities', async () => {
      await follower.catchUp();
      return follower.seen.length === 3;
    });
    await real.publish([
      toActivity(activityOf(2, { chain: CHAIN, details: detailsOf(2, '2') })),
      toActivity(activityOf(3, { chain: CHAIN, type: 'deposit' })),
      { ...toActivity(activityOf(4, { chain: CHAIN })), value: Buffer.from('no frame') },
      toToken(tokenOf(7, { chain: CHAIN, symbol: 'OLD' })),
      toToken(tokenOf(7, { chain: CHAIN, symbol: 'NEW' })),
    ]);
    await until('the update', async () => {
      await follower.catchUp();
      return follower.seen.length === 4;
    });
    expect(follower.seen.map(detailsIn)).toEqual([...[1, 2, 3].map((number) => detailsOf(number)), detailsOf(2, '2')]);
    expect(follower.seen[3]!.id).toBe(follower.seen[1]!.id);
    const contract = `0x${tokenOf(7).contractAddress.toString('hex')}`;
    await until('the token', async () => (await real.reader.readToken(CHAIN, contract))?.symbol === 'NEW');
    const letters = await until('two letters', async () => {
      const found = await readTopic({ brokers: testStores().kafka, topic: `${real.activities}.dead` });
      return found.length === 2 ? found : null;
    });
    expect(letters.map(({ headers }) => String(headers.reason)).toSorted()).toEqual([
      'changes type',
      'not in the Confluent wire format',
    ]);
    expect(await writer.stop('SIGTERM')).toBe(0);
  }, 60_000);

  it('moves the watermark of idle partitions by ticks, and again when Redis has lost it', async () => {
    const writer = await real.start();
    const known = async () => Promise.all([0, 1].map((partition) => real.watermarks.read(partition)));
    const movedFrom = (before: readonly (number | null)[]) =>
      until('every partition is known further', async () => {
        const now = await known();
        const isMoved = now.every((each, partition) => each !== null && each > (before[partition] ?? 0));
        return isMoved ? now : null;
      });
    const first = await movedFrom([0, 0]);
    const second = await movedFrom(first);
    await real.redis.client.del('chain:watermark');
    await movedFrom(second);
    const metrics = await (await fetch(`${writer.admin}/metrics`)).text();
    expect(metrics).toMatch(/playline_activity_writer_ticks_total\{outcome="sent".*\} [1-9]/);
    expect(metrics).not.toMatch(/outcome="failed"/);
    expect(await writer.stop('SIGTERM')).toBe(0);
  }, 60_000);

  it.each([
    ['killed', 'SIGKILL'],
    ['frozen past its session, and goes on', 'SIGSTOP'],
  ] as const)(
    'beside a second one gives a replica every activity once, whichever of them is %s',
    async (_, signal) => {
      const chain = signal === 'SIGKILL' ? CHAINS[1]! : CHAINS[2]!;
      const firstNumber = signal === 'SIGKILL' ? 100_000 : 200_000;
      const sent = 30 * 50;
      const follower = real.follow(chain);
      let published = 0;
      let isOver = false;
      const publishing = (async () => {
        for (let batch = 0; batch < 30; batch++) {
          // The sender stays close to the writers, so that blocks are under way until the last interruption.
          await until('most of it is written', async () => (await real.rowsOf(chain)).length >= published - 100);
          const numbers = Array.from({ length: 50 }, (_unused, index) => published + index);
          await real.publish(numbers.map((number) => toActivity(activityOf(firstNumber + number, { chain }))));
          published += 50;
        }
      })();
      const following = (async () => {
        while (!isOver) await follower.catchUp();
      })();
      let writers = [await real.start(), await real.start()];
      for (let cut = 0; cut < 3; cut++) {
        const before = (await real.rowsOf(chain)).length;
        await until('rows come', async () => (await real.rowsOf(chain)).length > before || before === sent);
        const [victim, other] = writers as [(typeof writers)[0], (typeof writers)[0]];
        if (signal === 'SIGKILL') {
          await victim.stop(signal);
          writers = [other, await real.start()];
        } else {
          victim.child.kill(signal);
          // Longer than a session, so the other writer has its partitions.
          const endMs = performance.now() + 2_500;
          await until('the session is over', () => performance.now() > endMs);
          victim.child.kill('SIGCONT');
          writers = [other, victim];
        }
      }
      await publishing;
      await until('the replica has all', () => follower.seen.length >= sent, 60_000);
      isOver = true;
      await following;
      expect(new Set(follower.seen.map(({ id }) => id)).size).toBe(sent);
      expect(follower.seen).toHaveLength(sent);
      const rows = await real.rowsOf(chain);
      expect(rows).toHaveLength(sent);
      for (const [index, row] of rows.entries()) {
        if (index > 0) expect(row.us).toBeGreaterThan(rows[index - 1]!.us);
      }
      // Three sessions expire, which takes long on a busy machine.
    },
    180_000,
  );

  it('gives each activity the same time again when it dies between publishing its watermark and its commit', async () => {
    const chain = CHAINS[4]!;
    const monitor = await real.redis.client.monitor();
    const watermarkOf = (partition: number) =>
      new Promise<void>((resolve) => {
        monitor.on('monitor', (_time: string, [command, key, field]: string[]) => {
          const isWatermark = command?.toLowerCase() === 'hset' && key === 'chain:watermark';
          if (isWatermark && field === String(partition)) resolve();
        });
      });
    for (let cut = 0; cut < 4; cut++) {
      const writer = await real.start();
      await watermarkOf(0);
      const numbers = Array.from({ length: 20 }, (_, index) => 400_000 + cut * 20 + index);
      const moved = watermarkOf(partitionOf(chain));
      await real.publish(numbers.map((number) => toActivity(activityOf(number, { chain }))));
      await moved;
      await writer.stop('SIGKILL');
      monitor.removeAllListeners('monitor');
    }
    monitor.disconnect();
    const writer = await real.start();
    const rows = await until('all activities', async () => {
      const found = await real.rowsOf(chain);
      return found.length >= 80 ? found : null;
    });
    const follower = real.follow(chain);
    await until('the replica has all', async () => {
      await follower.catchUp();
      return follower.seen.length >= 80;
    });
    expect(rows).toHaveLength(80);
    expect(new Set(follower.seen.map(({ id }) => id)).size).toBe(80);
    expect(follower.seen).toHaveLength(80);
    expect(await writer.stop('SIGTERM')).toBe(0);
  }, 90_000);

  it('does not move the watermark past an open transaction, and never reads an aborted one', async () => {
    const chain = CHAINS[3]!;
    const writer = await real.start();
    const kafka = await openTransaction(real, [toActivity(activityOf(300_001, { chain }))]);
    const { offset } = await real.producer.sendForOffset(toActivity(activityOf(300_002, { chain })));
    const before = await real.watermarks.read(partitionOf(chain));
    await until('the other partition is known further', async () => {
      const other = await real.watermarks.read(1 - partitionOf(chain));
      return other !== null && other > (before ?? 0) + 3_000_000;
    });
    expect(await real.rowsOf(chain)).toEqual([]);
    await kafka.abort();
    const rows = await until('the activity', async () => {
      const found = await real.rowsOf(chain);
      return found.length > 0 ? found : null;
    });
    expect(rows.map((row) => row.offset)).toEqual([offset]);
    await until(
      'it is known further',
      async () => ((await real.watermarks.read(partitionOf(chain))) ?? 0) > rows[0]!.us,
    );
    expect(await real.rowsOf(chain)).toEqual(rows);
    expect(await writer.stop('SIGTERM')).toBe(0);
  }, 60_000);
});

/** Records in a transaction that is neither committed nor aborted. */
async function openTransaction(
  real: RealWriters,
  records: readonly { topic: string; key: Buffer; value: Buffer }[],
): Promise<{ abort(): Promise<void> }> {
  const { Kafka, Partitioners, logLevel } = await import('kafkajs');
  const kafka = new Kafka({ clientId: 'test', brokers: testStores().kafka, logLevel: logLevel.NOTHING });
  const producer = kafka.producer({
    transactionalId: `${real.activities}-test`,
    idempotent: true,
    maxInFlightRequests: 1,
    createPartitioner: Partitioners.DefaultPartitioner,
  });
  await producer.connect();
  const transaction = await producer.transaction();
  for (const { topic, key, value } of records) await transaction.send({ topic, messages: [{ key, value }] });
  return {
    abort: async () => {
      await transaction.abort();
      await producer.disconnect();
    },
  };
}
