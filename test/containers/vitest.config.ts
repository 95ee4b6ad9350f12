import { defineConfig } from 'vitest/config';

/** For `npm run test:containers`. Unlike the configuration of all tests, starts no stores. */
export default defineConfig({
  test: {
    include: ['test/containers/**/*.long.test.ts'],
    globalSetup: ['test/containers/setup.ts'],
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
