import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { CHECKOUT, stackPathsOf } from './paths.ts';
import { ANALYST_POOL, loadSecrets } from './secrets.ts';

function createPlaces() {
  const folder = mkdtempSync(join(tmpdir(), 'secrets-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return stackPathsOf(folder);
}

test('secrets are created once, and only their owner can read them', () => {
  const places = createPlaces();
  const secrets = loadSecrets(places);
  expect(loadSecrets(places)).toEqual(secrets);
  expect(statSync(join(places.state, 'secrets.json')).mode & 0o777).toBe(0o600);
  const passwords = [...Object.values(secrets.analystPasswords), secrets.analystPassword, secrets.operatorPassword];
  expect(new Set(passwords).size).toBe(ANALYST_POOL.length + 2);
});

test('a dropped account gets a new password once, and nothing else changes', () => {
  const places = createPlaces();
  const before = loadSecrets(places);
  mkdirSync(join(places.state, 'dropped-accounts'));
  writeFileSync(join(places.state, 'dropped-accounts', 'analyst_3'), '');
  const after = loadSecrets(places);
  const { analyst_3: password } = after.analystPasswords;
  expect(password).not.toBe(before.analystPasswords.analyst_3);
  expect(after).toEqual({ ...before, analystPasswords: { ...before.analystPasswords, analyst_3: password } });
  expect(loadSecrets(places)).toEqual(after);
});

test('every deployment gives every account of users.xml a password', () => {
  const read = (path: string) => readFileSync(join(CHECKOUT, path), 'utf8');
  const accounts = [...read('infra/clickhouse/users.xml').matchAll(/from_env="CLICKHOUSE_(\w+)_SHA256"/g)].map(
    ([, name]) => name ?? '',
  );
  expect(accounts.filter((name) => /_\d+$/.test(name)).map((name) => name.toLowerCase())).toEqual(ANALYST_POOL);
  for (const path of ['infra/docker/clickhouse-entrypoint.sh', 'packages/testkit/src/containers.ts']) {
    const words = new Set(
      read(path)
        .match(/\w+/g)
        ?.map((word) => word.replace(/^CLICKHOUSE_|_SHA256$/g, '')),
    );
    expect([path, accounts.filter((name) => !words.has(name))]).toEqual([path, []]);
  }
});
