import { defineConfig } from 'vitest/config';

/** For `npm run test:containers`. Unlike the configuration of all tests, starts no stores. */
export default defineConfig({
  test: {
    include: ['test/containers/**/*.long.test.ts'],
    globalSetup: ['test/containers/setup.ts'],
    testTimeout: 180_000,
    hookTimeout: 1_800_000,
  },
});
