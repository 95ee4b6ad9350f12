import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { findInvalidSettings, ignoredSettingsSentence, start } from './commands/start.ts';
import { up } from './commands/up.ts';
import { storeEnvironment } from './store-environment.ts';
import { testStackPaths } from './test/paths.ts';

test('ignoredSettingsSentence lists the variables that the stack sets itself, without values', async () => {
  const paths = testStackPaths();
  const environment = {
    CLICKHOUSE_PASSWORD: 'wrong',
    HTTP_PORT: '80',
    LOG_LEVEL: 'warn',
    KAFKA_HOME: '/opt/kafka',
    PATH: '/bin',
  };
  expect(await ignoredSettingsSentence(paths, environment)).toBe(
    'ignored, because the stack sets them itself: CLICKHOUSE_PASSWORD, HTTP_PORT (ports: PLAYLINE_<NAME>_PORT)',
  );
  expect(await ignoredSettingsSentence(paths, { CLICKHOUSE_PASSWORD: 'wrong' })).toBe(
    'ignored, because the stack sets them itself: CLICKHOUSE_PASSWORD',
  );
  expect(await ignoredSettingsSentence(paths, { LOG_LEVEL: 'warn', REDIS_URL: '' })).toBeNull();
});

test('findInvalidSettings returns one line per invalid setting of any service, without the value', async () => {
  const environment = { BLOCK_ROWS_MAX: 'lots', LOG_LEVEL: 'shout', PLAYLINE_KAFKA_PORT: 'eleven' };
  const errors = await findInvalidSettings(testStackPaths(), environment);
  expect(errors).toEqual([
    expect.stringMatching(/^PLAYLINE_KAFKA_PORT must be a port/),
    expect.stringMatching(/^LOG_LEVEL: /),
    expect.stringMatching(/^BLOCK_ROWS_MAX: /),
  ]);
  expect(errors.join()).not.toMatch(/lots|shout|eleven/);
});

test('findInvalidSettings accepts valid settings and does not check ignored settings', async () => {
  const ignored = { KAFKA_BROKERS: 'rubbish', HTTP_PORT: 'x', KAFKA_TLS: 'perhaps' };
  const environment = { BLOCK_ROWS_MAX: '5000', LOG_LEVEL: 'warn', ...ignored };
  expect(await findInvalidSettings(testStackPaths(), environment)).toEqual([]);
});

test('findInvalidSettings refuses the data of another number of nodes', async () => {
  const paths = testStackPaths();
  const errorsFor = (cluster: boolean) => findInvalidSettings(paths, {}, { cluster });
  mkdirSync(join(paths.state, 'data', 'kafka'), { recursive: true });
  expect(await errorsFor(false)).toEqual([]);
  expect(await errorsFor(true)).toEqual([
    expect.stringMatching(/kafka was created by 1 node instead of 3. Omit --cluster, or /),
  ]);
  for (const name of ['kafka-2', 'kafka-3']) mkdirSync(join(paths.state, 'data', name));
  expect(await errorsFor(true)).toEqual([]);
  expect(await errorsFor(false)).toEqual([
    expect.stringMatching(/kafka was created by 3 nodes instead of 1. Pass --cluster, or /),
  ]);
});

test('stores receive only general environment variables and no service settings', () => {
  const environment = {
    PATH: '/bin',
    LC_ALL: 'C',
    TZ: 'UTC',
    LOG_LEVEL: 'shout',
    REGISTRY_AUTH: 'on',
    KAFKA_OPTS: '-x',
  };
  expect(storeEnvironment(environment)).toEqual({ PATH: '/bin', LC_ALL: 'C', TZ: 'UTC' });
});

test.each([
  ['up', up],
  ['start', start],
])(
  'npm run %s with an invalid setting or service returns 2, prints the error, and starts nothing',
  async (_, command) => {
    vi.stubEnv('BLOCK_ROWS_MAX', 'lots');
    vi.stubEnv('CLICKHOUSE_PASSWORD', 'wrong');
    const [out, err] = (['log', 'error'] as const).map((level) =>
      vi.spyOn(console, level).mockImplementation(() => {}),
    );
    onTestFinished(() => {
      vi.unstubAllEnvs();
      for (const spy of [out!, err!]) spy.mockRestore();
    });
    const paths = testStackPaths();
    expect(await command(paths, [])).toBe(2);
    expect([out!.mock.calls, err!.mock.calls]).toEqual([[], [[expect.stringMatching(/^BLOCK_ROWS_MAX: /)]]]);
    vi.stubEnv('BLOCK_ROWS_MAX', '5000');
    expect(await command(paths, ['--services', 'eraser,erasers'])).toBe(2);
    expect(err!.mock.lastCall).toEqual([expect.stringContaining('there is no service erasers, only gateway, ')]);
    expect(readdirSync(paths.state)).toEqual([]);
  },
);
