// Contract, tables "Message" and "MessageRejection", rows messageId; ingest, row "messageId".
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Client, expectAccepted, expectRejected, track } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

/** Contract, ingest, "Body limits". */
const BATCH_BYTES = 1 << 20;

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway();
}, START_MAX_MS);
afterAll(() => client.close());

it.each([
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  randomUUID().toUpperCase(),
  '018f3f5e-7b1a-7c3d-9e2f-0123456789ab',
  '6ba7b810-9dad-11d1-80b4-00c04fd430c8',
])('a messageId: any textual UUID of any version and case is accepted: %s', async (messageId) => {
  expectAccepted(await client.send(track({ messageId })));
});

it.each(['not-a-uuid', `{${randomUUID()}}`, randomUUID().replaceAll('-', ''), ` ${randomUUID()}`, `${randomUUID()}0`])(
  'a messageId: a malformed one is INVALID_FORMAT and echoed verbatim: %j',
  async (messageId) => {
    const answer = await client.send(track({ messageId }));
    expectRejected(answer, 'INVALID_FORMAT messageId');
    expect(answer.body.rejections[0].messageId).toBe(messageId);
  },
);

it.each([
  [undefined, ''],
  [null, ''],
  ['', ''],
  ['  ', '  '],
])('a messageId: missing, null or blank (%j): MISSING_REQUIRED_FIELD, echoed as %j', async (messageId, echo) => {
  const answer = await client.send(track({ messageId }));
  expectRejected(answer, 'MISSING_REQUIRED_FIELD messageId');
  expect(answer.body.rejections[0].messageId).toBe(echo);
});

it.each([
  [42, '42'],
  [false, 'false'],
  [['a'], '["a"]'],
  [{ a: 1 }, '{"a":1}'],
])('a messageId: of another type (%j): INVALID_FORMAT, echoed as its JSON text %j', async (messageId, echo) => {
  const answer = await client.send(track({ messageId }));
  expectRejected(answer, 'INVALID_FORMAT messageId');
  expect(answer.body.rejections[0].messageId).toBe(echo);
});

it.each([1, 2, 3, 4, 5, 6, 7, 8, 15])('a messageId: version %i is accepted, whatever its variant', async (version) => {
  const ids = ['0', '8', 'c', 'F'].map((variant) => {
    const digits = randomUUID().split('-');
    return `${digits[0]}-${digits[1]}-${version.toString(16)}${digits[2]?.slice(1)}-${variant}${digits[3]?.slice(1)}-${digits[4]}`;
  });
  expectAccepted(await client.send(...ids.map((messageId) => track({ messageId }))), ids.length);
});

it('the echo of a messageId is verbatim in every character', async () => {
  const messageId = 'é😀\u0000\n"\\</script>\u2028\u00a0';
  expect((await client.send(track({ messageId }))).body.rejections[0].messageId).toBe(messageId);
});

it('the echo of a messageId is verbatim for the longest id that a batch can hold, with the answer bounded by the batch limit', async () => {
  const room = BATCH_BYTES - JSON.stringify({ messages: [track({ messageId: '' })] }).length;
  const messageId = 'x'.repeat(room);
  const answer = await client.send(track({ messageId }));
  expectRejected(answer, 'INVALID_FORMAT messageId', 'INVALID_VALUE message');
  expect(answer.body.rejections[0].messageId).toBe(messageId);
  expect(Number(answer.headers.get('content-length'))).toBeLessThan(BATCH_BYTES + 1024);
});

it('the echo of a messageId as JSON text is at most twice as long as the batch, since each byte takes one escape', async () => {
  const room = BATCH_BYTES - JSON.stringify({ messages: [track({ messageId: [''] })] }).length;
  const messageId = [...Array.from({ length: Math.floor(room / 3) }, () => ''), ''];
  const answer = await client.send(track({ messageId }));
  expectRejected(answer, 'INVALID_FORMAT messageId', 'INVALID_VALUE message');
  expect(answer.body.rejections[0].messageId).toBe(JSON.stringify(messageId));
  expect(Number(answer.headers.get('content-length'))).toBeLessThan(2 * BATCH_BYTES + 1024);
});
