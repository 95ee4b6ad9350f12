import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { createRandom } from '@playline/testkit/random';
import { type Reached, tally } from './world/reached.ts';
import { assertExact, WAIT_MAX_MS } from './writer-exact.ts';
import type { GatedProcess } from './writer-process.ts';
import type { WriterRig } from './writer-rig.ts';

/** Writers join, leave gracefully, and are killed, while inserts are in flight. */
export async function rebalanceWriters(rig: WriterRig, seed: number): Promise<Reached> {
  const random = createRandom(seed);
  const members: GatedProcess[] = [];
  const join = async () => {
    const member = await rig.startWriter({ BLOCK_ROWS_MAX: String(random.integer(10, 40)) });
    // Members come and go while inserts are delayed.
    const slow = async () => void (await delay(random.integer(0, 250)));
    member.clickhouse.watch = { arrived: slow, answered: () => slow().then(() => false) };
    members.push(member);
    return member;
  };
  const isInserting = () => members.some(({ clickhouse }) => clickhouse.inFlight > 0);
  const first = await join();
  await until('the first writer is ready', () => first.isReady(), WAIT_MAX_MS);
  const changes: string[] = [];
  for (let change = 0; change < 4; change++) {
    await rig.publishMessages(`test-rebalance-${seed}`, 120);
    await until('an insert is on its way', isInserting, WAIT_MAX_MS);
    if (members.length < 2 || random.chance(0.5)) {
      const joiner = await join();
      await until('a writer has joined', () => joiner.isReady(), WAIT_MAX_MS);
      changes.push('joined');
    } else {
      const [leaving] = members.splice(random.integer(0, members.length - 1), 1);
      const isKilled = random.chance(0.5);
      await leave(leaving!, isKilled);
      changes.push(isKilled ? 'SIGKILL' : 'SIGTERM');
    }
  }
  await assertExact(rig);
  for (const member of members) await leave(member, false);
  return tally(changes);
}

async function leave(member: GatedProcess, isKilled: boolean): Promise<void> {
  if (isKilled) await member.kill();
  else await member.stop();
  await member.clickhouse.settled();
  await member.close();
}
