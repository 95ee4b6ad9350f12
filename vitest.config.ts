import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Long tests, which only `npm run test:all` runs (test/README.md). */
const LONG = '{packages,services,infra,test}/**/*.long.test.ts';
/** Long tests that share a browser. */
const PORTAL = 'test/portal/**/*.long.test.ts';
const RUNS_ALL = process.env.PLAYLINE_TEST_ALL !== undefined;

export default defineConfig({
  test: {
    globalSetup: ['packages/testkit/src/global-setup.ts'],
    // Twice the time limit of `until`, whose message names what is missing.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // More workers than cores, because tests wait for stores and browsers in a sixth of their time (long: a fifth).
    // At most four workers share one Kafka.
    maxWorkers: Number(process.env.PLAYLINE_TEST_WORKERS ?? Math.min(availableParallelism() + (RUNS_ALL ? 2 : 1), 4)),
    // There are more processes than cores, so garbage collection threads would slow down other tests. In alternating
    // runs of a third of the portal's tests, V8's threads used 3.4 and 3.2 instead of 4.7 and 5.2 of 32 CPU-seconds.
    execArgv: ['--single-threaded-gc'],
    // Test files share a process, because a process per file costs up to two CPU-seconds, mostly to load store clients.
    // Files must close what they open. Shared modules must not register hooks, because these would apply only to the
    // first file that imports the module. Long tests kill and measure processes, so each file has its own process.
    projects: [
      {
        extends: true,
        test: {
          name: 'shared process',
          isolate: false,
          include: ['{packages,services,infra,test}/**/*.test.ts'],
          exclude: ['**/node_modules/**', LONG],
        },
      },
      {
        extends: true,
        test: { name: 'own process', include: RUNS_ALL ? [LONG] : [], exclude: ['**/node_modules/**', PORTAL] },
      },
      { extends: true, test: { name: 'shared browser', isolate: false, include: RUNS_ALL ? [PORTAL] : [] } },
    ],
  },
});
