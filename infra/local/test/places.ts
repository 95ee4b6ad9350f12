import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Places, placesOf } from '../places.ts';

/** Folders of a stack for one test: empty, and removed when the test ends. */
export function testPlaces(): Places {
  const folder = mkdtempSync(join(tmpdir(), 'playline-local-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return placesOf(folder);
}
