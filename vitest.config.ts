import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/**
 * Files of tests that share a process: a process of its own costs each half a second of a core. They are those without
 * stores, and those of the portal, which also share a browser. What they open they close, and what they load has no hooks
 * of its own, because hooks of a shared module would be those of its first user alone.
 */
const WITHOUT_STORES = '{packages,services}/**/!(*.integration|*.long).test.ts';
const OF_PORTAL = [
  'services/portal/src/**/*.test.ts',
  'test/portal/**/*.test.ts',
  'test/portal-live.test.ts',
  'infra/clickhouse/portal.integration.test.ts',
];
const SHARING = [WITHOUT_STORES, ...OF_PORTAL];

/** Long campaigns. `npm test` leaves them out, `npm run test:all` runs them too: README.md of test says what is long. */
const LONG = '**/*.long.test.ts';
const LEFT_OUT = process.env.PLAYLINE_TEST_ALL === undefined ? ['**/node_modules/**', LONG] : ['**/node_modules/**'];

export default defineConfig({
  test: {
    globalSetup: ['packages/testkit/src/global-setup.ts'],
    // Twice what `until` waits: its words name what did not come.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // One more than two cores, because tests wait for stores and browsers a sixth of their time. Four at most share one Kafka.
    maxWorkers: Number(process.env.PLAYLINE_TEST_WORKERS ?? Math.min(availableParallelism() + 1, 4)),
    // There are more processes than cores, so threads that collect garbage beside a test take time from others. Measured with
    // a third of the portal's tests, in turn: V8's threads 4.7 and 5.2 -> 3.4 and 3.2 of 32 CPU-seconds.
    execArgv: ['--single-threaded-gc'],
    projects: [
      {
        extends: true,
        test: {
          name: 'own process',
          include: ['packages/**/*.test.ts', 'services/**/*.test.ts', 'infra/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [...LEFT_OUT, ...SHARING],
        },
      },
      { extends: true, test: { name: 'shared process', isolate: false, include: SHARING, exclude: LEFT_OUT } },
    ],
  },
});
