import type { TestProject } from 'vitest/node';

/** Gives the test run its stores; `PLAYLINE_TEST_STORES` (JSON) names stores that already run. */
export default async function setup(project: TestProject): Promise<void> {
  const given = process.env.PLAYLINE_TEST_STORES;
  if (given === undefined) throw new Error('no stores');
  project.provide('stores', JSON.parse(given));
}
