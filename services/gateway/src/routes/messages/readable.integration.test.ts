import { testStores } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { message, openGateway, sentMessages } from '../../test/open-gateway.ts';

/** Reads the member `probe` of each JSON object twice, with `JSONExtract…` and with `::JSON`. */
async function readWithClickHouse(texts: readonly string[]): Promise<string[]> {
  const { url, user, password } = testStores().clickhouse;
  const rows = texts.map((text) => JSON.stringify({ text })).join('\n');
  const query = `SELECT JSONExtractRaw(text, 'probe') AS extracted, (text::JSON).probe::String AS cast
    FROM format(JSONEachRow, 'text String', $rows$${rows}$rows$)
    SETTINGS type_json_skip_duplicated_paths = 1 FORMAT TSVRaw`;
  const headers = { 'x-clickhouse-user': user, 'x-clickhouse-key': password };
  const response = await fetch(`${url}/`, { method: 'POST', headers, body: query });
  const read = await response.text();
  if (!response.ok) throw new Error(read.slice(0, 300));
  return read.trimEnd().split('\n');
}

const FOUND = '"here"\there';
const withProbe = (members: string) => `{"probe":"here"${members === '' ? '' : `,${members}`}}`;

/** Writes the batch as a string, because JavaScript cannot represent all of these numbers. */
const createBody = (texts: readonly string[]) => {
  const messages = texts.map((text) => {
    const start = JSON.stringify(message()).slice(0, -1);
    return `${start},"properties":${text},"traits":${text}}`;
  });
  return `{"messages":[${messages.join()}]}`;
};

const digits = (max: number) => fc.bigInt({ min: 0n, max: 10n ** BigInt(max) }).map(String);
const sign = fc.constantFrom('', '-');
const number = fc.oneof(
  fc.tuple(sign, digits(25)).map((parts) => parts.join('')),
  fc.tuple(sign, digits(3), fc.constantFrom('e', 'E+', 'e-', '.5e', '.0E'), fc.nat(420)).map((parts) => parts.join('')),
  fc.tuple(sign, fc.constantFrom(0, 18, 19, 20, 308, 309), fc.constantFrom('', '.25')).map(([minus, zeros, rest]) => {
    return `${minus}1${'0'.repeat(zeros)}${rest}`;
  }),
  fc.constantFrom('18446744073709551615', '18446744073709551616', '-9223372036854775808', '-9223372036854775809'),
  fc.constantFrom('1.7976931348623157e308', '1.7976931348623159e308', '0.00001e312', '0e99999999999', '1e99999999999'),
);
const unit = fc.oneof(
  fc.string({ maxLength: 3 }).map((text) => JSON.stringify(text).slice(1, -1)),
  fc.constantFrom('\\ud83c', '\\uDF00', '\\ud83c\\udf00', '\\\\ud83c', '\\u0000', '\\/', '😀', '.', ''),
);
const text = fc.array(unit, { maxLength: 4 }).map((units) => `"${units.join('')}"`);
const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.oneof(number, text, fc.constantFrom('true', 'null', '[]', '{}')),
    fc.array(tie('value'), { maxLength: 4 }).map((values) => `[ ${values.join(' ,')}]`),
    fc.array(fc.tuple(text, tie('value')), { maxLength: 4 }).map((members) => `{${members.map(toMember).join()}}`),
  ),
}));
const toMember = ([name, value]: [string, string]) => `${name}:${value}`;
const freeForm = fc
  .array(fc.tuple(text, value), { maxLength: 5 })
  .map((members) => withProbe(members.map(toMember).join()));

it('ClickHouse can read all stored properties and traits', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(freeForm, { minLength: 1, maxLength: 60 }), async (texts) => {
      const { post, producer } = await openGateway();
      expect((await post(createBody(texts))).status).toBe(200);
      const stored = sentMessages(producer).flatMap(({ properties, traits }) => [properties, traits]);
      expect(stored).toHaveLength(2 * texts.length);
      expect(await readWithClickHouse(stored)).toEqual(stored.map(() => FOUND));
    }),
    { numRuns: runsOf({ quick: 6, all: 20 }) },
  );
});

it.each([
  ['an integer beyond 64 bits', '"wei":20000000000000000000', '"wei":"20000000000000000000"'],
  ['the largest and smallest 64-bit integers', '"a":[18446744073709551615,-9223372036854775808]', null],
  [
    'the next larger and smaller integers',
    '"a":[18446744073709551616,-9223372036854775809]',
    '"a":["18446744073709551616","-9223372036854775809"]',
  ],
  ['numbers too large for a double', '"a":1e400,"b":-1E+400,"c":1e308', '"a":"1e400","b":"-1E+400","c":1e308'],
  [
    'lone surrogates in a key and in a value',
    '"\\ud83c":"a\\udf00","b":"\\ud83c\\udf00"',
    '"\\ufffd":"a\\ufffd","b":"\\ud83c\\udf00"',
  ],
  ['a string that only looks like an escape and a number', '"a":"\\\\ud83c 20000000000000000000"', null],
])('ClickHouse can read %s, and other JSON is stored unchanged', async (_name, sent, stored) => {
  const { post, producer } = await openGateway();
  expect((await post(createBody([withProbe(sent), '{ "a" : 1.0 }']))).status).toBe(200);
  const [first, second] = sentMessages(producer);
  expect([first?.properties, first?.traits]).toEqual(Array(2).fill(withProbe(stored ?? sent)));
  expect(second?.properties).toBe('{ "a" : 1.0 }');
  expect(await readWithClickHouse([String(first?.properties)])).toEqual([FOUND]);
});

it.each(['"probe":"first","probe":"here"', '"probe":"first","a":{"probe":1},"pro\\u0062e":"here"'])(
  'ClickHouse reads the last of the duplicate keys in {%s}',
  async (members) => {
    const { post, producer } = await openGateway();
    expect((await post(createBody([`{${members}}`]))).status).toBe(200);
    const [stored] = sentMessages(producer);
    expect(await readWithClickHouse([stored!.properties, stored!.traits])).toEqual([FOUND, FOUND]);
  },
);
