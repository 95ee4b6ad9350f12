import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openRedisDatabase, type RedisDatabase } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EXIT } from './command-table.mjs';
import { openIdentities } from './deployment.ts';
import { testStackPaths } from './test/paths.ts';

let redis: RedisDatabase;
beforeAll(async () => {
  redis = await openRedisDatabase();
});
afterAll(() => redis.close());

/** Opens the identities of an empty Redis with an operator command that fails. */
function openWith(exitCode: number, message: string) {
  const paths = testStackPaths();
  const main = join(paths.state, 'services/operator/src/main.ts');
  mkdirSync(dirname(main), { recursive: true });
  writeFileSync(main, `process.stderr.write(${JSON.stringify(message)}); process.exitCode = ${exitCode};`);
  return openIdentities({ ...paths, checkout: paths.state }, { env: {}, redis });
}

it('reports a Redis that lost its data when the operator command refuses to initialise it', async () => {
  expect(await openWith(EXIT.emptied, 'identity: consents hold data')).toBe('lost');
});

it('fails with the message of the operator command on any other failure, without a report of lost data', async () => {
  for (const code of [EXIT.failed, EXIT.unreachable])
    await expect(openWith(code, 'identity: a partition has no leader')).rejects.toThrow('a partition has no leader');
});
