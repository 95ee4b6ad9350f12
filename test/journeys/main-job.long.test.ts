import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type JourneyStack, query, startJourneyStack, stored, trackMessage } from './stack.ts';

let stack: JourneyStack;
beforeAll(async () => {
  stack = await startJourneyStack();
}, 120_000);
afterAll(() => stack.close(), 60_000);

const idsOf = (messages: { messageId: string }[]) => messages.map(({ messageId }) => messageId);

describe('a batch posted over HTTP', () => {
  it('is read back from ClickHouse field by field exactly as sent', async () => {
    const sent = trackMessage({
      anonymousId: 'anon-1',
      deviceId: 'device-1',
      sessionId: 'session-1',
      surface: 'unity',
      consentLevel: 'full',
      test: true,
      eventTimestamp: `${new Date().toISOString().slice(0, 19)}.1239999+00:00`,
      context: {
        library: 'playline-unity',
        libraryVersion: '2.0.1',
        screenDensity: 1.5,
        pageTitle: 'Spiel “Ü” 🎮',
        locale: '',
      },
      properties: { level: 3, items: ['a', { b: null }], text: 'quote " and \\ and \u0000' },
    });
    expect(await stack.post([sent])).toMatchObject({ status: 200, body: { success: true, accepted: 1 } });
    await stored(stack, [sent.messageId]);
    const [row] = await stack.query<Record<string, unknown>>(
      `SELECT * EXCEPT (identity_key, anonymous_key, user_key, from_key, to_key),
         toString(toUnixTimestamp64Milli(event_time)) AS event_ms
       FROM events_exact WHERE message_id = '${sent.messageId}'`,
    );
    expect(row).toMatchObject({
      environment_id: 'demo-production',
      type: 'track',
      event_name: 'level_started',
      anonymous_id: 'anon-1',
      user_id: '',
      device_id: 'device-1',
      session_id: 'session-1',
      surface: 'unity',
      consent_level: 'full',
      test: true,
      library: 'playline-unity',
      library_version: '2.0.1',
      screen_density: 1.5,
      page_title: 'Spiel “Ü” 🎮',
      locale: '',
      traits: '',
      event_ms: String(Date.parse(`${String(sent.eventTimestamp).slice(0, 19)}.123Z`)),
    });
    expect(JSON.parse(String(row?.properties))).toEqual(sent.properties);
  });

  it('is found by the trace id of its request', async () => {
    const traceId = randomUUID().replaceAll('-', '');
    const sent = trackMessage();
    await stack.post([sent], { traceparent: `00-${traceId}-00f067aa0ba902b7-01` });
    await stored(stack, [sent.messageId]);
    const rows = await stack.query(`SELECT message_id FROM events_exact WHERE trace_id = '${traceId}'`);
    expect(rows).toEqual([{ message_id: sent.messageId }]);
  });

  it('is stored once when it is sent again, also before any merge', async () => {
    const batch = Array.from({ length: 10 }, () => trackMessage({ anonymousId: 'resender' }));
    for (let round = 0; round < 3; round++) expect((await stack.post(batch)).status).toBe(200);
    expect((await stored(stack, idsOf(batch))).exact).toBe(10);
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
      const ids = idsOf(messages)
        .map((id) => `'${id}'`)
        .join();
      const rows = await stack.query<{ id: string; person: string }>(
        `SELECT message_id AS id, hex(person_key) AS person FROM events_identified WHERE message_id IN (${ids})`,
      );
      const persons = new Map(rows.map(({ id, person }) => [id, person]));
      return rows.length === messages.length && new Set(persons.values()).size === count ? persons : null;
    });

  it('events before and after identify, and of an aliased account, belong to one person; those of a stranger to another', async () => {
    const [anonymousId, userId, account] = [randomUUID(), randomUUID(), randomUUID()];
    const before = trackMessage({ anonymousId });
    const identify = trackMessage({
      type: 'identify',
      anonymousId,
      userId,
      identityType: 'passport',
      eventName: undefined,
    });
    const alias = trackMessage({
      type: 'alias',
      anonymousId,
      fromId: account,
      fromType: 'steam',
      toId: userId,
      toType: 'passport',
      eventName: undefined,
    });
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

  it('the second user of a shared device is not joined with the first', async () => {
    const [anonymousId, first, second] = [randomUUID(), randomUUID(), randomUUID()];
    const identify = (userId: string) =>
      trackMessage({ type: 'identify', anonymousId, userId, identityType: 'passport', eventName: undefined });
    const messages = [trackMessage({ anonymousId }), identify(first), identify(second)];
    for (const message of messages) await stack.post([message]);
    const persons = await personsOf(messages, 2);
    expect(persons.get(messages[0]?.messageId ?? '')).toBe(persons.get(messages[1]?.messageId ?? ''));
    const refusals = await until('the refusal is recorded', () =>
      stack
        .query(
          `SELECT reason FROM identity_links WHERE message_id = '${messages[2]?.messageId}' AND outcome = 'refused'`,
        )
        .then((rows) => (rows.length > 0 ? rows : null)),
    );
    expect(refusals).toEqual([{ reason: 'shared_device' }]);
  });

  it('an event without an owner has no person', async () => {
    const sent = trackMessage();
    await stack.post([sent]);
    await stored(stack, [sent.messageId]);
    const rows = await stack.query(
      `SELECT hex(person_key) AS person FROM events_identified WHERE message_id = '${sent.messageId}'`,
    );
    expect(rows).toEqual([{ person: '0'.repeat(32) }]);
  });
});

describe('a killed process', () => {
  const processes = ['event-writer', 'identity-linker', 'gateway', 'kafka', 'clickhouse', 'redis'];

  it.each(processes)('%s comes back with a new process id, and nothing accepted is lost or doubled', async (name) => {
    const pid = stack.file().processes[name];
    if (pid === undefined) throw new Error(`${name} has no process id in the stack file`);
    const batch = Array.from({ length: 50 }, () => trackMessage({ anonymousId: randomUUID() }));
    expect((await stack.post(batch)).status).toBe(200);
    process.kill(pid, 'SIGKILL');
    const later = Array.from({ length: 50 }, () => trackMessage({ anonymousId: randomUUID() }));
    // A client resends with the same ids until it gets a 2xx.
    await until('the later batch is accepted', async () => (await stack.post(later)).status === 200, 60_000);
    expect((await stored(stack, idsOf([...batch, ...later]))).exact).toBe(100);
    await until(`${name} has a new process id`, () => {
      const now = stack.file().processes[name];
      return now !== undefined && now !== pid;
    });
  });
});

describe('secrets', () => {
  it('the analyst can read the views and write nothing', async () => {
    expect(
      await query<{ n: string }>(stack.analyst, 'SELECT toString(count()) AS n FROM events_identified'),
    ).toHaveLength(1);
    for (const statement of ['DROP TABLE events', 'TRUNCATE TABLE events', "INSERT INTO events (type) VALUES ('x')"])
      await expect(query(stack.analyst, statement)).rejects.toThrow(/ACCESS_DENIED|READONLY/);
  });

  it('a secret key that was sent everywhere is in no log', async () => {
    const secret = stack.keys.production.secret;
    const { gateway } = stack.file();
    await stack.post([trackMessage()], { 'x-service-publishable-key': secret });
    await stack.post([trackMessage()], { 'x-service-api-key': secret, traceparent: secret });
    await stack.post([{ messageId: secret, type: secret, eventTimestamp: secret }]);
    await fetch(`${gateway}/${secret}?key=${secret}`);
    await stack.post([{ messageId: secret }], { 'content-encoding': secret });
    const logs = join(stack.folder, 'logs');
    for (const name of readdirSync(logs)) expect(readFileSync(join(logs, name), 'utf8'), name).not.toContain(secret);
  });
});
