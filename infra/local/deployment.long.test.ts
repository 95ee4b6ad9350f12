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

/** Opens the identities of an empty Redis with an operator that fails in this way. */
function openWith(exitCode: number, words: string) {
  const places = testStackPaths();
  const main = join(places.state, 'services/operator/src/main.ts');
  mkdirSync(dirname(main), { recursive: true });
  writeFileSync(main, `process.stderr.write(${JSON.stringify(words)}); process.exitCode = ${exitCode};`);
  return openIdentities({ ...places, checkout: places.state }, { env: {}, redis });
}

it('says that Redis has lost what it held when the operator refuses to take it for new', async () => {
  expect(await openWith(EXIT.emptied, 'identity: consents hold data')).toBe('lost');
});

it('fails with the words of the operator on any other failure: nobody is told to rebuild a Redis that lost nothing', async () => {
  for (const code of [EXIT.failed, EXIT.unreachable])
    await expect(openWith(code, 'identity: a partition has no leader')).rejects.toThrow('a partition has no leader');
});
