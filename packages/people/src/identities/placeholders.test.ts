import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isPlaceholder, isPlaceholderBytes } from './placeholders.ts';

const PLACEHOLDERS = [
  ...[
    'null',
    'NULL',
    ' undefined ',
    'None',
    'nil',
    'NaN',
    'n/a',
    'N/A',
    'n.a.',
    'unknown',
    '(null)',
    '<null>',
    '"null"',
  ],
  ...[
    '{}',
    '[]',
    '[null]',
    '{"id":null}',
    '{"id":"undefined"}',
    '{ "a" : [ ] }',
    '0.0',
    '0',
    '-1',
    '000-000',
    '-',
    '???',
  ],
  ...['undefined undefined', 'null_null', 'undefined-null', '[object Object]', '[object Undefined]', 'function () { }'],
  ...['unidentified', 'unknown_user', 'Unknown User', 'user_id', 'userId', 'deviceid', 'your-user-id', '<user_id>'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: unfilled templates
  ...['${userId}', 'player-${id}', '{{ user.id }}', '<%= id %>', '#{id}', '%s', '%@', '{0}', '%USER_ID%', '$(id)'],
  ...['\0', 'nu\0ll', '\u200b', 'null\u200b', 'ｎｕｌｌ', 'xxx', 'aaaaaaaa', '1111', 'not set', 'not_authenticated'],
  ...['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'FFFFFFFF', 'optional(nil)'],
  ...['9774d56d682e549c', '9774D56D682E549C', '02:00:00:00:00:00', `0x${'0'.repeat(40)}`],
  ...['0x0', '<no value>', 'nullptr', 'user-', 'anon_', 'null@null.com', 'undefined@undefined', '123456789012345'],
  ...['%7B%7BuserId%7D%7D', '%24%7BuserId%7D', 'player-%7b%7bid%7d%7d', '00000000-0000-0000-0000-000000000001'],
  ...['d41d8cd98f00b204e9800998ecf8427e', 'da39a3ee5e6b4b0d3255bfef95601890afd80709'],
];
const IDS = [
  ...[
    '1',
    '0x1',
    '10',
    '-10',
    '11',
    '99',
    '777',
    'ids',
    'a@null',
    "'",
    'nullable',
    'player',
    'player-0',
    'user-1',
    'guest-1',
  ],
  ...[
    'anon',
    'anonymous-7',
    'bob@example.org',
    'null@example.org',
    'bob-',
    '100%25',
    'ana@null.com',
    'Ana',
    'José',
    '😀😀😀😀',
    '123456',
    'test',
  ],
  ...[
    'f47ac10b-58cc-4372-a567-0e02b2c3d479',
    '{f47ac10b-58cc-4372-a567-0e02b2c3d479}',
    '{"id":7}',
    '76561198000000001',
  ],
  ...['0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266', 'user 7', 'a', 'ab', '0001', 'unknown-player-7', 'x'.repeat(2)],
];

describe('isPlaceholder', () => {
  it.each(PLACEHOLDERS)('%j is a placeholder', (id) => {
    expect(isPlaceholder(id)).toBe(true);
    expect(isPlaceholderBytes(Buffer.from(id.trim()))).toBe(true);
  });

  it.each(IDS)('%j is not a placeholder', (id) => {
    expect(isPlaceholder(id)).toBe(false);
    expect(isPlaceholderBytes(Buffer.from(id))).toBe(false);
  });

  it('case, whitespace, quotes and brackets do not hide a placeholder', () => {
    const wrap = fc.constantFrom('""', "''", '``', '()', '<>', '[]');
    const property = fc.property(
      fc.constantFrom(...PLACEHOLDERS.filter((id) => /^[\w /]+$/.test(id))),
      fc.array(wrap, { maxLength: 3 }),
      fc.boolean(),
      (id, wraps, isUpper) => {
        const text = wraps.reduce((inner, [open, close]) => `${open} ${inner}\t${close}`, id);
        expect(isPlaceholder(isUpper ? text.toUpperCase() : text)).toBe(true);
      },
    );
    fc.assert(property);
  });

  it.each(['{{', '[[', '<%', '%(', '${', '(', '"', '\ufdfa'])(
    'the check takes linear time for an id that repeats %s',
    (part) => {
      const timeOf = (text: string) => {
        const times = Array.from({ length: 100 }, () => {
          const start = performance.now();
          isPlaceholder(text.repeat(256 / text.length));
          return performance.now() - start;
        });
        return times.reduce((least, each) => Math.min(least, each));
      };
      expect(timeOf(part) / timeOf('é')).toBeLessThan(5);
    },
  );

  it('strings and UTF-8 bytes are classified identically', () => {
    const parts = fc.constantFrom(
      ...PLACEHOLDERS,
      ...IDS,
      'user',
      'id',
      'not',
      '-',
      '_',
      ' ',
      '.',
      '0',
      'x',
      '7',
      '"',
      'é',
    );
    const mixed = fc.array(parts, { minLength: 1, maxLength: 4 }).map((list) => list.join(''));
    const ids = fc.oneof(mixed, fc.string(), fc.string({ unit: 'binary' }), fc.uuid());
    fc.assert(
      fc.property(ids, (text) => {
        const id = Buffer.from(text);
        // The tab bypasses the byte filter.
        const expected = isPlaceholder(`\t${id}`);
        expect([isPlaceholder(id.toString()), isPlaceholderBytes(id)]).toEqual([expected, expected]);
      }),
      { numRuns: 1_000 },
    );
  });
});
