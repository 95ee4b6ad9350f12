import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ErasureRequest } from '@playline/erasure';
import { openErasureRecords } from '@playline/erasure/clickhouse';
import { bareEnvironment, openOwnDatabase } from '@playline/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';

const HEAP_MAX_MB = 250;
const RESIDENT_MAX_MB = 400;
/** Must be recent because a request's links expire after thirty days. */
const T = Date.now() - 60_000;
const pairsOf = (identities: number) => (identities * (identities - 1)) / 2;

let database: Awaited<ReturnType<typeof openOwnDatabase>>;
beforeEach(async () => {
  database = await openOwnDatabase();
});
afterEach(() => database.close());

/** Adds people whose identities are all linked with each other. @returns the first three identities per person */
async function addPeople(environment: string, people: number, identities: number): Promise<Buffer[][]> {
  const key = (person: string, at: string) =>
    `substring(MD5(concat('${environment}', toString(${person} * 10000 + ${at}))), 1, 16)`;
  const time = `fromUnixTimestamp64Milli(${T - 1_000})`;
  await database.query(
    `INSERT INTO identity_links (environment_id, message_id, link, outcome, a_kind, b_kind, a_key, b_key, event_time, received_at,
       link_generation, link_partition, link_offset)
     SELECT '${environment}', generateUUIDv4(), 'alias', 'unchanged', 'custom', 'custom', ${key('p.number', 'a.number')},
       ${key('p.number', 'b.number')}, ${time}, ${time}, 0, 0, (p.number * ${identities} + a.number) * ${identities} + b.number
     FROM numbers(${people}) AS p CROSS JOIN numbers(${identities}) AS a CROSS JOIN numbers(${identities}) AS b
     WHERE a.number < b.number`,
  );
  const firsts = `arrayMap(at -> lower(hex(${key('number', 'at')})), range(3))`;
  const rows = (await database.query(`SELECT ${firsts} FROM numbers(${people}) FORMAT JSONCompactEachRow`))
    .trim()
    .split('\n');
  return rows.map((row) => (JSON.parse(row)[0] as string[]).map((hex) => Buffer.from(hex, 'hex')));
}

const createRequest = (environmentId: string, key: Buffer): ErasureRequest => ({
  erasureId: randomBytes(16),
  environmentId,
  subjectKeys: [key],
  memberKeys: [],
  cutoffAt: T,
  requestedAt: T - 2_000,
  traceId: 'a'.repeat(32),
});

/** The test takes two minutes on an idle machine. */
const RUN_MAX_MS = 600_000;

it(
  'requests for a person with 700 identities and ten people with 140 complete within a heap of 250 MB',
  async () => {
    const [heavy, people, light] = [700, 10, 140];
    const records = openErasureRecords(database.target);
    const [heavyKeys] = await addPeople('many', 1, heavy);
    const lightKeys = await addPeople('light', people, light);
    await records.addRequests([
      ...heavyKeys!.map((key) => createRequest('many', key)),
      ...lightKeys.map(([key]) => createRequest('light', key!)),
    ]);
    const program = fileURLToPath(new URL('test/erase-once.ts', import.meta.url));
    const env = { ...bareEnvironment(), CLICKHOUSE_TARGET: JSON.stringify(database.target) };
    // The options of a deployment, but with a smaller heap.
    const options = [`--max-old-space-size=${HEAP_MAX_MB}`, '--max-semi-space-size=8', program];
    const { stdout } = await promisify(execFile)(process.execPath, options, { env });
    const done = JSON.parse(stdout);
    const identities = [...Array(3).fill(heavy), ...Array(people).fill(light)];
    expect(done).toMatchObject({ receipts: 3 + people, identities });
    expect(done.peakMb, stdout).toBeLessThan(RESIDENT_MAX_MB);
    expect(await records.readUnfinished()).toEqual([]);
    expect(await database.query("SELECT count() FROM identity_links WHERE environment_id IN ('many', 'light')")).toBe(
      '0',
    );
    const links = `SELECT sum(length(links)) FROM erasure_requests FINAL WHERE environment_id IN ('many', 'light')`;
    expect(await database.query(links)).toBe(String(pairsOf(heavy) + 2 + people * pairsOf(light)));
    await records.close();
  },
  RUN_MAX_MS,
);
