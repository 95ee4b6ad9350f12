import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openRedisDatabase, type RedisDatabase } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EXIT } from './command-table.mjs';
import { initIdentityGraph } from './deployment.ts';
import { testStackPaths } from './test/paths.ts';

let redis: RedisDatabase;
beforeAll(async () => {
  redis = await openRedisDatabase();
});
afterAll(() => redis.close());

function initWith(exitCode: number, message: string) {
  const paths = testStackPaths();
  const main = join(paths.state, 'services/operator/src/main.ts');
  mkdirSync(dirname(main), { recursive: true });
  writeFileSync(main, `process.stderr.write(${JSON.stringify(message)}); process.exitCode = ${exitCode};`);
  return initIdentityGraph({ ...paths, checkout: paths.state }, { env: {}, redis: { redis: redis.url } });
}

it('initIdentityGraph reports lost data when the operator command refuses to initialise Redis', async () => {
  expect(await initWith(EXIT.emptied, 'identity: consents hold data')).toBe('lost');
});

it('initIdentityGraph fails with the message of the operator command on any other failure', async () => {
  for (const code of [EXIT.failed, EXIT.unreachable])
    await expect(initWith(code, 'identity: a partition has no leader')).rejects.toThrow('a partition has no leader');
});
