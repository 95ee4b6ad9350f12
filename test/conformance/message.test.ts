// Contract, table "Message"; ingest.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Client, expectAccepted, expectRejected, message, track } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway();
}, START_MAX_MS);
afterAll(() => client.close());

const TYPES = ['track', 'page', 'screen', 'identify', 'alias'];
/** Written out by hand, because these tests check the list in the code. */
const IDENTITY_TYPES = ['passport', 'steam', 'epic', 'google', 'apple', 'discord', 'email', 'custom'];

it.each(TYPES)('a message of %s is accepted with what its type requires and nothing more', async (type) => {
  expectAccepted(await client.send(message(type)));
});

it('a message of unknown type: UNSUPPORTED_TYPE on type', async () => {
  expectRejected(await client.send(track({ type: 'group' })), 'UNSUPPORTED_TYPE type');
});

it.each([undefined, null, '', '  '])('a message of missing type (%j): MISSING_REQUIRED_FIELD on type', async (type) => {
  expectRejected(await client.send(track({ type })), 'MISSING_REQUIRED_FIELD type');
});

it.each([7, true, {}, []])('a message of type of another JSON type (%j): INVALID_FORMAT on type', async (type) => {
  expectRejected(await client.send(track({ type })), 'INVALID_FORMAT type');
});

it.each([
  ['track', 'eventName'],
  ['identify', 'userId'],
  ['alias', 'fromId'],
  ['alias', 'toId'],
])('a message: %s with %s absent, null, empty or of white space alone: MISSING_REQUIRED_FIELD', async (type, field) => {
  for (const value of [undefined, null, '', ' \t\n'])
    expectRejected(await client.send(message(type, { [field]: value })), `MISSING_REQUIRED_FIELD ${field}`);
});

it('a message: alias without both ids names both', async () => {
  const answer = await client.send(message('alias', { fromId: undefined, toId: '' }));
  expectRejected(answer, 'MISSING_REQUIRED_FIELD fromId', 'MISSING_REQUIRED_FIELD toId');
});

it.each(TYPES)('a message: anonymousId absent is accepted on %s', async (type) => {
  expectAccepted(await client.send(message(type, { anonymousId: undefined })));
});

const fields = ['anonymousId', 'deviceId', 'sessionId', 'eventName', 'userId', 'fromId', 'toId'];

it.each(fields)('a message: %s of 256 code points is accepted, emoji count as one', async (field) => {
  expectAccepted(await client.send(track({ [field]: '😀'.repeat(256) }), track({ [field]: 'x'.repeat(256) })), 2);
});

it.each(fields)('a message: %s of 257 code points: INVALID_VALUE', async (field) => {
  expectRejected(await client.send(track({ [field]: 'x'.repeat(257) })), `INVALID_VALUE ${field}`);
  expectRejected(await client.send(track({ [field]: '😀'.repeat(257) })), `INVALID_VALUE ${field}`);
});

it.each(fields)('a message: %s of another JSON type: INVALID_FORMAT', async (field) => {
  for (const value of [1, true, {}, []])
    expectRejected(await client.send(track({ [field]: value })), `INVALID_FORMAT ${field}`);
});

it.each(['deviceId', 'sessionId', 'eventName'])('a message: a lone surrogate in %s is accepted', async (field) => {
  const body = JSON.stringify({ messages: [track({ [field]: 'LONE' })] }).replace('LONE', 'a\\ud800b');
  expectAccepted(await client.post(body), 1);
});

it.each(['anonymousId', 'userId', 'fromId', 'toId'])(
  'a message: a lone surrogate in %s: INVALID_FORMAT',
  async (field) => {
    const body = JSON.stringify({ messages: [track({ [field]: 'LONE' })] }).replace('LONE', 'a\\ud800b');
    expectRejected(await client.post(body), `INVALID_FORMAT ${field}`);
  },
);

it.each(['anonymousId', 'deviceId', 'sessionId', 'userId', 'fromId', 'toId'])(
  'a message: null or blank %s where it is optional is absent, and accepted',
  async (field) => {
    expectAccepted(await client.send(track({ [field]: null }), track({ [field]: '   ' })), 2);
  },
);

const values: Record<string, string[]> = {
  identityType: IDENTITY_TYPES,
  surface: ['web', 'pixel', 'unity', 'unreal'],
  consentLevel: ['not_set', 'none', 'anonymous', 'full'],
};
values.fromType = values.toType = values.identityType ?? [];

it.each(Object.keys(values))('a message: every value of %s is accepted, null is absent', async (field) => {
  const list = [...(values[field] ?? []), null];
  expectAccepted(await client.send(...list.map((value) => track({ [field]: value }))), list.length);
});

it.each(Object.keys(values))('a message: a value that is not in the enumeration of %s: INVALID_ENUM', async (field) => {
  for (const value of ['nothing', 'PASSPORT', 'Web', ''])
    expectRejected(await client.send(track({ [field]: value })), `INVALID_ENUM ${field}`);
});

it('a message: consentLevel not_set is in the enumeration and is accepted', async () => {
  expectAccepted(await client.send(track({ consentLevel: 'not_set' })));
});

it.each(Object.keys(values))('a message: %s of another JSON type: INVALID_FORMAT', async (field) => {
  expectRejected(await client.send(track({ [field]: 1 })), `INVALID_FORMAT ${field}`);
});

it.each(['properties', 'traits', 'context'])('a message: %s that is not an object: INVALID_FORMAT', async (field) => {
  for (const value of ['text', 1, true, [], [{}]])
    expectRejected(await client.send(track({ [field]: value })), `INVALID_FORMAT ${field}`);
});

it.each(['properties', 'traits', 'context', 'test'])('a message: %s null is absent', async (field) => {
  expectAccepted(await client.send(track({ [field]: null })));
});

it('a message: test must be a boolean', async () => {
  expectAccepted(await client.send(track({ test: true }), track({ test: false })), 2);
  for (const value of ['true', 1]) expectRejected(await client.send(track({ test: value })), 'INVALID_FORMAT test');
});

it('a message: unknown extra fields are ignored', async () => {
  expectAccepted(await client.send(track({ unknown: { deep: [1, 2, 3] }, type2: 'x' })));
});

it.each([null, 1, 'text', [], true])(
  'a message: a message that is not an object (%j): INVALID_FORMAT on message',
  async (value) => {
    const answer = await client.send(value);
    expectRejected(answer, 'INVALID_FORMAT message');
    expect(answer.body.rejections[0].messageId).toBe('');
  },
);

it('a message: a message over 32 KiB: INVALID_VALUE on message; one of exactly 32 KiB is accepted', async () => {
  const sized = (bytes: number) => {
    const empty = track({ properties: { text: '' } });
    return { ...empty, properties: { text: 'x'.repeat(bytes - JSON.stringify(empty).length) } };
  };
  expectAccepted(await client.send(sized(32 * 1024)));
  expectRejected(await client.send(sized(32 * 1024 + 1)), 'INVALID_VALUE message');
});

it('a message: of duplicate keys in one object the last wins', async () => {
  const good = JSON.stringify(track());
  expectAccepted(await client.post(`{"messages":[${good.replace('{', '{"type":"nothing",')}]}`));
  const answer = await client.post(`{"messages":[${good.replace(/}$/, ',"type":"nothing"}')}]}`);
  expectRejected(answer, 'UNSUPPORTED_TYPE type');
});

it('an alias with fromId equal to toId, compared after trimming, types ignored: INVALID_VALUE on toId', async () => {
  const same = { fromId: 'player-1', toId: ' player-1 ', fromType: 'steam', toType: 'epic' };
  expectRejected(await client.send(message('alias', same)), 'INVALID_VALUE toId');
});

it('an alias with ids that differ in case are different', async () => {
  expectAccepted(await client.send(message('alias', { fromId: 'player-1', toId: 'Player-1' })));
});

it.each(IDENTITY_TYPES)(
  'an alias with the shape of an id of type %s is not checked: any non-blank one is accepted',
  async (type) => {
    const ids = { fromType: type, fromId: 'x', toType: type, toId: '!@#'.repeat(85) };
    expectAccepted(
      await client.send(message('alias', ids), message('identify', { identityType: type, userId: '\u00a0.' })),
      2,
    );
  },
);
