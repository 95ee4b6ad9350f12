import {
  EVENT_AGE_MAX_MS,
  EVENT_AHEAD_MAX_MS,
  judgeBatch,
  MESSAGE_BYTES_MAX,
  parseTimestamp,
} from '@playline/contracts';
import { createScannedEncoder, encodeMessages, FIELD, textOf } from '@playline/events';
import { validMessages } from '@playline/testkit';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compare, legibleKeyOf, runFuzz } from './fuzz.ts';
import { createScanner, readDocument, UNDECIDED } from './index.ts';
import { ODD_PLACES, ODD_VALUES, oddMessage } from './odd-values.ts';
import { SAMPLE_KINDS, sampleBody, sampleMessage } from './sample-messages.ts';
import { timestampOf } from './timestamp.ts';

const NOW_MS = Date.UTC(2026, 10, 21, 12);
const WINDOW = { fromMs: NOW_MS - EVENT_AGE_MAX_MS, toMs: NOW_MS + EVENT_AHEAD_MAX_MS };
const ENVELOPE = { schemaId: 7, environmentId: 'demo-test', receivedAt: NOW_MS, traceId: 'ab'.repeat(16) };
const scanner = createScanner();
const encodeScanned = createScannedEncoder();
const scan = (text: string) => scanner.scan(Buffer.from(text), WINDOW);
const PAGE = {
  type: 'page',
  messageId: '0192f1c0-7b3a-7c4d-8e5f-000000000001',
  eventTimestamp: '2026-11-21T11:59:00Z',
};
const bodyWith = (fields: object) => JSON.stringify({ messages: [{ ...PAGE, ...fields }] });
/** A page with JSON text put before its own fields. */
const bodyBefore = (json: string) => bodyWith({}).replace('{"type"', `{${json},"type"`);
const CONTEXT = { library: 'web', libraryVersion: '1' };
const deep = (levels: number) => JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`);

describe('the scan', () => {
  it.each([1, 2, 6, 20, 100])('decides a batch of %i messages as client libraries send them', (count) => {
    expect(scan(sampleBody(count, NOW_MS))).toBe(count);
  });

  it.each([
    [
      'white space wherever JSON allows it',
      JSON.stringify(JSON.parse(bodyWith({ context: CONTEXT })), null, '\t\r\n '),
    ],
    ['white space around the body', ` \n${bodyWith({})}\r\n\t `],
    ['other fields of the body', bodyWith({}).replace('{"messages"', '{"sentAt":[1,{"a":null}],"messages"')],
    ['unknown fields of any kind', bodyBefore('"a":-1.5e-3,"b":[[],{}],"c":{"type":1},"d":"\\u0000"')],
    ['null in optional fields', bodyWith({ userId: null, context: null, test: null, properties: null })],
    ['an eventName with escapes', bodyWith({ eventName: 'a "quoted"\n name' })],
    ['a page title with escapes', bodyWith({ context: { ...CONTEXT, pageTitle: '"\\\n' } })],
    [
      'names beyond ASCII',
      bodyWith({ eventName: 'レベル完了', userId: 'Zoë', context: { ...CONTEXT, library: 'か' } }),
    ],
    ['empty optional ids', bodyWith({ userId: '', anonymousId: '' })],
    [
      'equal keys where the contract does not look',
      bodyWith({ properties: { a: 1 } }).replace('{"a":1}', '{"a":1,"a":2}'),
    ],
  ])('decides %s', (_, text) => {
    expect(scan(text)).toBe(1);
  });

  it.each([
    ['no body', ''],
    ['an empty batch', '{"messages":[]}'],
    ['more than 100 messages', sampleBody(101, NOW_MS)],
    ['a byte order mark', `\uFEFF${bodyWith({})}`],
    ['something behind the body', `${bodyWith({})}{}`],
    ['a comma behind the last message', bodyWith({}).replace(']', ',]')],
    ['messages twice', bodyWith({}).replace('{"messages"', '{"messages":[],"messages"')],
    ['messages twice, once with escapes', bodyWith({}).replace('{"messages"', '{"\\u006dessages":[],"messages"')],
    ['a field twice', bodyBefore('"type":"track"')],
    ['a field twice, once with escapes', bodyBefore('"t\\u0079pe":"track"')],
    [
      'a context field twice, null at last',
      bodyWith({ context: { ...CONTEXT, locale: 'a' } }).replace('"locale":"a"', '"locale":"a","locale":null'),
    ],
    ['a number with a leading zero', bodyBefore('"a":01')],
    ['a number with nothing behind its point', bodyBefore('"a":1.')],
    ['a number with an empty exponent', bodyBefore('"a":1e+')],
    ['a string with a broken escape', bodyBefore('"a":"\\u00g0"')],
    ['a required field null', bodyWith({ messageId: null })],
    ['an id with a space in front', bodyWith({ userId: ' u' })],
    ['an id with a space behind it', bodyWith({ userId: 'u\u3000' })],
    ['a blank id', bodyWith({ anonymousId: '\u00a0' })],
    ['an id with escapes', bodyWith({ anonymousId: 'a"b' })],
    ['a lone surrogate', bodyWith({ eventName: '\ud800' })],
    ['an id that may be too long', bodyWith({ userId: 'é'.repeat(129) })],
    [
      'an eventName that is blank once decoded',
      bodyWith({ type: 'track' }).replace('"page"', '"track","eventName":"\\u0020"'),
    ],
    ['an unknown type', bodyWith({ type: 'group' })],
    ['a number that may not be finite', bodyWith({ context: CONTEXT }).replace('"web"', '"web","screenDensity":1e999')],
    ['a message one millisecond too old', bodyWith({ eventTimestamp: new Date(WINDOW.fromMs - 1).toISOString() })],
    ['a message one millisecond too far ahead', bodyWith({ eventTimestamp: new Date(WINDOW.toMs + 1).toISOString() })],
    ['nesting deeper than it follows', bodyWith({ properties: deep(60) })],
    ['nesting without end', bodyBefore(`"a":${'['.repeat(200_000)}`)],
    ['a control character in a string', bodyWith({ eventName: 'a~b' }).replace('~', '\u0001')],
    ['an alias to itself', bodyWith({ type: 'alias', fromId: 'a', toId: 'a' })],
    [
      'two messages with one id but for its case',
      JSON.stringify({ messages: [PAGE, { ...PAGE, messageId: PAGE.messageId.toUpperCase() }] }),
    ],
    ['a message of more than 32 KiB', bodyWith({ properties: { a: 'x'.repeat(MESSAGE_BYTES_MAX) } })],
  ])('leaves undecided %s', (_, text) => {
    expect(scan(text)).toBe(UNDECIDED);
  });

  it('leaves undecided every body that is cut off or has bytes that are not UTF-8', () => {
    const body = Buffer.from(sampleBody(6, NOW_MS));
    for (let length = 0; length < body.length; length++) {
      expect(scanner.scan(body.subarray(0, length), WINDOW)).toBe(UNDECIDED);
    }
    for (const at of [2, 200, body.indexOf('Chrome')]) {
      const broken = Buffer.from(body);
      broken[at] = 0xff;
      expect(scanner.scan(broken, WINDOW)).toBe(UNDECIDED);
    }
  });

  it('takes times exactly at both bounds of the window, and a message of exactly 32 KiB', () => {
    for (const time of [WINDOW.fromMs, WINDOW.toMs]) {
      expect(scan(bodyWith({ eventTimestamp: new Date(time).toISOString() }))).toBe(1);
    }
    const bytes = JSON.stringify({ ...PAGE, properties: { a: '' } }).length;
    expect(scan(bodyWith({ properties: { a: 'x'.repeat(MESSAGE_BYTES_MAX - bytes) } }))).toBe(1);
    expect(scan(bodyWith({ properties: { a: 'x'.repeat(MESSAGE_BYTES_MAX - bytes + 1) } }))).toBe(UNDECIDED);
  });

  it('forgets the batch before', () => {
    expect(scan(JSON.stringify({ messages: [sampleMessage(0, NOW_MS)] }))).toBe(1);
    expect(scan(bodyWith({}))).toBe(1);
    for (const field of Object.values(FIELD)) {
      const expected = {
        [FIELD.type]: PAGE.type,
        [FIELD.messageId]: PAGE.messageId,
        [FIELD.eventTimestamp]: PAGE.eventTimestamp,
      };
      expect(textOf(scanner.batch, 0, field)).toBe((expected as Record<number, string>)[field] ?? '');
    }
  });

  it('finds twins wherever they stand among 100 messages', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat({ max: 99 }), { minLength: 2, maxLength: 2 }), ([first = 0, second = 0]) => {
        const messages = Array.from({ length: 100 }, (_, index) => sampleMessage(index, NOW_MS));
        messages[second]!.messageId = messages[first]!.messageId;
        expect(scan(JSON.stringify({ messages }))).toBe(UNDECIDED);
      }),
    );
  });
});

describe('the scan and the contract', () => {
  it('agree, and both encoders write the same bytes, for random valid batches', () => {
    let decided = 0;
    const batches = fc.uniqueArray(validMessages(NOW_MS), {
      minLength: 1,
      maxLength: 4,
      selector: ({ messageId }) => messageId,
    });
    fc.assert(
      fc.property(batches, fc.constantFrom('', ' ', '\t\n'), (messages, space) => {
        const body = Buffer.from(JSON.stringify({ messages }, null, space));
        if (scanner.scan(body, WINDOW) === UNDECIDED) return;
        decided++;
        const read = readDocument(body);
        if (!read.ok) throw new Error('no JSON');
        const verdict = judgeBatch(read.document, { window: WINDOW, sources: read.sources });
        if (verdict.kind === 'fault') throw new Error(verdict.message);
        const sourced = verdict.accepted.map(({ index, message }) => ({ message, ...read.sources[index] }));
        const slow = encodeMessages(sourced, ENVELOPE, legibleKeyOf);
        expect(encodeScanned(scanner.batch, ENVELOPE, legibleKeyOf)).toEqual(slow);
      }),
      { numRuns: 500 },
    );
    expect(decided).toBeGreaterThan(50);
  });

  it.each(Array.from({ length: SAMPLE_KINDS }, (_, index) => sampleMessage(index, NOW_MS)))(
    'agree on every odd value in every field of $type',
    (message) => {
      let scanned = 0;
      for (const place of ODD_PLACES) {
        for (const value of ODD_VALUES) {
          const body = Buffer.from(JSON.stringify({ messages: [oddMessage(message, place, value)] }));
          if (compare(body, WINDOW).isScanned) scanned++;
        }
      }
      expect(scanned).toBeGreaterThan(200);
    },
  );

  const seeds = [20_261_121, Math.floor(Math.random() * 2 ** 32)];
  it.each(seeds)('agree on thousands of damaged bodies (seed %i)', (seed) => {
    const counts = runFuzz({ seed, nowMs: NOW_MS, goesOn: (bodies) => bodies < 3000 });
    // A fuzz that decides nothing, or damages nothing, proves nothing.
    expect(counts.scanned).toBeGreaterThan(600);
    expect(counts.acceptable).toBeLessThan(2000);
    // What the fast path leaves to the slow one is the exception.
    expect(counts.scanned / counts.acceptable).toBeGreaterThan(0.9);
  });

  it('read every number in every place of a timestamp alike', () => {
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
        expect(timestampOf(Buffer.from(text), 0, text.length), text).toBe(parseTimestamp(text));
      }
    }
  });

  it('read every timestamp alike, sound or damaged', () => {
    const pieces = fc.constantFrom(...'0123456789-:.TtZz+ /x'.split(''));
    const places = fc.array(fc.tuple(fc.nat({ max: 40 }), pieces, fc.boolean()), { maxLength: 3 });
    const dates = fc.date({ min: new Date('0000-01-01'), max: new Date('9999-12-31'), noInvalidDate: true });
    const ends = fc.constantFrom('Z', '.1Z', '.123456789Z', '+23:59', '-00:30', '.5+01:00', '.1234567890Z', '');
    fc.assert(
      fc.property(dates, ends, places, (date, end, damage) => {
        const text = date.toISOString().slice(0, 19).split('').concat(end.split(''));
        for (const [at, piece, isExtra] of damage) text.splice(at, isExtra ? 0 : 1, piece);
        const bytes = Buffer.from(`"${text.join('')}"Z123456789`);
        const length = text.join('').length;
        expect(timestampOf(bytes, 1, 1 + length)).toBe(parseTimestamp(text.join('')));
      }),
      { numRuns: 5000 },
    );
  });
});
