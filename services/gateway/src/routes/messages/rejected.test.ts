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

/** Returns the rejections of a batch with these messages. */
function readRejections(messages: unknown[]) {
  const body = Buffer.from(JSON.stringify({ messages }));
  const { entries, rejections } = readBatch(body, {
    window: { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER },
    envelope: { ...ENVELOPE, schemaId: 1 },
    keyOf: () => Buffer.alloc(16),
  });
  return { entries, ...rejections };
}

it('each error of a rejected message is recorded after the response, with the surface and library of the client', async () => {
  const { post, producer, rejectionProducer } = await openGateway();
  producer.mode = 'hold';
  const context = { library: 'playline-unity', libraryVersion: '2.1' };
  const invalid = message({ surface: 'unity', context, eventName: '' });
  const response = post({ messages: [message(), invalid, { ...message({ surface: 'tv' }), type: 'x' }, 'text'] });
  const send = await until('the batch is sent', () => producer.sent[0]);
  expect(rejectionProducer.sent).toEqual([]);
  send.done(null);
  const traceId = (await response).headers.get('x-trace-id');
  await until('the rejections are published', () => rejectionProducer.sent.length === 1);
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

it('no rejections are recorded for a batch without errors, or for a batch with a 500, which clients resend', async () => {
  const { post, producer, rejectionProducer } = await openGateway();
  await post({ messages: [message()] });
  producer.mode = 'fail';
  expect((await post({ messages: [message(), {}] })).status).toBe(500);
  expect(rejectionProducer.sent).toEqual([]);
  producer.mode = 'acknowledge';
  expect((await post({ messages: [message(), {}] })).status).toBe(200);
  await until('the rejection is published', () => rejectionProducer.sent.length === 1);
});

it('rejections that are never acknowledged do not change responses and use little memory', async () => {
  const { post, rejectionProducer, metrics } = await openGateway();
  rejectionProducer.mode = 'hold';
  const invalid = { messages: Array.from({ length: 100 }, () => ({ type: 'x', note: 'x'.repeat(300) })) };
  const mixed = { messages: [message(), ...invalid.messages.slice(1)] };
  for (let round = 0; round < 15; round++) {
    expect((await post(invalid)).status).toBe(400);
    expect((await post({ ...mixed, messages: [message(), ...mixed.messages.slice(1)] })).status).toBe(200);
  }
  const text = await metrics();
  const waitingBytes = Number(/playline_gateway_rejections_waiting_bytes\S* (\d+)/.exec(text)?.[1]);
  expect(waitingBytes).toBeGreaterThan(0);
  expect(waitingBytes).toBeLessThanOrEqual(1024 * 1024);
  expect(text).toMatch(/playline_gateway_rejections_dropped_total\{reason="budget",service="gateway"\} [1-9]/);
  expect(text).toMatch(/playline_gateway_rejections_dropped_total\{reason="batch",service="gateway"\} [1-9]/);
});

it('an error of the rejection producer does not change the response', async () => {
  const { post, rejectionProducer, metrics } = await openGateway();
  rejectionProducer.send = () => {
    throw new Error('closed');
  };
  expect((await post({ messages: [message(), {}] })).status).toBe(200);
  expect(await metrics()).toMatch(
    /playline_gateway_rejections_dropped_total\{reason="fault",service="gateway"\} [1-9]/,
  );
});

it('messages with duplicate ids are recorded separately, each with its own surface', () => {
  const { messageId } = message();
  const duplicates = SURFACES.map((surface) => message({ messageId, surface }));
  expect(readRejections(duplicates).records.map(({ code, surface }) => [code, surface])).toEqual(
    SURFACES.map((surface) => ['DUPLICATE_MESSAGE_ID', surface]),
  );
});

it('at most 100 errors are recorded per batch, and fewer for a small body', () => {
  const createInvalid = (note: string) => Array.from({ length: 100 }, () => ({ type: 1, messageId: 1, note }));
  const { records, omitted } = readRejections(createInvalid('x'.repeat(300)));
  expect(records).toHaveLength(100);
  expect(omitted).toBe(200);
  const small = readRejections(createInvalid(''));
  expect(small.records.length).toBeLessThan(30);
  expect(small.records.length + small.omitted).toBe(300);
});

it('rejection records contain only library names from the settings, and versions that consist of digits and dots', () => {
  const readFirst = (library: unknown, libraryVersion: unknown) =>
    readRejections([{ context: { library, libraryVersion } }]).records[0];
  expect(readFirst('playline-unity', '12.0.345.6')).toMatchObject({
    library: 'playline-unity',
    libraryVersion: '12.0.345.6',
  });
  for (const version of ['1.0-anna', '1.0.0.0.0', '491711234567', 'x', '1..2', ' 1'])
    expect(readFirst('Playline-Unity', version)).toMatchObject({ library: 'other', libraryVersion: '' });
  expect(readFirst(['web'], { toString: 'x' })).toMatchObject({ library: '', libraryVersion: '' });
  expect(readFirst('broken \ud83c', null)).toMatchObject({ library: 'other', libraryVersion: '' });
});

it('rejection records do not contain any message content', () => {
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
      const { records, omitted, entries } = readRejections(messages);
      // An entry lists each error once, even if several messages with the same id have the error.
      const listed = entries.reduce((sum, { errors }) => sum + errors.length, 0);
      expect(records.length + omitted).toBeGreaterThanOrEqual(listed);
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

it('rejection records name only fields of the contract', () => {
  const { records } = readRejections([
    { context: { mine: 1, library: '' }, properties: [{ mine: 1 }], mine: 1, constructor: 1, test: 1 },
    ['mine'],
  ]);
  expect(records.map(({ field }) => field)).toEqual([
    ...['type', 'messageId', 'eventTimestamp', 'context.library', 'context.libraryVersion'],
    ...['properties', 'test', 'message'],
  ]);
});
