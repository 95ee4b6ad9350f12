// Contract, table "Message", row eventTimestamp; ingest: rows eventTimestamp, Time window, RFC 3339 details.
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, expectAccepted, expectRejected, track } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway();
}, START_MAX_MS);
afterAll(() => client.close());

const today = new Date().toISOString().slice(0, 10);
const at = (offsetMs: number) => track({ eventTimestamp: new Date(Date.now() + offsetMs).toISOString() });
const DAY_MS = 86_400_000;
/** Longer than a request takes, so that the test is certainly on one side of a bound. */
const MARGIN_MS = 30_000;

it.each([
  'T00:00:00Z',
  'T00:00:00z',
  't00:00:00Z',
  'T00:00:00.1Z',
  'T00:00:00.123Z',
  'T00:00:00.1234567Z',
  'T00:00:00.123456789Z',
  'T00:00:00+00:00',
  'T00:00:00.5-00:00',
  'T02:00:00+14:00',
  'T00:00:00-11:59',
])('an eventTimestamp in RFC 3339 with Z or an offset and 0 to 9 fractional digits is accepted: %s', async (rest) => {
  expectAccepted(await client.send(track({ eventTimestamp: today + rest })));
});

it.each([
  `${today}`,
  `${today} 00:00:00Z`,
  `${today}T00:00:00`,
  `${today}T00:00Z`,
  `${today}T00:00:00.Z`,
  `${today}T00:00:00.1234567890Z`,
  `${today}T00:00:00+0000`,
  `${today}T00:00:00+24:00`,
  `${today}T00:00:00+00:60`,
  `${today}T24:00:00Z`,
  `${today}T00:60:00Z`,
  `${today}T23:59:60Z`,
  `${today}T00:00:00Z `,
  '2026-02-30T00:00:00Z',
  '2026-13-01T00:00:00Z',
  '2026-00-10T00:00:00Z',
  '2025-02-29T00:00:00Z',
  'yesterday',
  '1732184000',
  '١٢٣٤-01-01T00:00:00Z',
])('an eventTimestamp in anything else is INVALID_FORMAT: %s', async (eventTimestamp) => {
  expectRejected(await client.send(track({ eventTimestamp })), 'INVALID_FORMAT eventTimestamp');
});

it.each([undefined, null, '', ' '])(
  'an eventTimestamp in missing, null or blank (%j): MISSING_REQUIRED_FIELD',
  async (eventTimestamp) => {
    expectRejected(await client.send(track({ eventTimestamp })), 'MISSING_REQUIRED_FIELD eventTimestamp');
  },
);

it('an eventTimestamp in a number: INVALID_FORMAT', async () => {
  expectRejected(await client.send(track({ eventTimestamp: Date.now() })), 'INVALID_FORMAT eventTimestamp');
});

it('an eventTimestamp up to 30 days old and up to 24 h ahead is accepted', async () => {
  expectAccepted(await client.send(at(-30 * DAY_MS + MARGIN_MS), at(DAY_MS - MARGIN_MS)), 2);
});

it('an eventTimestamp older than 30 days: INVALID_VALUE on eventTimestamp', async () => {
  expectRejected(await client.send(at(-30 * DAY_MS - MARGIN_MS)), 'INVALID_VALUE eventTimestamp');
});

it('an eventTimestamp more than 24 h ahead: INVALID_VALUE on eventTimestamp', async () => {
  expectRejected(await client.send(at(DAY_MS + MARGIN_MS)), 'INVALID_VALUE eventTimestamp');
});

it('an eventTimestamp the offset counts: the same wall clock is inside with one offset and outside with another', async () => {
  const wall = new Date(Date.now() + DAY_MS + 2 * 3_600_000).toISOString().slice(0, 19);
  expectAccepted(await client.send(track({ eventTimestamp: `${wall}+03:00` })));
  expectRejected(await client.send(track({ eventTimestamp: `${wall}+00:00` })), 'INVALID_VALUE eventTimestamp');
});

describe('time window as a setting', () => {
  let narrow: Client & ConformanceGateway;
  beforeAll(async () => {
    narrow = await startGateway({ EVENT_AGE_MAX_MS: '0', EVENT_AHEAD_MAX_MS: '0' });
  }, START_MAX_MS);
  afterAll(() => narrow.close());

  it('both bounds are inclusive: of a window without width, exactly the millisecond of the server is accepted', async () => {
    let turn = 0;
    const answer = await until(
      'a message meets the very millisecond',
      async () => {
        // Aimed further ahead turn by turn, for a server that takes longer than a batch spans.
        const fromMs = Date.now() + 100 * (turn++ % 6);
        const { body } = await narrow.send(
          ...Array.from({ length: 100 }, (_, ms) => track({ eventTimestamp: new Date(fromMs + ms).toISOString() })),
        );
        return body.accepted > 0 ? body : null;
      },
      50_000,
    );
    expect(answer).toMatchObject({ accepted: 1, rejected: 99 });
  });

  it('both bounds are settings', async () => {
    expectRejected(await narrow.send(at(-MARGIN_MS)), 'INVALID_VALUE eventTimestamp');
    expectRejected(await narrow.send(at(MARGIN_MS)), 'INVALID_VALUE eventTimestamp');
  });
});
