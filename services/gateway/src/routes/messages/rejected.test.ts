import { FRAME_BYTES, type RejectionRecord, rejectionCodec, SURFACES } from '@playline/contracts';
import { until } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { message, openGateway, type TestProducer } from '../../test/open-gateway.ts';
import { createBatchReader } from './handler.ts';

const ENVELOPE = { environmentId: 'demo-test', receivedAt: 1_790_000_000_000, traceId: 'a'.repeat(32) };

const rejectionsOf = ({ sent }: TestProducer): RejectionRecord[] =>
  sent.flatMap(({ records }) => records).map(({ value }) => rejectionCodec.decode(value.subarray(FRAME_BYTES)));

const readBatch = createBatchReader(new Set(['playline-unity']));

/** The rejection records of these messages. */
function judge(messages: unknown[]) {
  const body = Buffer.from(JSON.stringify({ messages }));
  const { entries, rejections } = readBatch(body, {
    window: { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER },
    envelope: { ...ENVELOPE, schemaId: 1 },
    keyOf: () => Buffer.alloc(16),
  });
  return { entries, ...rejections };
}

it('the record of rejected messages is each error with the client that sent it, after the answer', async () => {
  const { post, producer, rejectionProducer } = await openGateway();
  producer.mode = 'hold';
  const context = { library: 'playline-unity', libraryVersion: '2.1' };
  const bad = message({ surface: 'unity', context, eventName: '' });
  const answer = post({ messages: [message(), bad, { ...message({ surface: 'tv' }), type: 'x' }, 'text'] });
  const send = await until('the batch is sent', () => producer.sent[0]);
  expect(rejectionProducer.sent).toEqual([]);
  send.done(null);
  const traceId = (await answer).headers.get('x-trace-id');
  await until('the rejections', () => rejectionProducer.sent.length === 1);
  const reported = rejectionsOf(rejectionProducer);
  const unknown = { surface: '', library: '', libraryVersion: '' };
  expect(reported).toMatchObject([
    { code: 'MISSING_REQUIRED_FIELD', field: 'eventName', surface: 'unity', ...context },
    { code: 'UNSUPPORTED_TYPE', field: 'type', ...unknown },
    { code: 'INVALID_ENUM', field: 'surface', ...unknown },
    { code: 'INVALID_FORMAT', field: 'message', ...unknown },
  ]);
  for (const record of reported) expect(record).toMatchObject({ environmentId: 'demo-test', traceId });
  expect(Math.abs(reported[0]!.receivedAt - Date.now())).toBeLessThan(60_000);
});

it('the record of rejected messages is nothing for a batch without rejections, and nothing for a batch answered with 500, which is sent again', async () => {
  const { post, producer, rejectionProducer } = await openGateway();
  await post({ messages: [message()] });
  producer.mode = 'fail';
  expect((await post({ messages: [message(), {}] })).status).toBe(500);
  expect(rejectionProducer.sent).toEqual([]);
  producer.mode = 'acknowledge';
  expect((await post({ messages: [message(), {}] })).status).toBe(200);
  await until('the rejection', () => rejectionProducer.sent.length === 1);
});

it('the record of rejected messages changes no answer and takes little memory when its producer never acknowledges', async () => {
  const { post, rejectionProducer, metrics } = await openGateway();
  rejectionProducer.mode = 'hold';
  const bad = { messages: Array.from({ length: 100 }, () => ({ type: 'x', note: 'x'.repeat(300) })) };
  const mixed = { messages: [message(), ...bad.messages.slice(1)] };
  for (let round = 0; round < 15; round++) {
    expect((await post(bad)).status).toBe(400);
    expect((await post({ ...mixed, messages: [message(), ...mixed.messages.slice(1)] })).status).toBe(200);
  }
  const text = await metrics();
  const held = Number(/playline_gateway_rejections_waiting_bytes\S* (\d+)/.exec(text)?.[1]);
  expect(held).toBeGreaterThan(0);
  expect(held).toBeLessThanOrEqual(1024 * 1024);
  expect(text).toMatch(/playline_gateway_rejections_dropped_total\{reason="budget",service="gateway"\} [1-9]/);
  expect(text).toMatch(/playline_gateway_rejections_dropped_total\{reason="batch",service="gateway"\} [1-9]/);
});

it('the record of rejected messages changes no answer when its producer throws', async () => {
  const { post, rejectionProducer, metrics } = await openGateway();
  rejectionProducer.send = () => {
    throw new Error('closed');
  };
  expect((await post({ messages: [message(), {}] })).status).toBe(200);
  expect(await metrics()).toMatch(
    /playline_gateway_rejections_dropped_total\{reason="fault",service="gateway"\} [1-9]/,
  );
});

it('the record of rejected messages is the errors of messages with one id, each with its own client', () => {
  const { messageId } = message();
  const twins = SURFACES.map((surface) => message({ messageId, surface }));
  expect(judge(twins).records.map(({ code, surface }) => [code, surface])).toEqual(
    SURFACES.map((surface) => ['DUPLICATE_MESSAGE_ID', surface]),
  );
});

it('the record of rejected messages is at most a hundred errors a batch, and far fewer of a body that is small', () => {
  const bad = (note: string) => Array.from({ length: 100 }, () => ({ type: 1, messageId: 1, note }));
  const { records, omitted } = judge(bad('x'.repeat(300)));
  expect(records).toHaveLength(100);
  expect(omitted).toBe(200);
  const small = judge(bad(''));
  expect(small.records.length).toBeLessThan(30);
  expect(small.records.length + small.omitted).toBe(300);
});

it('the record of rejected messages contains only library names from the settings and versions made of digits and dots', () => {
  const rejectionBy = (library: unknown, libraryVersion: unknown) =>
    judge([{ context: { library, libraryVersion } }]).records[0];
  expect(rejectionBy('playline-unity', '12.0.345.6')).toMatchObject({
    library: 'playline-unity',
    libraryVersion: '12.0.345.6',
  });
  for (const version of ['1.0-anna', '1.0.0.0.0', '491711234567', 'x', '1..2', ' 1'])
    expect(rejectionBy('Playline-Unity', version)).toMatchObject({ library: 'other', libraryVersion: '' });
  expect(rejectionBy(['web'], { toString: 'x' })).toMatchObject({ library: '', libraryVersion: '' });
  expect(rejectionBy('broken \ud83c', null)).toMatchObject({ library: 'other', libraryVersion: '' });
});

it('the record of rejected messages contains no content, whatever was sent', () => {
  const secret = 'secret';
  const value = fc.oneof(
    fc.constantFrom<unknown>(secret, [secret], { [secret]: secret }, null, Infinity, '\ud800', secret.repeat(60)),
    fc.jsonValue(),
  );
  const names = [...Object.keys(message()), ...['surface', 'userId', 'identityType', 'traits', 'test'], secret];
  const context = fc.oneof(value, fc.record({ pageUrl: value, userAgent: value, screenDensity: value }));
  const sent = fc.record(Object.fromEntries([...names.map((name) => [name, value]), ['context', context]]), {
    requiredKeys: [],
  });
  fc.assert(
    fc.property(fc.array(fc.oneof(sent, value), { minLength: 1, maxLength: 20 }), (messages) => {
      const { records, omitted, entries } = judge(messages);
      // Entries of one id have the errors of all its messages once.
      const answered = entries.reduce((sum, { errors }) => sum + errors.length, 0);
      expect(records.length + omitted).toBeGreaterThanOrEqual(answered);
      expect(records.length).toBeLessThanOrEqual(100);
      expect(JSON.stringify(records)).not.toContain(secret);
      for (const record of records) {
        expect(['', ...SURFACES]).toContain(record.surface);
        expect(record).toMatchObject({ ...ENVELOPE, library: '', libraryVersion: '' });
        expect(rejectionCodec.decode(rejectionCodec.encode(record))).toEqual(record);
      }
    }),
    { numRuns: runsOf({ quick: 30, all: 100 }) },
  );
});

it('the record of rejected messages names only fields of the contract', () => {
  const { records } = judge([
    { context: { mine: 1, library: '' }, properties: [{ mine: 1 }], mine: 1, constructor: 1, test: 1 },
    ['mine'],
  ]);
  expect(records.map(({ field }) => field)).toEqual([
    ...['type', 'messageId', 'eventTimestamp', 'context.library', 'context.libraryVersion'],
    ...['properties', 'test', 'message'],
  ]);
});
