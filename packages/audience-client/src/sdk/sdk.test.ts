import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CHECKOUT } from '@playline/infra/paths';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildSdk } from './index.ts';

const TARBALL = '/sdk/playline-audience-client.tgz';
const files = buildSdk();
const folder = mkdtempSync(join(tmpdir(), 'playline-sdk-'));
const installed = join(folder, 'node_modules', '@playline', 'audience-client');

beforeAll(() => {
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['xzf', '-', '--strip-components=1', '-C', installed], { input: files.get(TARBALL)!.bytes! });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('a served file is the same after every start, so that caches and lock files stay valid', () => {
  expect(buildSdk()).toEqual(files);
});

it('the served tarball has no dependencies, and all paths of its manifest exist', () => {
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
  expect(Object.keys(manifest).filter((name) => /dependencies|scripts/i.test(name))).toEqual([]);
  const paths =
    JSON.stringify([manifest.main, manifest.types, manifest.exports]).match(/\.\/dist\/[\w./-]+\.\w+/g) ?? [];
  expect(paths.length).toBeGreaterThan(4);
  for (const path of paths) expect(readFileSync(join(installed, path), 'utf8'), path).toMatch(/export/);
});

it('the types of the served tarball describe all exports and detect errors', () => {
  const start = `import { createBrowserStore, createMemoryStore, openAudienceClient, type AudienceClient } from '@playline/audience-client';
    import { openAutocapture } from '@playline/audience-client/autocapture';
    const client: AudienceClient = openAudienceClient({ baseUrl: '', publishableKey: 'pk', store: createMemoryStore() });
    createBrowserStore().keys();
    openAutocapture(client).close();
    openAutocapture(client, { inactivityTimeoutMs: 1 }).touch();\n`;
  writeFileSync(join(folder, 'right.mts'), `${start}client.track('level_done', { level: 3 });`);
  writeFileSync(join(folder, 'wrong.mts'), `${start}client.identify('u', { identityType: 'nintendo' });`);
  const tsc = join(CHECKOUT, 'node_modules', 'typescript', 'bin', 'tsc');
  const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--lib', 'es2022,dom', '--skipLibCheck', 'false'];
  const { stdout } = spawnSync(process.execPath, [tsc, ...flags, 'right.mts', 'wrong.mts'], {
    cwd: folder,
    encoding: 'utf8',
  });
  expect(stdout.match(/^\S+\(\d.*error TS\d+/gm)).toEqual([expect.stringMatching(/^wrong\.mts.*TS2820|TS2322$/)]);
});

it('the scripts for script tags contain no module syntax and export what the modules export', () => {
  for (const [path, { text }] of files) {
    if (path === TARBALL) continue;
    expect(text, path).not.toMatch(/^\s*(import|export)\b/m);
    const { status, stdout } = spawnSync(
      process.execPath,
      ['-e', `${text}\nconsole.log(Object.keys(globalThis.PlaylineAudience ?? PlaylineAutocapture).join())`],
      { encoding: 'utf8' },
    );
    expect([status, stdout.trim()]).toEqual([
      0,
      expect.stringMatching(/^(openAudienceClient,createBrowserStore,createMemoryStore|openAutocapture)$/),
    ]);
  }
});
