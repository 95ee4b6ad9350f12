import { mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { stackPathsOf } from '@playline/infra/places';

/** Folder of all stacks that tests start, inside the checkout's own state. */
export const parentOfStacks = () => join(stackPathsOf().state, 'test');

/** A fresh folder for one test's stack; `prefix` tells in a listing whose it is. */
export function testStackFolder(prefix: string): string {
  mkdirSync(parentOfStacks(), { recursive: true });
  return mkdtempSync(join(parentOfStacks(), `${prefix}-`));
}
