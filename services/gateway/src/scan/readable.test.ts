import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createScanner, validateScanned } from './batch.ts';
import { duplicateKeyReads } from './json.ts';
import { FIELD, readText } from './ranges.ts';
import { DuplicateKeys } from './readable.ts';
import { toReadableJson } from './test/document.ts';

const NOW = Date.parse('2026-11-22T05:00:00Z');
const scanner = createScanner();

/** Returns the properties of a message as stored. */
function storeProperties(properties: string): string {
  const start = '"type":"page","messageId":"0192f1c0-7b3a-7c4d-8e5f-000000000001"';
  const body = `{"messages":[{${start},"eventTimestamp":"2026-11-22T05:00:00Z","properties":${properties}}]}`;
  expect(scanner.scan(Buffer.from(body), { fromMs: NOW, toMs: NOW })).toBe(1);
  expect(validateScanned(scanner.state).rejected).toEqual([]);
  return readText(scanner.state.batch, 0, FIELD.properties);
}

const digits = (maxLength: number) => fc.stringMatching(/^\d*$/, { maxLength });
const integer = fc.oneof(
  fc.constant('0'),
  fc.tuple(fc.integer({ min: 1, max: 9 }), fc.oneof(digits(3), digits(22), digits(320))).map((parts) => parts.join('')),
  fc.constantFrom('18446744073709551615', '18446744073709551616', '9223372036854775808', '9223372036854775809'),
);
const fraction = fc.tuple(
  fc.constantFrom('.', '.000', '.7976931348623157', '.7976931348623158'),
  digits(20),
  fc.nat(9),
);
const exponent = fc.tuple(
  fc.constantFrom('e', 'E+', 'e-', 'e00'),
  fc.oneof(fc.integer({ min: 280, max: 330 }), fc.nat()),
);
const number = fc
  .tuple(
    fc.constantFrom('', '-'),
    integer,
    fc.option(
      fraction.map((parts) => parts.join('')),
      { nil: '' },
    ),
    fc.option(
      exponent.map((parts) => parts.join('')),
      { nil: '' },
    ),
  )
  .map((parts) => parts.join(''));
const escapes = fc
  .array(
    fc.constantFrom(
      '\\ud83c',
      '\\uDF00',
      '\\udbff',
      '\\udc00',
      '\\ud7ff',
      '\\ue000',
      '\\\\',
      '\\"',
      'u',
      'd800',
      '1e999',
    ),
  )
  .map((parts) => `"${parts.join('')}"`);

const name = fc.constantFrom(
  'a',
  'b',
  '\\u0061',
  '\\ud83c',
  '\\ufffd',
  '\ufffd',
  '',
  'abcdefgh',
  'abcdXfgh',
  '"'.replace('"', '\\"'),
);
const space = fc.constantFrom('', ' ', '\n');
const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.oneof(number, escapes, fc.constantFrom('true', 'null', '{}', '[ ]')),
    fc
      .array(fc.tuple(space, tie('value'), space), { maxLength: 3 })
      .map((elements) => `[${elements.map((parts) => parts.join('')).join()}]`),
    fc.array(fc.tuple(space, name, space, tie('value'), space), { maxLength: 6 }).map(toObject),
  ),
}));
function toObject(members: [string, string, string, string, string][]): string {
  return `{${members.map(([a, key, b, text, c]) => `${a}"${key}"${b}:${text}${c}`).join()}}`;
}

it('only the last of several duplicate keys is stored', () => {
  const members = fc.array(fc.tuple(space, name, space, value, space), { maxLength: 8 }).map(toObject);
  fc.assert(
    fc.property(members, (text) => {
      const stored = storeProperties(text);
      expect(stored).toBe(toReadableJson(text));
      const storedAgain = storeProperties(stored);
      expect(storedAgain).toBe(stored);
    }),
    { numRuns: 1_000 },
  );
});

it.each([1, 9, 300, 1_000])('a duplicate key is found after %i other keys', (count) => {
  const otherMembers = Array.from({ length: count }, (_, index) => `"key ${index}":${index}`).join();
  expect(storeProperties(`{"key 0":"first",${otherMembers}}`)).toBe(`{${otherMembers}}`);
  expect(storeProperties(`{"a":{"x":1,${otherMembers},"x":2}}`)).toBe(`{"a":{${otherMembers},"x":2}}`);
});

it('keys of an earlier, longer body are not mistaken for keys of the current body', () => {
  // Keys that share a slot of the hash table.
  const keys = Array.from({ length: 10 }, (_, index) => `"k0${index}m00e":${index}`);
  storeProperties(`{"padding":"${'x'.repeat(5_000)}",${keys.join()}}`);
  const before = duplicateKeyReads.count;
  storeProperties('{"k11m00e":1}');
  expect(duplicateKeyReads.count).toBe(before);
});

const [FNV_PRIME, FNV_BASIS] = [0x01000193, 0x811c9dc5];

// Returns keys with the same FNV-1a hash. A meet-in-the-middle search finds strings that do not change the hash, so any
// combination of these strings has the same hash.
function collidingKeys(): string[] {
  let inverse = 1;
  for (let step = 0; step < 5; step++) inverse = Math.imul(inverse, 2 - Math.imul(FNV_PRIME, inverse));
  const toHalf = (word: number) => [0, 4, 8, 12, 16].map((shift) => 97 + ((word >> shift) & 15));
  const firsts = new Map<number, number>();
  for (let word = 0; word < 2 ** 19; word++)
    firsts.set(
      toHalf(word).reduce((hash, byte) => Math.imul(hash ^ byte, FNV_PRIME), FNV_BASIS),
      word,
    );
  const parts: string[] = [];
  for (let word = 0; word < 2 ** 19; word++) {
    const first = firsts.get(toHalf(word).reduceRight((hash, byte) => Math.imul(hash, inverse) ^ byte, FNV_BASIS | 0));
    if (first !== undefined) parts.push(String.fromCharCode(...toHalf(first), ...toHalf(word)));
  }
  return parts.flatMap((first) => parts.map((second) => first + second)).slice(0, 1_000);
}

it('keys with colliding FNV hashes do not slow down the search for duplicate keys', () => {
  const keys = collidingKeys();
  expect(keys.length).toBe(1_000);
  const duplicateKeys = new DuplicateKeys();
  const measure = (names: readonly string[]) => {
    const object = Buffer.from(`{${names.map((key) => `"${key}":1`).join()}}`);
    const times = Array.from({ length: 50 }, () => {
      const start = performance.now();
      duplicateKeys.find(object, 0, object.length);
      return performance.now() - start;
    });
    return Math.min(...times);
  };
  const baseline = measure(keys.map((_, index) => `k${String(index).padStart(19, '0')}`));
  expect(measure(keys) / baseline).toBeLessThan(10);
});

it('equal keys in different objects are not duplicates', () => {
  const text = '{"a":{"a":{"a":1},"b":1},"b":[{"a":1},{"a":2}]}';
  expect(storeProperties(text)).toBe(text);
  expect(scanner.state.duplicateKeys[0]).toBe(0);
});

it('numbers and escapes are stored as in the reference implementation', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(number, escapes), { maxLength: 20 }), (values) => {
      const text = `{"a" : [${values.join(' , ')}]}`;
      expect(storeProperties(text)).toBe(toReadableJson(text));
    }),
    { numRuns: 700 },
  );
});
