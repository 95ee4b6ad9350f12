import { quoteText } from '@playline/stores';
import { runStatement, tableTemplate } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';

/** Names that occur in each other, in values or in PLAIN, or that are escaped in an object. */
const NAMES = ['a', 'b', 'ab', '', 'ä', '{', 'a"', '"a', 'a\\', 'a":1,"b', '%', '_', ',', ':', ': ', '],', ':1,'];
const PLAIN = ['{"a":1,"b":2}', '{"a":1,"b":"text"}', '{"a":"b",":":"x"}', '{"a":": ,7,"}', ''];

const space = fc.oneof({ weight: 4, arbitrary: fc.constant('') }, fc.constantFrom(' ', '\n', '\t', '\r\n', '  '));
const texts = fc.oneof(
  fc.constantFrom(
    '',
    'x',
    ':',
    ':7,',
    '7',
    '0.5',
    '7x',
    'null',
    'a: 1',
    '"a":"b"',
    '{"a":1}',
    '{',
    '}',
    ',"b":',
    '\\',
    'a\u0000',
  ),
  fc.string({ maxLength: 5 }),
);
const scalars = fc.oneof(
  fc.constantFrom('0', '-0', '0.0', '1.50', '1e5', '-3E-2', '9007199254740993', '18446744073709551615', 'true', 'null'),
  // The gateway stores no integer beyond 64 bits as a number, because JSONExtract treats its object as empty.
  fc
    .double({ noNaN: true, noDefaultInfinity: true })
    .filter((value) => !Number.isInteger(value) || (value >= -(2 ** 63) && value < 2 ** 64))
    .map((value) => JSON.stringify(value)),
  fc.integer().map(String),
  texts.map((text) => JSON.stringify(text)),
);

/** Objects with arbitrary white space. */
const { object } = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { weight: 6, arbitrary: scalars },
    tie('object'),
    fc.array(tie('value'), { maxLength: 2 }).map((values) => `[${values.join()}]`),
  ),
  object: fc
    .uniqueArray(fc.tuple(fc.constantFrom(...NAMES), tie('value'), space, space, space), {
      selector: ([name]) => name,
      maxLength: 4,
    })
    .map(
      (members) =>
        `{${members
          .map(([name, value, ...spaces]) => `${spaces[0]}${JSON.stringify(name)}${spaces[1]}:${spaces[2]}${value}`)
          .join()}}`,
    ),
}));

it('propertyText and propertyNumber return what JSONExtract returns, for any object and name', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(object, { minLength: 100, maxLength: 200 }),
      fc.constantFrom(...NAMES),
      async (objects, name) => {
        const different = await runStatement(
          tableTemplate()!,
          `WITH ${quoteText(name)} AS name,
            (propertyText(json, name), propertyNumber(json, name)) AS found,
            (JSONExtractString(json, name), JSONExtract(json, name, 'Nullable(Float64)')) AS expected
          SELECT json, found, expected FROM (SELECT arrayJoin([${[...PLAIN, ...objects].map(quoteText).join()}]) AS json)
          WHERE toString(found) != toString(expected) FORMAT JSONEachRow`,
        );
        expect(different).toBe('');
      },
    ),
    { numRuns: runsOf({ quick: 40, all: 1_000 }) },
  );
});
