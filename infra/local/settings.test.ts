import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { configMistakes, leftOutSentence } from './commands/start.ts';
import { CHECKOUT } from './paths.ts';
import { storeEnvironment } from './store-environment.ts';
import { testStackPaths } from './test/paths.ts';

test('variables that the stack sets itself are named in one line, without their values', async () => {
  const places = testStackPaths();
  const environment = {
    CLICKHOUSE_PASSWORD: 'wrong',
    HTTP_PORT: '80',
    LOG_LEVEL: 'warn',
    KAFKA_HOME: '/opt/kafka',
    PATH: '/bin',
  };
  const sentence = await leftOutSentence(places, environment);
  expect(sentence).toBe(
    'left out, since the stack decides them itself: CLICKHOUSE_PASSWORD, HTTP_PORT (ports: PLAYLINE_<NAME>_PORT)',
  );
  expect(await leftOutSentence(places, { CLICKHOUSE_PASSWORD: 'wrong' })).toBe(
    'left out, since the stack decides them itself: CLICKHOUSE_PASSWORD',
  );
  expect(await leftOutSentence(places, { LOG_LEVEL: 'warn', REDIS_URL: '' })).toBeNull();
});

test('mistakes in settings of any service are one line each, without the value, before anything is started', async () => {
  const wrong = { BLOCK_ROWS_MAX: 'lots', LOG_LEVEL: 'shout', PLAYLINE_KAFKA_PORT: 'eleven' };
  const mistakes = await configMistakes(testStackPaths(), wrong);
  expect(mistakes).toEqual([
    expect.stringMatching(/^PLAYLINE_KAFKA_PORT must be a port/),
    expect.stringMatching(/^LOG_LEVEL: /),
    expect.stringMatching(/^BLOCK_ROWS_MAX: /),
  ]);
  expect(mistakes.join()).not.toMatch(/lots|shout|eleven/);
});

test('valid settings, and settings of another deployment, which the stack ignores, are no mistakes', async () => {
  const right = {
    BLOCK_ROWS_MAX: '5000',
    LOG_LEVEL: 'warn',
    KAFKA_BROKERS: 'rubbish',
    HTTP_PORT: 'x',
    KAFKA_TLS: 'perhaps',
  };
  expect(await configMistakes(testStackPaths(), right)).toEqual([]);
});

test('stores get only variables that any program needs, and no setting of a service', () => {
  const given = { PATH: '/bin', LC_ALL: 'C', TZ: 'UTC', LOG_LEVEL: 'shout', REGISTRY_AUTH: 'on', KAFKA_OPTS: '-x' };
  expect(storeEnvironment(given)).toEqual({ PATH: '/bin', LC_ALL: 'C', TZ: 'UTC' });
});

test.each(['up', 'start'])(
  '%s with a wrong setting ends with 2, prints only the mistake, and starts nothing',
  (command) => {
    const { state } = testStackPaths();
    const env = { PATH: process.env.PATH, PLAYLINE_ROOT: state, BLOCK_ROWS_MAX: 'lots', CLICKHOUSE_PASSWORD: 'wrong' };
    const ran = spawnSync(process.execPath, [join(CHECKOUT, 'infra/local/main.ts'), command], {
      env,
      encoding: 'utf8',
    });
    expect(ran.stderr).toMatch(/^BLOCK_ROWS_MAX: .*\n$/);
    expect([ran.stdout, ran.status]).toEqual(['', 2]);
    expect(readdirSync(state)).toEqual([]);
  },
);
