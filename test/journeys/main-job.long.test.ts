import { randomUUID } from 'node:crypto';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type JourneyStack, startJourneyStack, stored, trackMessage } from './stack.ts';

let stack: JourneyStack;
beforeAll(async () => {
  stack = await startJourneyStack();
}, 120_000);
afterAll(() => stack.close(), 60_000);

const link = (fields: Record<string, unknown>) => trackMessage({ eventName: undefined, ...fields });
const idsOf = (messages: { messageId: string }[]) => messages.map(({ messageId }) => messageId);

describe('a batch posted over HTTP', () => {
  it('is found by the trace id of its request', async () => {
    const traceId = randomUUID().replaceAll('-', '');
    const sent = trackMessage();
    await stack.post([sent], { traceparent: `00-${traceId}-00f067aa0ba902b7-01` });
    await stored(stack, [sent.messageId]);
    const rows = await stack.query(`SELECT message_id FROM events_exact WHERE trace_id = '${traceId}'`);
    expect(rows).toEqual([{ message_id: sent.messageId }]);
  });

  it('belongs to its environment: the development key writes to the development environment', async () => {
    const sent = trackMessage();
    await stack.post([sent], { 'x-service-publishable-key': stack.keys.development.publishable });
    await stored(stack, [sent.messageId]);
    const rows = await stack.query(`SELECT environment_id FROM events_exact WHERE message_id = '${sent.messageId}'`);
    expect(rows).toEqual([{ environment_id: 'demo-development' }]);
  });
});

describe('people', () => {
  /** Person keys of the messages, once they belong to exactly `count` persons. */
  const personsOf = (messages: { messageId: string }[], count: number) =>
    until(`${messages.length} messages belong to ${count} persons`, async () => {
      const ids = idsOf(messages).map((id) => `'${id}'`);
      const rows = await stack.query<{ id: string; person: string }>(
        `SELECT message_id AS id, hex(person_key) AS person FROM events_identified WHERE message_id IN (${ids})`,
      );
      const persons = new Map(rows.map(({ id, person }) => [id, person]));
      return rows.length === messages.length && new Set(persons.values()).size === count ? persons : null;
    });

  it('events before and after identify, and of an aliased account, belong to one person; those of a stranger to another', async () => {
    const [anonymousId, userId, account] = [randomUUID(), randomUUID(), randomUUID()];
    const before = trackMessage({ anonymousId });
    const identify = link({ type: 'identify', anonymousId, userId, identityType: 'passport' });
    const ids = { fromId: account, fromType: 'steam', toId: userId, toType: 'passport' };
    const alias = link({ type: 'alias', anonymousId, ...ids });
    const after = trackMessage({ userId, identityType: 'passport' });
    const untyped = trackMessage({ userId });
    const steam = trackMessage({ userId: account, identityType: 'steam' });
    const stranger = trackMessage({ anonymousId: randomUUID() });
    for (const message of [before, identify, alias, after, untyped, steam, stranger])
      expect((await stack.post([message])).status).toBe(200);
    const own = [before, identify, alias, after, untyped, steam];
    const persons = await personsOf([...own, stranger], 2);
    expect(new Set(idsOf(own).map((id) => persons.get(id))).size).toBe(1);
  });
});

describe('a killed process', () => {
  const processes = ['event-writer', 'identity-linker', 'gateway', 'kafka', 'clickhouse', 'redis'];

  it.each(processes)('%s comes back with a new process id, and nothing accepted is lost or doubled', async (name) => {
    const pid = stack.file().processes[name]!;
    const [batch, later] = [1, 2].map(() =>
      Array.from({ length: 50 }, () => trackMessage({ anonymousId: randomUUID() })),
    );
    expect((await stack.post(batch!)).status).toBe(200);
    process.kill(pid, 'SIGKILL');
    // A client resends with the same ids until it gets a 2xx.
    await until('the later batch is accepted', async () => (await stack.post(later!)).status === 200, 60_000);
    expect((await stored(stack, idsOf([...batch!, ...later!]))).exact).toBe(100);
    await until(`${name} has a new process id`, () => ![undefined, pid].includes(stack.file().processes[name]));
  });
});
