import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { findJsonError, parseJsonObject, withoutByteOrderMark } from './json-body.ts';

const createBatch = (middle: string) => `{"messages":[{"a":1},\n  ${middle},\n{"b":2}]}`;
/** A byte that is invalid everywhere in JSON. */
const INVALID = Buffer.from([0x01]);

function isJson(body: Buffer): boolean {
  try {
    JSON.parse(body.toString('utf8'));
    return isUtf8(body);
  } catch {
    return false;
  }
}

it.each([
  ['an unknown literal', createBatch('{"x":NaN}'), { offset: 29, line: 2, column: 8, messageIndex: 1, found: 'NaN' }],
  ['a raw tab', createBatch('{"x":"\t"}'), { offset: 30, line: 2, column: 9, messageIndex: 1, found: 'U+0009' }],
  [
    'a Latin-1 byte',
    Buffer.from(createBatch('{"x":"\xe9"}'), 'latin1'),
    { offset: 30, line: 2, column: 9, messageIndex: 1, found: 'byte 0xE9' },
  ],
  ['a leading zero', createBatch('{"x":01}'), { offset: 30, line: 2, column: 9, messageIndex: 1, found: '1' }],
  ['a trailing comma', createBatch('{"x":1,}'), { offset: 31, line: 2, column: 10, messageIndex: 1, found: '}' }],
  ['a curly quote', createBatch('{“x”:1}'), { offset: 25, line: 2, column: 4, messageIndex: 1, found: '“' }],
  ['an error after a multi-byte character', '{"é":nil}', { offset: 6, line: 1, column: 6, found: 'nil' }],
  ['an unclosed array', '{"messages":[', { offset: 13, line: 1, column: 14, messageIndex: 0, found: 'end of body' }],
  ['a second document', '{} {}', { offset: 3, line: 1, column: 4, found: '{' }],
  ['no content', '', { offset: 0, line: 1, column: 1, found: 'end of body' }],
  ['an error after a byte order mark', '\ufeff{"a" 1}', { offset: 8, line: 1, column: 6, found: '1' }],
  ['an error in an array other than messages', '{"events":[1,,2]}', { offset: 13, line: 1, column: 14, found: ',' }],
  [
    'an escaped `messages` key',
    '{"mess\\u0061ges":[1,,2]}',
    { offset: 20, line: 1, column: 21, messageIndex: 1, found: ',' },
  ],
])('findJsonError locates the error in a body with %s', (_what, text, error) => {
  expect(findJsonError(Buffer.from(text as string))).toEqual(error);
});

it('findJsonError finds an error if and only if the body is not valid UTF-8 or JSON.parse throws', () => {
  const mutated = fc
    .tuple(fc.json(), fc.nat(), fc.uint8Array({ maxLength: 3 }), fc.nat(2))
    .map(([json, at, inserted, removed]) => {
      const bytes = Buffer.from(json);
      const position = at % (bytes.length + 1);
      return Buffer.concat([bytes.subarray(0, position), inserted, bytes.subarray(position + removed)]);
    });
  fc.assert(
    fc.property(fc.oneof(mutated, fc.uint8Array().map(Buffer.from), fc.string().map(Buffer.from)), (body) => {
      const json = withoutByteOrderMark(body);
      expect(findJsonError(body) === null).toBe(isJson(json));
    }),
    { numRuns: 1_000 },
  );
});

it('findJsonError returns the offset of the first invalid byte, or of the start of an invalid literal', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 4 }), fc.nat(), (json, at) => {
      const characters = [...json];
      const prefix = Buffer.from(characters.slice(0, at % characters.length).join(''));
      const { offset } = findJsonError(Buffer.concat([prefix, INVALID]))!;
      const rest = prefix.toString('utf8', offset);
      const isLiteral = rest !== '' && ['null', 'true', 'false'].some((text) => text.startsWith(rest));
      expect(offset === prefix.length || isLiteral).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

it('findJsonError handles half a million open brackets', () => {
  const body = Buffer.alloc(500_000, '[');
  expect(findJsonError(body)).toMatchObject({ offset: 500_000, found: 'end of body' });
});

it('parseJsonObject ignores a byte order mark', () => {
  expect(parseJsonObject(Buffer.from('\ufeff{"a":1}'))).toEqual({ kind: 'object', object: { a: 1 } });
  expect(parseJsonObject(Buffer.from('\ufeff\ufeff{"a":1}'))).toMatchObject({ details: { offset: 3 } });
});

it.each(['[]', 'null', '7', '"x"'])('parseJsonObject refuses %s, which is not an object', (text) => {
  expect(parseJsonObject(Buffer.from(text))).toEqual({
    kind: 'refused',
    message: 'The body must be a JSON object.',
    details: null,
  });
});
