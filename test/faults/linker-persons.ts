import assert from 'node:assert/strict';
import { rowsOf } from './world/clickhouse.ts';
import { post } from './world/post.ts';
import type { ServiceProcess } from './world/service-process.ts';
import type { Trial } from './world/trial.ts';
import { waitFor } from './world/wait.ts';

/** Posts valid messages repeatedly until a gateway accepts the batch. @returns the message ids */
export async function deliver(
  { ledger, gateway, key }: Pick<Trial, 'ledger' | 'key'> & { gateway: ServiceProcess },
  messages: readonly object[],
): Promise<string[]> {
  const createFields = () => ({ messageId: ledger.newId(), surface: 'web', eventTimestamp: new Date().toISOString() });
  const complete = messages.map((message) => ({ ...createFields(), ...message }));
  const ids = complete.map(({ messageId }) => messageId);
  const body = JSON.stringify({ messages: complete });
  await waitFor('messages are accepted', async () => {
    const attempt = await post({ url: gateway.url, key, body });
    ledger.record(ids, attempt);
    return attempt.status === 200;
  });
  return ids;
}

export type Persons = ReturnType<typeof createPersons>;

/**
 * Creates persons with known links and events, in addition to the persons in the traffic.
 * @param sender returns the gateway and the publishable key; called for each batch, because the key may change
 */
export function createPersons(
  { world, ledger, environmentId }: Trial,
  sender: () => { gateway: ServiceProcess; key: string },
) {
  const send = (messages: readonly object[]) => deliver({ ledger, ...sender() }, messages);
  const eventFor = (ids: Record<string, string>) => ({ ...ids, type: 'track', eventName: 'probe' });
  const playerOf = (name: string) => ({ userId: `probe-player-${name}`, identityType: 'passport' });
  const personsOf = async () =>
    await rowsOf(
      world.deployment.engine,
      `SELECT splitByChar('-', if(user_id != '', user_id, anonymous_id))[3] AS name, count(), uniqExact(person_key),
         hex(any(person_key))
       FROM events_identified WHERE environment_id = '${environmentId}' AND event_name = 'probe' GROUP BY name`,
    );
  return {
    async identify(name: string) {
      const anonymousId = `probe-visitor-${name}`;
      const fact = { ...playerOf(name), anonymousId, type: 'identify' };
      await send([eventFor({ anonymousId }), eventFor(playerOf(name)), fact]);
    },
    async alias(name: string) {
      const account = `probe-steam-${name}`;
      const { userId: toId, identityType: toType } = playerOf(name);
      const fact = { type: 'alias', fromId: account, fromType: 'steam', toId, toType };
      await send([eventFor({ userId: account, identityType: 'steam' }), fact]);
    },
    /** Waits until the events for each name belong to one person. @throws Error if two names share a person */
    async assertMerged(names: readonly string[], eventsEach: number) {
      const expected = names.map((name) => [name, String(eventsEach), '1']).sort();
      const read = async () => (await personsOf()).filter(([name = '']) => names.includes(name)).sort();
      const isMerged = async () => {
        const found = (await read()).map((row) => row.slice(0, 3));
        return JSON.stringify(found) === JSON.stringify(expected);
      };
      await waitFor(`the events for each of ${names} belong to one person`, isMerged);
      const keys = new Set((await read()).map((row) => row[3]));
      assert.equal(keys.size, names.length, 'number of distinct persons');
    },
  };
}
