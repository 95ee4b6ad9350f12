import { mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { stackPathsOf } from '@playline/infra/paths';

export const parentOfStacks = () => join(stackPathsOf().state, 'test');

/** Creates a folder for a test's stack. @param prefix identifies the test */
export function testStackFolder(prefix: string): string {
  mkdirSync(parentOfStacks(), { recursive: true });
  return mkdtempSync(join(parentOfStacks(), `${prefix}-`));
}
