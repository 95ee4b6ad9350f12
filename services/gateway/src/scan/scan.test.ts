import { EVENT_AGE_MAX_MS, EVENT_AHEAD_MAX_MS, MESSAGE_BYTES_MAX, parseTimestamp } from '@playline/contracts';
import { validMessages } from '@playline/testkit/messages';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BODY_ERROR, createScanner } from './batch.ts';
import { FIELD, readText, VALID } from './ranges.ts';
import { EDGE_LOCATIONS, EDGE_VALUES, withEdgeValue } from './test/edge-values.ts';
import { compare, runFuzz } from './test/fuzz.ts';
import { SAMPLE_KINDS, sampleBody, sampleMessage } from './test/sample-messages.ts';
import { parseTimestampBytes } from './text.ts';

const NOW_MS = Date.UTC(2026, 10, 21, 12);
const WINDOW = { fromMs: NOW_MS - EVENT_AGE_MAX_MS, toMs: NOW_MS + EVENT_AHEAD_MAX_MS };
const scanner = createScanner();
const scan = (text: string) => scanner.scan(Buffer.from(text), WINDOW);
/** Scans a batch. @returns the number of messages with the verdict `VALID` */
function countValid(text: string): number {
  const count = scan(text);
  expect(count).toBeGreaterThan(0);
  return scanner.state.verdicts.subarray(0, count).filter((verdict) => verdict === VALID).length;
}
const { notJson, notAnObject, noMessages, tooFew, tooMany } = BODY_ERROR;
const PAGE = {
  type: 'page',
  messageId: '0192f1c0-7b3a-7c4d-8e5f-000000000001',
  eventTimestamp: '2026-11-21T11:59:00Z',
};
const bodyWith = (fields: object) => JSON.stringify({ messages: [{ ...PAGE, ...fields }] });
/** Creates a body with a page message that has additional JSON before its fields. */
const bodyBefore = (json: string) => bodyWith({}).replace('{"type"', `{${json},"type"`);
const CONTEXT = { library: 'web', libraryVersion: '1' };
const deep = (levels: number) => JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`);

it.each([1, 2, 6, 20, 100])('the scan accepts all messages in a typical batch of %i messages', (count) => {
  expect(countValid(sampleBody(count, NOW_MS))).toBe(count);
});

it('the scan reports only the invalid message in a batch of 100 as uncertain', () => {
  const messages = Array.from({ length: 100 }, (_, index) => sampleMessage(index, NOW_MS));
  messages[41]!.type = 'group';
  expect(countValid(JSON.stringify({ messages }))).toBe(99);
  expect(scanner.state.verdicts[41]).not.toBe(VALID);
});

it.each([
  ['white space wherever JSON allows it', JSON.stringify(JSON.parse(bodyWith({ context: CONTEXT })), null, '\t\r\n ')],
  ['a byte order mark before the body', `\uFEFF${bodyWith({})}`],
  ['white space around the body', ` \n${bodyWith({})}\r\n\t `],
  ['additional fields of the body', bodyWith({}).replace('{"messages"', '{"sentAt":[1,{"a":null}],"messages"')],
  ['unknown fields with any values', bodyBefore('"a":-1.5e-3,"b":[[],{}],"c":{"type":1},"d":"\\u0000"')],
  ['null in optional fields', bodyWith({ userId: null, context: null, test: null, properties: null })],
  ['an eventName with escapes', bodyWith({ eventName: 'a "quoted"\n name' })],
  ['a page title with escapes', bodyWith({ context: { ...CONTEXT, pageTitle: '"\\\n' } })],
  ['non-ASCII strings', bodyWith({ eventName: 'レベル完了', userId: 'Zoë', context: { ...CONTEXT, library: 'か' } })],
  ['empty optional ids', bodyWith({ userId: '', anonymousId: '' })],
  ['duplicate keys in an unknown field', bodyBefore('"unknown":{"a":1,"a":2}')],
  ['equal keys in different objects', bodyWith({ properties: { a: { a: [{ a: 1 }, { a: 1 }] }, b: { a: 1 } } })],
  ['properties with the maximum nesting', bodyWith({ properties: deep(64) })],
  ['very deeply nested unknown fields', bodyBefore(`"a":${'['.repeat(10_000)}${']'.repeat(10_000)}`)],
])('the scan accepts %s', (_, text) => {
  expect(countValid(text)).toBe(1);
});

it.each([
  ['duplicate `messages` keys', bodyWith({}).replace('{"messages"', '{"messages":[],"messages"')],
  [
    'duplicate `messages` keys, the first with escapes',
    bodyWith({}).replace('{"messages"', '{"\\u006dessages":[],"messages"'),
  ],
  [
    'duplicate `messages` keys, the last with escapes',
    bodyWith({}).replace('{"messages"', '{"messages":[],"\\u006dessages"'),
  ],
])('the scan uses the last value of %s', (_, text) => {
  expect(countValid(text)).toBe(1);
});

it.each<[string, string, number]>([
  ['an empty body', '', notJson],
  ['a body of white space', ' \n', notJson],
  ['two byte order marks', `\uFEFF\uFEFF${bodyWith({})}`, notJson],
  ['only a byte order mark', '\uFEFF', notJson],
  ['data after the body', `${bodyWith({})}{}`, notJson],
  ['data after a body that is not an object', '[] []', notJson],
  ['a comma after the last message', bodyWith({}).replace(']', ',]'), notJson],
  ['a comma after the last field', bodyWith({}).replace(/}]}$/, ',}]}'), notJson],
  ['a number with a leading zero', bodyBefore('"a":01'), notJson],
  ['a number without digits after the decimal point', bodyBefore('"a":1.'), notJson],
  ['a number with an empty exponent', bodyBefore('"a":1e+'), notJson],
  ['a string with an invalid escape', bodyBefore('"a":"\\u00g0"'), notJson],
  ['a control character in a string', bodyWith({ eventName: 'a~b' }).replace('~', '\u0001'), notJson],
  ['very deep unclosed arrays', bodyBefore(`"a":${'['.repeat(200_000)}`), notJson],
  ['deeply nested brackets that do not match', bodyBefore(`"a":${'['.repeat(100)}${']'.repeat(99)}}`), notJson],
  ['only opening brackets', '['.repeat(1_000_000), notJson],
  ['only matching brackets', '['.repeat(500_000) + ']'.repeat(500_000), notAnObject],
  ['a string', ' "messages" ', notAnObject],
  ['an object without messages', '{}', noMessages],
  ['an object as `messages`', '{"messages":{"a":[1]}}', noMessages],
  ['duplicate `messages` keys, the last with a number', '{"messages":[1],"messages":1}', noMessages],
  ['an empty batch', '{"messages":[]}', tooFew],
  ['more than 100 messages', sampleBody(101, NOW_MS), tooMany],
  ['far more than 100 elements', `{"messages":[${'0,'.repeat(5000)}0]}`, tooMany],
  ['a syntax error after far more than 100 elements', `{"messages":[${'0,'.repeat(5000)}]}`, notJson],
])('the scan refuses the whole body because of %s', (_, text, error) => {
  expect(scan(text)).toBe(error);
});

it.each([
  ['a duplicate field', bodyBefore('"type":"track"')],
  ['a duplicate field with escapes', bodyBefore('"t\\u0079pe":"track"')],
  [
    'a duplicate context field whose last value is null',
    bodyWith({ context: { ...CONTEXT, locale: 'a' } }).replace('"locale":"a"', '"locale":"a","locale":null'),
  ],
  ['null in a required field', bodyWith({ messageId: null })],
  ['an id with a leading space', bodyWith({ userId: ' u' })],
  ['an id with a trailing space', bodyWith({ userId: 'u\u3000' })],
  ['a blank id', bodyWith({ anonymousId: '\u00a0' })],
  ['an id with escapes', bodyWith({ anonymousId: 'a"b' })],
  ['a lone surrogate', bodyWith({ eventName: '\ud800' })],
  ['an id that may be too long', bodyWith({ userId: 'é'.repeat(129) })],
  [
    'an eventName that decodes to a blank string',
    bodyWith({ type: 'track' }).replace('"page"', '"track","eventName":"\\u0020"'),
  ],
  ['an unknown type', bodyWith({ type: 'group' })],
  ['a number that may not be finite', bodyWith({ context: CONTEXT }).replace('"web"', '"web","screenDensity":1e999')],
  ['an event one millisecond too old', bodyWith({ eventTimestamp: new Date(WINDOW.fromMs - 1).toISOString() })],
  ['an event one millisecond too far ahead', bodyWith({ eventTimestamp: new Date(WINDOW.toMs + 1).toISOString() })],
  ['properties with too many levels of nesting', bodyWith({ properties: deep(65) })],
  ['an alias to itself', bodyWith({ type: 'alias', fromId: 'a', toId: 'a' })],
  ['a message of more than 32 KiB', bodyWith({ properties: { a: 'x'.repeat(MESSAGE_BYTES_MAX) } })],
  ['an element that is not an object', '{"messages":[[]]}'],
])('the scan does not accept %s without further validation', (_, text) => {
  expect(countValid(text)).toBe(0);
});

it('the scan refuses every truncated body and every body with invalid UTF-8', () => {
  const body = Buffer.from(sampleBody(6, NOW_MS));
  for (let length = 0; length < body.length; length++) {
    if (scanner.scan(body.subarray(0, length), WINDOW) !== notJson) expect.fail(`truncated at ${length}`);
  }
  for (const at of [2, 200, body.indexOf('Chrome')]) {
    const broken = Buffer.from(body);
    broken[at] = 0xff;
    expect(scanner.scan(broken, WINDOW)).toBe(notJson);
  }
});

it('the scan accepts timestamps at both bounds of the time window, and a message of exactly 32 KiB', () => {
  for (const time of [WINDOW.fromMs, WINDOW.toMs]) {
    expect(countValid(bodyWith({ eventTimestamp: new Date(time).toISOString() }))).toBe(1);
  }
  const bytes = JSON.stringify({ ...PAGE, properties: { a: '' } }).length;
  expect(countValid(bodyWith({ properties: { a: 'x'.repeat(MESSAGE_BYTES_MAX - bytes) } }))).toBe(1);
  expect(countValid(bodyWith({ properties: { a: 'x'.repeat(MESSAGE_BYTES_MAX - bytes + 1) } }))).toBe(0);
});

it('the scan does not return data from the previous batch', () => {
  expect(scan(JSON.stringify({ messages: [sampleMessage(0, NOW_MS)] }))).toBe(1);
  expect(scan(bodyWith({}))).toBe(1);
  for (const field of Object.values(FIELD)) {
    const expected = {
      [FIELD.type]: PAGE.type,
      [FIELD.messageId]: PAGE.messageId,
      [FIELD.eventTimestamp]: PAGE.eventTimestamp,
    };
    expect(readText(scanner.state.batch, 0, field)).toBe((expected as Record<number, string>)[field] ?? '');
  }
});

it('the scan and the contract agree on duplicate ids in any form and position', () => {
  const positions = fc.uniqueArray(fc.nat({ max: 99 }), { minLength: 2, maxLength: 4 });
  const transform = fc.constantFrom<(id: string) => string>(
    (id) => id,
    (id) => id.toUpperCase(),
    (id) => `${id}x`,
    (id) => `${id}X`,
    () => 'Straße',
    () => ' ',
  );
  const changes = fc.array(fc.tuple(positions, fc.array(transform, { minLength: 4, maxLength: 4 })), { maxLength: 3 });
  fc.assert(
    fc.property(changes, (duplicates) => {
      const messages = Array.from({ length: 100 }, (_, index) => sampleMessage(index, NOW_MS));
      for (const [numbers, transforms] of duplicates)
        for (const [index, number] of numbers.entries())
          messages[number]!.messageId = transforms[index]!(String(sampleMessage(numbers[0]!, NOW_MS).messageId));
      compare(Buffer.from(JSON.stringify({ messages })), WINDOW);
    }),
    { numRuns: runsOf({ quick: 50, all: 100 }) },
  );
});

it('the scan and the contract agree on random valid batches', () => {
  let valid = 0;
  const batches = fc.uniqueArray(validMessages(NOW_MS), {
    minLength: 1,
    maxLength: 4,
    selector: ({ messageId }) => messageId,
  });
  fc.assert(
    fc.property(batches, fc.constantFrom('', ' ', '\t\n'), (messages, space) => {
      const found = compare(Buffer.from(JSON.stringify({ messages }, null, space)), WINDOW);
      expect(found.accepted).toBe(messages.length);
      valid += found.valid;
    }),
    { numRuns: runsOf({ quick: 250, all: 500 }) },
  );
  expect(valid).toBeGreaterThan(10);
});

it.each(Array.from({ length: SAMPLE_KINDS }, (_, index) => sampleMessage(index, NOW_MS)))(
  'the scan and the contract agree on every edge-case value in every field of a $type message',
  (message) => {
    let valid = 0;
    // All values are in one batch of messages with different ids.
    for (const position of EDGE_LOCATIONS) {
      const messages = EDGE_VALUES.map((value, index) => {
        const { messageId } = sampleMessage(index, NOW_MS);
        return withEdgeValue({ ...message, messageId }, position, value);
      });
      valid += compare(Buffer.from(JSON.stringify({ messages })), WINDOW).valid;
    }
    expect(valid).toBeGreaterThan(200);
  },
);

const bodiesMax = runsOf({ quick: 400, all: 3_000 });
const seeds = [20_261_121, Math.floor(Math.random() * 2 ** 32)];
it.each(seeds)('the scan and the contract agree on random damaged bodies (seed %i)', (seed) => {
  const counts = runFuzz({ seed, nowMs: NOW_MS, shouldContinue: (bodies) => bodies < bodiesMax });
  // The fuzz test is only meaningful with both valid and invalid messages.
  expect(counts.accepted / counts.messages).toBeGreaterThan(0.5);
  expect(counts.accepted / counts.messages).toBeLessThan(0.9);
  // Few accepted messages should need `explain`.
  expect(counts.valid / counts.accepted).toBeGreaterThan(0.9);
});

it('the scan and the contract agree on elements that are numbers, including numbers too large for a double', () => {
  for (const text of ['0', '-0', '7', '1e308', '1e309', '-1e309', '9'.repeat(309), `-${'9'.repeat(400)}`, '0e999'])
    compare(Buffer.from(`{"messages":[${text},${JSON.stringify(PAGE)}]}`), WINDOW);
});

it('the scan and the contract agree on every number from 00 to 99 in every part of a timestamp', () => {
  const templates = ['2024-??-01T00:00:00Z', '2026-01-01T??:00:00Z', '2026-01-01T00:??:00Z', '2026-01-01T00:00:??Z'];
  for (const offset of ['+??:00', '-00:??', '+00:??']) templates.push(`2026-01-01T00:00:00.123${offset}`);
  for (const year of ['0000', '1900', '2000', '2024', '2026', '9999']) {
    for (let month = 1; month <= 12; month++) {
      templates.push(`${year}-${String(month).padStart(2, '0')}-??T23:59:59Z`);
    }
  }
  for (const template of templates) {
    for (let number = 0; number < 100; number++) {
      const text = template.replace('??', String(number).padStart(2, '0'));
      if (!Object.is(parseTimestampBytes(Buffer.from(text), 0, text.length), parseTimestamp(text))) expect.fail(text);
    }
  }
});

it('the scan and the contract agree on random valid and damaged timestamps', () => {
  const pieces = fc.constantFrom(...'0123456789-:.TtZz+ /x'.split(''));
  const positions = fc.array(fc.tuple(fc.nat({ max: 40 }), pieces, fc.boolean()), { maxLength: 3 });
  const dates = fc.date({ min: new Date('0000-01-01'), max: new Date('9999-12-31'), noInvalidDate: true });
  const ends = fc.constantFrom('Z', '.1Z', '.123456789Z', '+23:59', '-00:30', '.5+01:00', '.1234567890Z', '');
  fc.assert(
    fc.property(dates, ends, positions, (date, end, damage) => {
      const text = date.toISOString().slice(0, 19).split('').concat(end.split(''));
      for (const [at, piece, isExtra] of damage) text.splice(at, isExtra ? 0 : 1, piece);
      const bytes = Buffer.from(`"${text.join('')}"Z123456789`);
      const length = text.join('').length;
      expect(parseTimestampBytes(bytes, 1, 1 + length)).toBe(parseTimestamp(text.join('')));
    }),
    { numRuns: 1_000 },
  );
});
