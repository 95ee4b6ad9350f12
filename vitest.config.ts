import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['packages/**/*.test.ts', 'services/**/*.test.ts', 'infra/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['packages/testkit/src/global-setup.ts'],
    // Twice what `until` waits: its words name what did not come.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Two cores: more workers are quicker where tests wait, and make real stores answer later.
    maxWorkers: Number(process.env.PLAYLINE_TEST_WORKERS ?? 2),
  },
});
