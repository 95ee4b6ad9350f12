import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type StackPaths, stackPathsOf } from '../paths.ts';

export function testStackPaths(): StackPaths {
  const folder = mkdtempSync(join(tmpdir(), 'playline-local-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return stackPathsOf(folder);
}
