import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { messageRecordOf, until } from '@playline/testkit';
import { createRandom } from '@playline/testkit/random';
import type { Effects } from './world/report.ts';
import { assertExact, WAIT_MAX_MS } from './writer-engine.ts';
import type { WriterRig } from './writer-rig.ts';

const CALLS = 12;
const CALL_RECORDS = 80;

const keyOf = (environmentId: string, identity: string) =>
  Buffer.concat([Buffer.from(environmentId), createHash('md5').update(identity).digest()]);

/** Sends half of the traffic for one identity and blocks inserts for its partition. Other partitions must keep up. */
export async function overloadPartition(rig: WriterRig, seed: number): Promise<Effects> {
  const random = createRandom(seed);
  const environmentId = `test-hot-${seed}`;
  const hotKey = keyOf(environmentId, 'hot');
  const writer = await rig.startWriter({ BLOCK_ROWS_MAX: '50' });
  try {
    await until('the writer is ready', () => writer.isReady(), WAIT_MAX_MS);
    await rig.publish([rig.toRecord(messageRecordOf('hot', { environmentId }), hotKey)]);
    const { partition: hot } = (await rig.read(rig.messages)).find((record) => record.key?.equals(hotKey))!;
    const released = Promise.withResolvers<void>();
    const isHot = (token: string) => token.startsWith(`${rig.messages}|${hot}|`);
    writer.clickhouse.watch = { onRequest: (token) => (isHot(token) ? released.promise : undefined) };
    for (let call = 0; call < CALLS; call++) {
      const run = Array.from({ length: CALL_RECORDS }, () => {
        const key = random.chance(0.5) ? hotKey : keyOf(environmentId, random.hex(8));
        return rig.toRecord(messageRecordOf('hot', { environmentId }), key);
      });
      await rig.publish(run);
      const haveOthersCaughtUp = async () =>
        [...(await lagsOf(rig))].every(([partition, lag]) => partition === hot || lag === 0);
      await until('all other partitions have caught up', haveOthersCaughtUp, WAIT_MAX_MS);
    }
    const waiting = (await lagsOf(rig)).get(hot) ?? 0;
    assert.ok(waiting > CALL_RECORDS, 'the hot partition is blocked');
    released.resolve();
    await assertExact(rig);
    await writer.stop();
    const stored = CALLS * CALL_RECORDS + 1 - waiting;
    return { 'records waiting in the hot partition': waiting, 'records stored in other partitions': stored };
  } finally {
    await writer.close();
  }
}

async function lagsOf({ reader, group, messages }: WriterRig): Promise<Map<number, number>> {
  const committed = await reader.committed(group, messages);
  const bounds = await reader.bounds(messages);
  return new Map(bounds.map(({ partition, end }) => [partition, end - (committed.get(partition) ?? 0)]));
}
