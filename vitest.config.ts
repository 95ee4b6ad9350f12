import { defineConfig } from 'vitest/config';

/** Tests of one module without stores. They leave nothing behind in their process, so they share one. */
const UNIT_TESTS = ['packages/**/*.test.ts', 'services/**/*.test.ts'];
const WITH_STORES = '**/*.integration.test.ts';
const TESTS = [...UNIT_TESTS, 'infra/**/*.test.ts', 'test/**/*.test.ts'];

export default defineConfig({
  test: {
    globalSetup: ['packages/testkit/src/global-setup.ts'],
    // Twice what `until` waits: its words name what did not come.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Two cores: more workers are quicker where tests wait, and make real stores answer later.
    maxWorkers: Number(process.env.PLAYLINE_TEST_WORKERS ?? 2),
    projects: [
      { extends: true, test: { name: 'own process', include: [WITH_STORES, 'infra/**/*.test.ts', 'test/**/*.test.ts'] } },
      { extends: true, test: { name: 'shared process', isolate: false, include: UNIT_TESTS, exclude: ['**/node_modules/**', WITH_STORES] } },
    ],
  },
});
