import { defineConfig } from 'vitest/config';

const WITH_STORES = '**/*.integration.test.ts';

export default defineConfig({
  test: {
    globalSetup: ['packages/testkit/src/global-setup.ts'],
    // Twice what `until` waits: its words name what did not come.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Two cores: more workers are quicker where tests wait, and make real stores answer later.
    maxWorkers: Number(process.env.PLAYLINE_TEST_WORKERS ?? 2),
    projects: [
      {
        extends: true,
        test: { name: 'own process', include: [WITH_STORES, 'infra/**/*.test.ts', 'test/**/*.test.ts'] },
      },
      {
        extends: true,
        // Unit tests leave nothing behind in their process, so they share one: loading modules anew for each of these
        // files took as long as the tests.
        test: {
          name: 'shared process',
          isolate: false,
          include: ['packages/**/*.test.ts', 'services/**/*.test.ts'],
          exclude: ['**/node_modules/**', WITH_STORES],
        },
      },
    ],
  },
});
