import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ColumnsFixture, openColumnsFixture } from './test/columns-fixture.ts';

/** JSON values, and how a column of each type reads them; types not listed find no valid value. */
const VALUES: readonly { json: string | null; reads?: Readonly<Record<string, string>> }[] = [
  { json: '5', reads: { Int64: '5', Float64: '5' } },
  { json: '5.0', reads: { Int64: '5', Float64: '5' } },
  { json: '-7.25', reads: { Float64: '-7.25' } },
  { json: '1e3', reads: { Int64: '1000', Float64: '1000' } },
  { json: '9223372036854775807', reads: { Int64: '9223372036854775807', Float64: '9223372036854776000' } },
  { json: '9223372036854775808', reads: { Float64: '9223372036854776000' } },
  { json: '"5"', reads: { String: '5' } },
  { json: '"a \\"b\\" \\u00e9 🎮"', reads: { String: 'a "b" é 🎮' } },
  { json: '""', reads: { String: '' } },
  { json: 'true', reads: { Bool: 'true' } },
  { json: 'false', reads: { Bool: 'false' } },
  { json: 'null' },
  { json: '[5]' },
  { json: '{"v":5}' },
  { json: '"2026-01-02T03:04:05.678Z"', reads: time('2026-01-02T03:04:05.678Z', '2026-01-02 03:04:05.678') },
  { json: '"2026-01-02T03:04:05+02:00"', reads: time('2026-01-02T03:04:05+02:00', '2026-01-02 01:04:05.000') },
  { json: '"2026-01-02"', reads: time('2026-01-02', '2026-01-02 00:00:00.000') },
  { json: '"2026-13-45T00:00:00Z"', reads: { String: '2026-13-45T00:00:00Z' } },
  { json: '"12"', reads: { String: '12' } },
  { json: null },
];

function time(output: string, kept: string) {
  return { String: output, DateTime: kept };
}

/** A column with the type whose values it reads, a default, and how that is shown. */
const COLUMNS = [
  { name: 'i', type: 'Int64', reading: 'Int64', fallback: '-9', shown: '-9' },
  { name: 'f', type: 'Float64', reading: 'Float64', fallback: '0.5', shown: '0.5' },
  { name: 's', type: 'String', reading: 'String', fallback: "it's \\ none", shown: "it's \\ none" },
  { name: 'l', type: 'LowCardinality(String)', reading: 'String', fallback: '', shown: '' },
  { name: 'b', type: 'Bool', reading: 'Bool', fallback: 'false', shown: 'false' },
  { name: 't', type: 'DateTime', reading: 'DateTime', fallback: '2020-01-01', shown: '2020-01-01 00:00:00.000' },
] as const;

let fixture: ColumnsFixture;
const events = (environmentId: string) =>
  VALUES.map(({ json }, index) => ({
    environmentId,
    name: `event ${String(index).padStart(2, '0')}`,
    properties: json === null ? (index % 2 === 0 ? '' : '{"other":1}') : `{"other":{"v":0},"deep":{"v":${json}}}`,
  }));

/** All values of a column over the events, in their order; null for NULL. */
const read = async (column: string, environmentId: string) => {
  const answer = await fixture.query(`SELECT groupArray([toString(isNull(${column})), ifNull(toString(${column}), '')])
    FROM (SELECT ${column} FROM events_identified WHERE environment_id = '${environmentId}' ORDER BY event_name)
    FORMAT JSONCompactEachRow`);
  const [values] = JSON.parse(answer) as [[string, string][]];
  return values.map(([isNull, value]) => (isNull === '1' ? null : value));
};
const expected = (reading: string, none: string | null) => VALUES.map(({ reads }) => reads?.[reading] ?? none);

beforeAll(async () => {
  fixture = await openColumnsFixture();
  await fixture.put(events('before'));
});
afterAll(() => fixture.close());

it.each(COLUMNS)(
  'the values of a property column $type: the value where it is of that type, NULL or the default where it is absent or of another; the same before and ' +
    'after the backfill, and for rows that come',
  async ({ name, type, reading, fallback, shown }) => {
    const args = (column: string) => ['add', '--name', column, '--path', 'deep.v', '--type', type];
    const nullable = args(`${name}_null`);
    const plain = [...args(`${name}_default`), `--default=${fallback}`];
    const check = async (environmentId: string) => {
      expect(await read(`property_${name}_null`, environmentId)).toEqual(expected(reading, null));
      expect(await read(`property_${name}_default`, environmentId)).toEqual(expected(reading, shown));
    };
    await fixture.whileNothingIsWritten(async () => {
      for (const each of [nullable, plain]) expect((await fixture.run(each, { stopAt: /^backfill: / })).code).toBe(1);
      await check('before');
    });
    for (const each of [nullable, plain]) expect((await fixture.run(each)).code).toBe(0);
    await check('before');
    await fixture.put(events(`after ${name}`));
    await check(`after ${name}`);
  },
);

it('the values of a property column are found by members with any name: dots, quotes, backslashes, other scripts', async () => {
  const names = ['a.b', "it's", 'back\\slash', 'レベル', '"', '0'];
  const properties = JSON.stringify(names.reduce<unknown>((inner, name) => ({ [name]: inner }), 7));
  await fixture.put([{ environmentId: 'odd', properties }]);
  const path = names
    .map((name) => name.replaceAll('\\', '\\\\').replaceAll('.', '\\.'))
    .toReversed()
    .join('.');
  expect((await fixture.run(['add', '--name', 'odd', '--path', path, '--type', 'Int64'])).code).toBe(0);
  expect(await read('property_odd', 'odd')).toEqual(['7']);
  expect(await fixture.list()).toContainEqual(expect.objectContaining({ name: 'odd', path }));
});
