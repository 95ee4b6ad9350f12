import { expect, it } from 'vitest';
import { messagesResponseSchema } from './batch.ts';
import { BATCH_MESSAGES_MAX } from './limits.ts';
import { validateBatch } from './test/index.ts';

const NOW_MS = Date.UTC(2026, 10, 21, 12);
const WINDOW = { fromMs: NOW_MS - 1000, toMs: NOW_MS + 1000 };
const ID = 'abcdefab-cdef-4bcd-8fab-cdefabcdefab';
const toPage = (messageId: unknown) => ({ type: 'page', messageId, eventTimestamp: '2026-11-21T12:00:00Z' });
const page = (index: number) => toPage(`0192f1c0-7b3a-7c4d-8e5f-${String(index).padStart(12, '0')}`);

/** Validates messages as if JSON.stringify had written the body. */
function validate(messages: unknown[], bytes: Record<number, number> = {}) {
  const sources = messages.map((value, index) => {
    const id = typeof value === 'object' && value !== null && 'messageId' in value ? value.messageId : undefined;
    return { bytes: bytes[index] ?? 100, messageIdText: id === undefined ? '' : JSON.stringify(id) };
  });
  const result = validateBatch({ messages }, { window: WINDOW, sources });
  if (result.kind === 'refused') throw new Error(result.message);
  const { accepted, rejected } = result.response;
  expect(accepted + rejected).toBe(messages.length);
  expect(result.submitted).toBe(messages.length);
  expect(result.accepted).toHaveLength(accepted);
  expect(messagesResponseSchema.parse(result.response)).toEqual(result.response);
  return result;
}

/** Formats each rejection as `id: field code, field code`. */
function toEntries(messages: unknown[], bytes?: Record<number, number>): string[] {
  return validate(messages, bytes).response.rejections.map(
    ({ messageId, errors }) => `${messageId}: ${errors.map(({ field, code }) => `${field} ${code}`).join(', ')}`,
  );
}

it.each([
  ['without `messages`', {}, 'messages is not an array'],
  ['with `messages` set to null', { messages: null }, 'messages is not an array'],
  ['with an object as `messages`', { messages: { 0: page(0) } }, 'messages is not an array'],
  ['with an empty array', { messages: [] }, 'messages is empty'],
  ['with more than 100 messages', { messages: Array.from({ length: 101 }, (_, i) => page(i)) }, 'more than 100'],
  ['that is an array', [page(0)], 'JSON object'],
  ['that is null', null, 'JSON object'],
  ['that is a string', 'x', 'JSON object'],
])('a body %s is refused as a whole, and the details contain the limits', (_, document, text) => {
  const result = validateBatch(document, { window: WINDOW, sources: [] });
  expect(result).toMatchObject({
    kind: 'refused',
    message: expect.stringContaining(text),
    details: { field: 'messages', messagesMin: 1, messagesMax: BATCH_MESSAGES_MAX },
  });
});

it('a batch of 100 valid messages is accepted without rejections', () => {
  const { accepted, response } = validate(Array.from({ length: 100 }, (_, i) => page(i)));
  expect(response).toEqual({ success: true, accepted: 100, rejected: 0, rejections: [] });
  expect(accepted.map(({ index }) => index)).toEqual(Array.from({ length: 100 }, (_, i) => i));
});

it('a rejection contains a messageId that is not a string as JSON', () => {
  expect(toEntries([toPage(12), toPage({ a: [1] }), toPage(false)])).toEqual([
    '12: messageId INVALID_FORMAT',
    '{"a":[1]}: messageId INVALID_FORMAT',
    'false: messageId INVALID_FORMAT',
  ]);
});

it('messages without an id share one entry with all their errors and are not duplicates', () => {
  expect(toEntries([toPage(undefined), { ...toPage(null), test: 1 }, 'text', toPage('')])).toEqual([
    ': messageId MISSING_REQUIRED_FIELD, test INVALID_FORMAT, message INVALID_FORMAT',
  ]);
});

it('messages with equal ids that are not strings share one entry and are not duplicates', () => {
  expect(toEntries([toPage(5), { ...toPage(5), type: 'x' }, toPage('5')])).toEqual([
    '5: messageId INVALID_FORMAT, type UNSUPPORTED_TYPE',
  ]);
});

it('messages with the same blank id share one entry', () => {
  expect(toEntries([toPage('  '), toPage('  ')])).toEqual(['  : messageId MISSING_REQUIRED_FIELD']);
});

it('validateBatch rejects and counts all messages with a duplicate id, and lists all their errors in one entry', () => {
  const copies = [toPage(ID), page(1), { ...toPage(ID), type: 'x' }, { ...toPage(ID), surface: 'tv', type: 'y' }];
  const { response } = validate(copies);
  expect(response).toMatchObject({ success: true, accepted: 1, rejected: 3 });
  expect(toEntries(copies)).toEqual([
    `${ID}: messageId DUPLICATE_MESSAGE_ID, type UNSUPPORTED_TYPE, surface INVALID_ENUM`,
  ]);
});

it('validateBatch lists the errors of every rejected message, even if several messages have the same id', () => {
  const { rejected } = validate([toPage(ID), page(1), { ...toPage(ID), type: 'x' }, null]);
  expect(rejected.map(({ index, errors }) => [index, errors.map(({ code }) => code)])).toEqual([
    [0, ['DUPLICATE_MESSAGE_ID']],
    [2, ['DUPLICATE_MESSAGE_ID', 'UNSUPPORTED_TYPE']],
    [3, ['INVALID_FORMAT']],
  ]);
});

it('malformed ids that differ only in case are duplicates', () => {
  expect(toEntries([toPage('x'), toPage('X')])).toEqual([
    'x: messageId DUPLICATE_MESSAGE_ID, messageId INVALID_FORMAT',
  ]);
});

it('rejections are listed in the order of the messages', () => {
  expect(toEntries([toPage('b'), toPage('a')])).toEqual(['b: messageId INVALID_FORMAT', 'a: messageId INVALID_FORMAT']);
});

it('the result for a message does not depend on the other messages in its batch', () => {
  const alone = validate([page(7)]).accepted[0]?.message;
  const inBatch = validate([toPage('x'), null, page(7), toPage(undefined)]).accepted[0]?.message;
  expect(inBatch).toEqual(alone);
});
