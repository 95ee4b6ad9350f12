import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { buildBundle } from './test/bundle.ts';

/** As documented in the README. */
const GZIPPED_BYTES_MAX = 6 * 1000;

it('the browser bundle is smaller than 6 kB gzipped', async () => {
  const { code } = await buildBundle();
  expect(gzipSync(code).length).toBeLessThan(GZIPPED_BYTES_MAX);
});

it('the browser bundle is a single file without imports, and the package has no dependencies', async () => {
  const { code, imports } = await buildBundle();
  expect(imports).toEqual([]);
  expect(code).not.toMatch(/\bimport\b|\brequire\b/);
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  expect(manifest).not.toHaveProperty('dependencies');
});
