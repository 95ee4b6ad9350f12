import { until } from '@playline/testkit';
import { afterAll, expect, it } from 'vitest';
import { awaitStored, createPlayer, openTestStack, storedOf } from './test/stack.ts';

const STACK_MS = 600_000;
const single = openTestStack(() => ({}));
const cluster = openTestStack(() => ({}), { cluster: true });
afterAll(async () => {
  await single.close();
  await cluster.close();
}, STACK_MS);

it(
  'a backup of a single server is restored on an empty cluster, which continues with the same persons',
  async () => {
    const [before, after] = [createPlayer(100), createPlayer(5)];
    await single.startAll();
    await single.post(before.messages);
    await awaitStored(single, before.ids);
    await until('the link is stored', async () => (await single.query('SELECT 1 FROM identity_links')).length > 0);
    await single.operate(['backup', '--to', single.backups]);
    await single.stop();

    cluster.useSecretsOf(single);
    await cluster.startStores();
    const generation = { LINK_TOPIC_GENERATION: '1' };
    await cluster.operate(['restore', '--from', single.backups, '--yes'], generation);
    await cluster.stop();
    await cluster.startAll(generation);
    await cluster.post(
      after.messages.map((message) => (message.type === 'identify' ? { ...message, userId: before.userId } : message)),
    );
    await awaitStored(cluster, after.ids);
    expect(await storedOf(cluster, before.ids)).toEqual([...before.ids].sort());
    const list = [...before.ids, ...after.ids].map((id) => `'${id}'`).join();
    const countPersons = `SELECT uniqExact(person_key) FROM events_identified WHERE message_id IN (${list})`;
    await until(
      'all events belong to one person',
      async () => Number((await cluster.query(countPersons))[0]?.[0]) === 1,
    );
    expect(await cluster.operate(['verify'], generation)).toContain('no differences');
  },
  STACK_MS,
);
