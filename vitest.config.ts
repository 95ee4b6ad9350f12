import { defineConfig } from 'vitest/config';

/**
 * Tests of the portal: most files load the whole portal. What they open they close, and what they load has no hooks of its
 * own, because hooks of a shared module would be those of its first user alone.
 */
const SHARING = [
  'services/portal/src/**/*.test.ts',
  'test/portal/**/*.test.ts',
  'test/portal-live.test.ts',
  'infra/clickhouse/portal.integration.test.ts',
];

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
        test: {
          name: 'own process',
          include: ['packages/**/*.test.ts', 'services/**/*.test.ts', 'infra/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: ['**/node_modules/**', ...SHARING],
        },
      },
      { extends: true, test: { name: 'shared process', isolate: false, include: SHARING } },
    ],
  },
});
