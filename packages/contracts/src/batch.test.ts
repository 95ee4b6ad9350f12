import { expect, it } from 'vitest';
import { messagesResponseSchema } from './batch.ts';
import { BATCH_MESSAGES_MAX } from './limits.ts';
import { validateBatch } from './test/index.ts';

const NOW_MS = Date.UTC(2026, 10, 21, 12);
const WINDOW = { fromMs: NOW_MS - 1000, toMs: NOW_MS + 1000 };
const ID = 'abcdefab-cdef-4bcd-8fab-cdefabcdefab';
const pageOf = (messageId: unknown) => ({ type: 'page', messageId, eventTimestamp: '2026-11-21T12:00:00Z' });
const page = (index: number) => pageOf(`0192f1c0-7b3a-7c4d-8e5f-${String(index).padStart(12, '0')}`);

/** Judges messages whose bodies are written by JSON.stringify. */
function judge(messages: unknown[], bytes: Record<number, number> = {}) {
  const sources = messages.map((value, index) => {
    const id = typeof value === 'object' && value !== null && 'messageId' in value ? value.messageId : undefined;
    return { bytes: bytes[index] ?? 100, messageIdText: id === undefined ? '' : JSON.stringify(id) };
  });
  const verdict = validateBatch({ messages }, { window: WINDOW, sources });
  if (verdict.kind === 'fault') throw new Error(verdict.message);
  const { accepted, rejected } = verdict.response;
  expect(accepted + rejected).toBe(messages.length);
  expect(verdict.submitted).toBe(messages.length);
  expect(verdict.accepted).toHaveLength(accepted);
  expect(messagesResponseSchema.parse(verdict.response)).toEqual(verdict.response);
  return verdict;
}

/** Each entry as `id: field code, field code`. */
function entriesOf(messages: unknown[], bytes?: Record<number, number>): string[] {
  return judge(messages, bytes).response.rejections.map(
    ({ messageId, errors }) => `${messageId}: ${errors.map(({ field, code }) => `${field} ${code}`).join(', ')}`,
  );
}

it.each([
  ['without messages', {}, 'messages is not an array'],
  ['with null for messages', { messages: null }, 'messages is not an array'],
  ['with an object for messages', { messages: { 0: page(0) } }, 'messages is not an array'],
  ['with no message', { messages: [] }, 'messages is empty'],
  ['with more than 100 messages', { messages: Array.from({ length: 101 }, (_, i) => page(i)) }, 'more than 100'],
  ['that is an array', [page(0)], 'JSON object'],
  ['that is null', null, 'JSON object'],
  ['that is text', 'x', 'JSON object'],
])('a document that is no batch is refused %s, and the details name the limit', (_, document, texts) => {
  const verdict = validateBatch(document, { window: WINDOW, sources: [] });
  expect(verdict).toMatchObject({
    kind: 'fault',
    message: expect.stringContaining(texts),
    details: { field: 'messages', messagesMin: 1, messagesMax: BATCH_MESSAGES_MAX },
  });
});

it('a batch of 100 acceptable messages is accepted whole, with an empty list of rejections', () => {
  const { accepted, response } = judge(Array.from({ length: 100 }, (_, i) => page(i)));
  expect(response).toEqual({ success: true, accepted: 100, rejected: 0, rejections: [] });
  expect(accepted.map(({ index }) => index)).toEqual(Array.from({ length: 100 }, (_, i) => i));
});

it('a batch echoes a messageId that is no string as its JSON text', () => {
  expect(entriesOf([pageOf(12), pageOf({ a: [1] }), pageOf(false)])).toEqual([
    '12: messageId INVALID_FORMAT',
    '{"a":[1]}: messageId INVALID_FORMAT',
    'false: messageId INVALID_FORMAT',
  ]);
});

it('a batch gathers absent and null ids in one entry with the errors merged, and calls none a duplicate', () => {
  expect(entriesOf([pageOf(undefined), { ...pageOf(null), test: 1 }, 'text', pageOf('')])).toEqual([
    ': messageId MISSING_REQUIRED_FIELD, test INVALID_FORMAT, message INVALID_FORMAT',
  ]);
});

it('a batch has one entry for equal ids that are no strings, and calls none a duplicate', () => {
  expect(entriesOf([pageOf(5), { ...pageOf(5), type: 'x' }, pageOf('5')])).toEqual([
    '5: messageId INVALID_FORMAT, type UNSUPPORTED_TYPE',
  ]);
});

it('a batch has one entry for blank ids of one spelling', () => {
  expect(entriesOf([pageOf('  '), pageOf('  ')])).toEqual(['  : messageId MISSING_REQUIRED_FIELD']);
});

it('a batch rejects all copies of a messageId, counts each and lists one entry with the errors of all', () => {
  const copies = [pageOf(ID), page(1), { ...pageOf(ID), type: 'x' }, { ...pageOf(ID), surface: 'tv', type: 'y' }];
  const { response } = judge(copies);
  expect(response).toMatchObject({ success: true, accepted: 1, rejected: 3 });
  expect(entriesOf(copies)).toEqual([
    `${ID}: messageId DUPLICATE_MESSAGE_ID, type UNSUPPORTED_TYPE, surface INVALID_ENUM`,
  ]);
});

it('a batch lists the errors of each rejected message by its index, twins separately', () => {
  const { rejected } = judge([pageOf(ID), page(1), { ...pageOf(ID), type: 'x' }, null]);
  expect(rejected.map(({ index, errors }) => [index, errors.map(({ code }) => code)])).toEqual([
    [0, ['DUPLICATE_MESSAGE_ID']],
    [2, ['DUPLICATE_MESSAGE_ID', 'UNSUPPORTED_TYPE']],
    [3, ['INVALID_FORMAT']],
  ]);
});

it('a batch calls malformed twins duplicates too', () => {
  expect(entriesOf([pageOf('x'), pageOf('X')])).toEqual([
    'x: messageId DUPLICATE_MESSAGE_ID, messageId INVALID_FORMAT',
  ]);
});

it('a batch lists the entries in the order of the messages', () => {
  expect(entriesOf([pageOf('b'), pageOf('a')])).toEqual(['b: messageId INVALID_FORMAT', 'a: messageId INVALID_FORMAT']);
});

it('a batch lets no message change the verdict on another', () => {
  const alone = judge([page(7)]).accepted[0]?.message;
  const among = judge([pageOf('x'), null, page(7), pageOf(undefined)]).accepted[0]?.message;
  expect(among).toEqual(alone);
});
