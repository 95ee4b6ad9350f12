import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { openErasureRecords } from '@playline/erasure/clickhouse';
import { bareEnvironment, openOwnDatabase } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';

/** 775 identities have 299,925 pairs. */
const IDENTITIES = 775;
const HEAP_MAX_MB = 250;
const RESIDENT_MAX_MB = 400;
/** Links of a request are kept for thirty days. */
const T = Date.now() - 60_000;

let own: Awaited<ReturnType<typeof openOwnDatabase>>;
beforeAll(async () => {
  own = await openOwnDatabase();
});
afterAll(() => own.close());

/** A minute on an idle machine. */
const RUN_MAX_MS = 600_000;

it('three requests about a person with 300,000 links are done together, in a heap of 250 MB', {
  timeout: RUN_MAX_MS,
}, async () => {
  const key = (at: string) => `substring(MD5(toString(${at})), 1, 16)`;
  await own.query(
    `INSERT INTO identity_links (environment_id, message_id, link, outcome, a_kind, b_kind, a_key, b_key, event_time, received_at,
       link_generation, link_partition, link_offset)
     SELECT 'many', generateUUIDv4(), 'alias', 'unchanged', 'custom', 'custom', ${key('a.number')}, ${key('b.number')},
       fromUnixTimestamp64Milli(${T - 1_000}), fromUnixTimestamp64Milli(${T - 1_000}), 0, 0, a.number * ${IDENTITIES} + b.number
     FROM numbers(${IDENTITIES}) AS a CROSS JOIN numbers(${IDENTITIES}) AS b WHERE a.number < b.number`,
  );
  const records = openErasureRecords(own.target);
  const keys = (await own.query(`SELECT lower(hex(${key('number')})) FROM numbers(3) FORMAT TSV`)).trim().split('\n');
  await records.addRequests(
    keys.map((hex) => ({
      erasureId: randomBytes(16),
      environmentId: 'many',
      subjectKeys: [Buffer.from(hex, 'hex')],
      memberKeys: [],
      cutoffAt: T,
      requestedAt: T - 2_000,
      traceId: 'a'.repeat(32),
    })),
  );
  const program = fileURLToPath(new URL('test/erase-once.ts', import.meta.url));
  const environment = { ...bareEnvironment(), CLICKHOUSE_TARGET: JSON.stringify(own.target) };
  // As in a deployment, with a smaller heap.
  const options = [`--max-old-space-size=${HEAP_MAX_MB}`, '--max-semi-space-size=8', program];
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, options, {
    env: environment,
  });
  const done = JSON.parse(stdout);
  expect(done).toMatchObject({ receipts: 3, identities: [IDENTITIES, IDENTITIES, IDENTITIES] });
  expect(done.peakMb, stdout).toBeLessThan(RESIDENT_MAX_MB);
  expect(await records.readUnfinished()).toEqual([]);
  expect(await own.query("SELECT count() FROM identity_links WHERE environment_id = 'many'")).toBe('0');
  expect(await own.query("SELECT sum(length(links)) FROM erasure_requests FINAL WHERE environment_id = 'many'")).toBe(
    String((IDENTITIES * (IDENTITIES - 1)) / 2 + 2),
  );
  await records.close();
});
