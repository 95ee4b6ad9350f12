// Contract, `test` of a message, and rows of ingest about what is stored of a message: unknown extra fields, null,
// blank optional ids, placeholders, an alias from the own anonymous id, `test: true`.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Client, expectAccepted, message, type Sent, track, withContext } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';
import { linksOnLog, messagesOnLog } from './log.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway();
}, START_MAX_MS);
afterAll(() => client.close());

async function keep(...sent: Sent[]) {
  expectAccepted(await client.send(...sent), sent.length);
  const records = await messagesOnLog(
    client.topicPrefix,
    sent.map(({ messageId }) => messageId),
  );
  expect(records).toHaveLength(sent.length);
  return records;
}

it('unknown extra fields are not stored, neither of a message nor of its context', async () => {
  const word = `word-${randomUUID()}`;
  const [kept] = await keep({ ...withContext({ plugin: word }), extra: { deep: [word] } });
  expect(kept?.record.library).toBe('playline-web');
  expect(kept?.bytes.includes(word)).toBe(false);
});

it('null in an optional field is stored as if the field were absent, also in context', async () => {
  const fields = ['anonymousId', 'deviceId', 'userId', 'identityType', 'surface', 'consentLevel', 'test', 'traits'];
  const [messageId, eventTimestamp] = [randomUUID(), new Date().toISOString()];
  const nulls = Object.fromEntries(fields.map((field) => [field, null]));
  const context = { library: 'a', libraryVersion: '1' };
  const [one] = await keep(track({ messageId, eventTimestamp, context }));
  expectAccepted(
    await client.send(track({ messageId, eventTimestamp, ...nulls, context: { ...context, locale: null } })),
  );
  const [, two] = await messagesOnLog(client.topicPrefix, [messageId]);
  const apart = { receivedAt: 0, traceId: '' };
  expect({ ...two?.record, ...apart }).toEqual({ ...one?.record, ...apart });
});

it.each(['', ' ', '\t\n', '\u3000'])('a blank optional id %j is absent: it owns nothing', async (blank) => {
  const [kept] = await keep(track({ anonymousId: blank, userId: blank, deviceId: blank }));
  expect(kept?.key).toBeNull();
  expect(kept?.record).toMatchObject({ anonymousId: '', userId: '' });
});

it.each([undefined, null, '', '  '])(
  'a blank optional id anonymousId %j of an identify is absent: it links nothing',
  async (blank) => {
    const sent = message('identify', { anonymousId: blank });
    const linking = message('identify', { anonymousId: `anon-${randomUUID()}` });
    await keep(sent, linking);
    const links = await linksOnLog(client.topicPrefix, [sent.messageId, linking.messageId]);
    expect(links.map(({ fromId }) => fromId)).toEqual([linking.anonymousId]);
  },
);

it('a blank optional id beside a valid id leaves that id as the owner', async () => {
  const [blank] = await keep(track({ anonymousId: 'visitor', userId: ' ' }));
  const [absent] = await keep(track({ anonymousId: 'visitor' }));
  expect(blank?.key).not.toBeNull();
  expect(blank?.key).toEqual(absent?.key);
});

it.each(['N/A', ' undefined ', '{"id":null}', 'ffffffff-ffff-ffff-ffff-ffffffffffff'])(
  'a placeholder as an id %j is stored and owns nothing',
  async (placeholder) => {
    const [kept] = await keep(track({ anonymousId: placeholder, userId: placeholder }));
    expect(kept?.key).toBeNull();
    expect(kept?.record).toMatchObject({ anonymousId: placeholder, userId: placeholder });
  },
);

it('an alias from the own anonymous id without a type names the anonymous identity, and any other id without a type an untyped one', async () => {
  const own = `anon-${randomUUID()}`;
  const same = message('alias', { anonymousId: own, fromId: ` ${own}`, fromType: undefined });
  const other = message('alias', { anonymousId: own, fromId: `anon-${randomUUID()}`, fromType: undefined });
  const [kept] = await keep(same, other);
  expect(kept?.record.fromKey).toEqual(kept?.record.anonymousKey);
  const links = await linksOnLog(client.topicPrefix, [same.messageId, other.messageId]);
  expect(links.map(({ fromKind }) => fromKind).sort()).toEqual(['anonymous', 'untyped']);
});

/** JSON text of a track event with spellings that `JSON.stringify` never produces, such as escapes and long numbers. */
async function keepAs(fields: Record<string, unknown>, texts: Record<string, string>) {
  const sent = track(fields);
  let body = JSON.stringify({ messages: [sent] });
  for (const [from, text] of Object.entries(texts)) body = body.replace(from, text);
  expectAccepted(await client.post(body), 1);
  const [kept] = await messagesOnLog(client.topicPrefix, [sent.messageId]);
  return kept?.record;
}

it('text and free-form objects are stored with a lone surrogate as U+FFFD, in text and in free-form objects', async () => {
  const fields = { eventName: 'NAME', properties: { a: 'TEXT' }, traits: { a: 'PAIR' } };
  const kept = await keepAs(fields, { NAME: 'a\\ud83c', TEXT: '\\udf00b', PAIR: '\\ud83c\\udf00' });
  expect(kept).toMatchObject({ eventName: 'a\ufffd', properties: '{"a":"\\ufffdb"}' });
  expect(kept?.traits).toBe('{"a":"\\ud83c\\udf00"}');
});

it('text and free-form objects are stored with an integer beyond 64 bits and a number beyond a double as strings of the same characters', async () => {
  const fields = { properties: { a: 'BIG' }, traits: { a: 'HUGE' } };
  const kept = await keepAs(fields, { '"BIG"': '20000000000000000000', '"HUGE"': '[-1e400,18446744073709551615]' });
  expect(kept).toMatchObject({
    properties: '{"a":"20000000000000000000"}',
    traits: '{"a":["-1e400",18446744073709551615]}',
  });
});

it.each(['track', 'page', 'screen', 'identify', 'alias'])(
  'test: true of a %s goes unchanged to its record',
  async (type) => {
    const flags = [true, false, undefined];
    const sent = flags.map((test) => message(type, { test }));
    const kept = await keep(...sent);
    const byId = new Map(kept.map(({ record }) => [record.messageId.toString('hex'), record.test]));
    const found = sent.map(({ messageId }) => byId.get(String(messageId).replaceAll('-', '')));
    expect(found).toEqual([true, false, false]);
  },
);

it('a rejected message is not on the log, while the accepted messages of its batch are, each once', async () => {
  const [good, bad] = [track(), track({ surface: 'phone' })];
  expect((await client.send(good, bad)).body).toMatchObject({ accepted: 1, rejected: 1 });
  const kept = await messagesOnLog(client.topicPrefix, [good.messageId, bad.messageId]);
  expect(kept.map(({ record }) => record.messageId.toString('hex'))).toEqual([
    String(good.messageId).replaceAll('-', ''),
  ]);
});
