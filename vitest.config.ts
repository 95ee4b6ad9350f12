import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Long tests, which only `npm run test:all` runs (test/README.md). */
const LONG = '{packages,services,infra,test}/**/*.long.test.ts';
/** Long tests that share a browser. */
const OF_PORTAL = 'test/portal/**/*.long.test.ts';
const RUNS_ALL = process.env.PLAYLINE_TEST_ALL !== undefined;

export default defineConfig({
  test: {
    globalSetup: ['packages/testkit/src/global-setup.ts'],
    // Twice the time limit of `until`, whose message names what is missing.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // More workers than cores, because tests wait for stores and browsers a sixth of their time, and long tests a fifth.
    // At most four share one Kafka.
    maxWorkers: Number(process.env.PLAYLINE_TEST_WORKERS ?? Math.min(availableParallelism() + (RUNS_ALL ? 2 : 1), 4)),
    // There are more processes than cores, so threads that collect garbage beside a test take time from others. Measured with
    // a third of the portal's tests, in turn: V8's threads 4.7 and 5.2 -> 3.4 and 3.2 of 32 CPU-seconds.
    execArgv: ['--single-threaded-gc'],
    // Files share a process: one of its own costs each up to two seconds of a core, mostly for loading clients of stores.
    // What they open they close, and what they load has no hooks of its own, because hooks of a shared module would be those
    // of its first user alone. Long tests kill and measure processes, so each has its own.
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
        test: { name: 'own process', include: RUNS_ALL ? [LONG] : [], exclude: ['**/node_modules/**', OF_PORTAL] },
      },
      { extends: true, test: { name: 'shared browser', isolate: false, include: RUNS_ALL ? [OF_PORTAL] : [] } },
    ],
  },
});
