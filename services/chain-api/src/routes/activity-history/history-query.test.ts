import { MICROSECONDS_MAX, NO_FILTERS, START_GAP } from '@playline/chain';
import { toTimestamp } from '@playline/contracts';
import { codePoint } from '@playline/testkit/code-point';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type FindPosition, parseHistoryQuery } from './handler.ts';

const ADDRESS = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const NOON = '2026-11-22T12:00:00.000000Z';
const NOON_US = Date.UTC(2026, 10, 22, 12) * 1000;
const findNothing: FindPosition = () => null;
const parse = (query: string, findPosition = findNothing) =>
  parseHistoryQuery(`/v1/chains/c/activity-history?${query}`, findPosition);

function invalidIn(query: string, findPosition = findNothing): string[] {
  try {
    parse(query, findPosition);
    return [];
  } catch (fault) {
    const { code, details } = fault as { code: string; details: { errors: { field: string; message: string }[] } };
    expect(code).toBe('VALIDATION_ERROR');
    for (const { field, message } of details.errors) expect(message).toContain(field);
    return details.errors.map(({ field }) => field);
  }
}

it('a history query without known parameters requests the first 100 activities without filters', () => {
  for (const query of ['', 'page=2&from=x', '__proto__=1&constructor=2'])
    expect(parse(query)).toEqual({ filters: NO_FILTERS, limit: 100, direction: 'next', gap: START_GAP });
});

it('a history query parses all filters', () => {
  const query = new URLSearchParams({
    from_updated_at: NOON,
    to_updated_at: '2026-11-22T13:00:00.5Z',
    contract_address: ADDRESS,
    activity_type: 'sale',
    page_size: '200',
  });
  expect(parse(String(query))).toEqual({
    filters: {
      fromIndexedAt: NOON_US,
      toIndexedAt: NOON_US + 3600_500_000,
      contractAddress: ADDRESS.toLowerCase(),
      type: 'sale',
    },
    limit: 200,
    direction: 'next',
    gap: START_GAP,
  });
});

it.each([
  ['from_updated_at', 'from_indexed_at', 'fromIndexedAt'],
  ['to_updated_at', 'to_indexed_at', 'toIndexedAt'],
] as const)('%s and %s are aliases, and sending both is an error', (name, alias, member) => {
  expect(parse(`${name}=${NOON}`).filters[member]).toBe(NOON_US);
  expect(parse(`${alias}=${NOON}`)).toEqual(parse(`${name}=${NOON}`));
  expect(invalidIn(`${name}=${NOON}&${alias}=${NOON}`)).toEqual([name]);
});

it('a history query parses the timestamps of a response with microsecond precision', () => {
  fc.assert(
    fc.property(fc.nat(MICROSECONDS_MAX), (us) => {
      const { filters } = parse(`from_indexed_at=${toTimestamp(us)}&to_indexed_at=${toTimestamp(us)}`);
      expect([filters.fromIndexedAt, filters.toIndexedAt]).toEqual([us, us]);
    }),
  );
});

it('a bound with nanoseconds is rounded inward to microseconds', () => {
  fc.assert(
    fc.property(fc.nat(999_999_999), (nanos) => {
      const time = `2026-11-22T12:00:00.${String(nanos).padStart(9, '0')}Z`;
      const { fromIndexedAt, toIndexedAt } = parse(`from_indexed_at=${time}&to_indexed_at=${time}`).filters;
      expect(fromIndexedAt).toBe(NOON_US + Math.ceil(nanos / 1000));
      expect(toIndexedAt).toBe(NOON_US + Math.floor(nanos / 1000));
    }),
  );
});

it('a bound outside the supported time range is clamped', () => {
  const { filters } = parse('from_indexed_at=1950-01-01T00:00:00Z&to_indexed_at=9999-12-31T23:59:59Z');
  expect(filters).toMatchObject({ fromIndexedAt: -1, toIndexedAt: MICROSECONDS_MAX + 1 });
  expect(parse('to_indexed_at=1950-01-01T00:00:00Z').filters.toIndexedAt).toBe(-1);
});

it.each(['', '0', '201', '-1', '1.5', '1e2', '+7', '007', 'ten', '9999999999999999999', '%20', '1+'])(
  'page_size=%j is rejected',
  (size) => expect(invalidIn(`page_size=${size}`)).toEqual(['page_size']),
);

it.each(['1', '100', '200'])('page_size=%s is accepted', (size) => {
  expect(parse(`page_size=${size}`).limit).toBe(Number(size));
});

it.each([
  ['from_updated_at', ''],
  ['from_updated_at', '2026-11-22'],
  ['from_indexed_at', '2026-02-30T00:00:00Z'],
  ['to_updated_at', '2026-11-22T12:00:00'],
  ['to_indexed_at', '1763812800'],
  ['to_indexed_at', '2026-11-22T12:00:00+00:00'],
  ['contract_address', ''],
  ['contract_address', '0x12'],
  ['contract_address', `${ADDRESS}0`],
  ['contract_address', ADDRESS.slice(2)],
  ['contract_address', ADDRESS.replace('0x', '0X')],
  ['activity_type', ''],
  ['activity_type', 'Mint'],
  ['activity_type', 'toString'],
  ['page_cursor', ''],
  ['page_cursor', 'nonsense'],
])('%s=%s is rejected', (name, value) => expect(invalidIn(`${name}=${value}`)).toEqual([name]));

it.each(['from_updated_at', 'contract_address', 'activity_type', 'page_size', 'page_cursor'])(
  'a repeated %s parameter is rejected',
  (name) => expect(invalidIn(`${name}=1&${name}=1`)).toEqual([name]),
);

it('a history query reports every invalid parameter once', () => {
  expect(invalidIn('page_size=0&activity_type=x&contract_address=y&from_updated_at=z&to_indexed_at=w')).toEqual([
    'from_updated_at',
    'to_indexed_at',
    'contract_address',
    'activity_type',
    'page_size',
  ]);
});

it('a history query starts at the position of a cursor with matching filters', () => {
  const start = { direction: 'previous', gap: { side: 'before', updatedAt: 7, id: START_GAP.id } } as const;
  const findPosition: FindPosition = (text, filters) => (text === 'mine' && filters.type === 'mint' ? start : null);
  expect(parse('page_cursor=mine&activity_type=mint', findPosition)).toMatchObject(start);
  expect(invalidIn('page_cursor=mine', findPosition)).toEqual(['page_cursor']);
});

it('a history query does not check the cursor if the filters are invalid', () => {
  expect(invalidIn('page_cursor=x&activity_type=y')).toEqual(['activity_type']);
});

it('parsing an arbitrary history query either succeeds or fails with VALIDATION_ERROR', () => {
  const name = fc.constantFrom('from_updated_at', 'to_indexed_at', 'contract_address', 'page_size', 'page_cursor');
  fc.assert(
    fc.property(fc.array(fc.tuple(name, fc.string({ unit: codePoint })), { maxLength: 4 }), (pairs) => {
      try {
        parse(String(new URLSearchParams(pairs)));
      } catch (fault) {
        expect(fault).toMatchObject({ code: 'VALIDATION_ERROR' });
      }
    }),
  );
});
