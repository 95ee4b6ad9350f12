import type { MintRow } from '@playline/mints';
import { openMintWriter } from '@playline/mints/clickhouse';
import { openRedisMints } from '@playline/mints/redis';
import { type OwnStores, openOwnStores, openRedisDatabase, type RedisDatabase } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runMain } from '../test/run-main.ts';
import { runProgram } from '../test/run-program.ts';
import { FAILED as row } from './test/mint-state.ts';

const START_MS = 120_000;
const logged = { updatedAt: 1, partition: 0, offset: 0, loggedAtMs: 1_764_000_000_000 };

let own: OwnStores;
let redis: RedisDatabase;
beforeAll(async () => {
  own = await openOwnStores();
  redis = await openRedisDatabase();
  const { CLICKHOUSE_URL: url = '', CLICKHOUSE_USER: user = '', CLICKHOUSE_PASSWORD: password = '' } = own.environment;
  const writer = openMintWriter({ url, user, password, database: own.database });
  const { signal } = new AbortController();
  // The row of an earlier revision exists too, until a merge.
  const rows: MintRow[] = [
    { ...row, ...logged, metadata: null, revision: 1, status: 'pending', error: null },
    { ...row, ...logged, metadata: null },
  ];
  await writer.insert({ table: 'mint_requests', rows, token: 'a', signal });
  await writer.close();
}, START_MS);
afterAll(async () => {
  await redis.close();
  await own.close();
}, START_MS);

const environment = () => ({ ...own.environment, REDIS_URL: redis.url });
const mints = (...args: string[]) => runProgram(environment(), ['mints', ...args]);
const OF_COLLECTION = ['--chain', 'demo-chain', '--contract', row.contractAddress];

it('mints list and show report the result of an asset, and rebuild restores it in an emptied Redis', async () => {
  const { out } = await runMain(environment(), ['mints', 'list', ...OF_COLLECTION, '--json']);
  expect(
    out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([row]);
  expect((await mints('list', ...OF_COLLECTION, '--status', 'pending')).out).toBe('');
  expect((await mints('show', ...OF_COLLECTION, '--project', 'demo', '--reference', 'sword')).out).toContain(
    'failed (settled)  sword',
  );
  const unknown = await mints('show', ...OF_COLLECTION, '--project', 'demo', '--reference', 'axe');
  expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining('no mint request axe')]);
  expect((await mints('show', ...OF_COLLECTION)).code).toBe(2);
  const signers = await mints('signers', '--json');
  expect(JSON.parse(signers.out)).toMatchObject({ chain: 'demo-chain', signer: row.signer, failed: 1, pending: 0 });
  const rebuilt = await mints('rebuild', '--json');
  expect(JSON.parse(rebuilt.out)).toEqual({ kind: 'mints', rows: 1, records: 0 });
  const opened = await openRedisMints({ url: redis.url });
  expect(await opened.claims.read(row, 'sword')).toEqual({ isComplete: true, state: row });
  await opened.close();
});
