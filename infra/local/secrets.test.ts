import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CHECKOUT } from './paths.ts';
import { ANALYST_POOL, loadSecrets } from './secrets.ts';
import { testStackPaths } from './test/paths.ts';

test('loadSecrets creates distinct secrets once, readable only by their owner', () => {
  const paths = testStackPaths();
  const secrets = loadSecrets(paths);
  expect(loadSecrets(paths)).toEqual(secrets);
  expect(statSync(join(paths.state, 'secrets.json')).mode & 0o777).toBe(0o600);
  const { analystPasswords, signerKeys, ...others } = secrets;
  expect(signerKeys).toMatch(/^[A-Za-z0-9_-]{100,}$/);
  const values = [...Object.values(others), ...Object.values(analystPasswords)];
  expect(new Set(values).size).toBe(values.length);
  for (const value of values) expect(value).toMatch(/^[0-9a-f]{64}$/);
});

test('loadSecrets fails for an unreadable file instead of creating new secrets', () => {
  const paths = testStackPaths();
  writeFileSync(join(paths.state, 'secrets.json'), '{ half');
  expect(() => loadSecrets(paths)).toThrow('cannot be read');
});

test('loadSecrets replaces only the password of a dropped account, and only once', () => {
  const paths = testStackPaths();
  const before = loadSecrets(paths);
  mkdirSync(join(paths.state, 'dropped-accounts'));
  writeFileSync(join(paths.state, 'dropped-accounts', 'analyst_3'), '');
  const after = loadSecrets(paths);
  const { analyst_3: password } = after.analystPasswords;
  expect(password).not.toBe(before.analystPasswords.analyst_3);
  expect(after).toEqual({ ...before, analystPasswords: { ...before.analystPasswords, analyst_3: password } });
  expect(loadSecrets(paths)).toEqual(after);
});

test('every deployment sets a password for every account in users.xml', () => {
  const read = (path: string) => readFileSync(join(CHECKOUT, path), 'utf8');
  const accounts = [...read('infra/clickhouse/users.xml').matchAll(/from_env="CLICKHOUSE_(\w+)_SHA256"/g)].map(
    ([, name]) => name ?? '',
  );
  expect(accounts.filter((name) => /_\d+$/.test(name)).map((name) => name.toLowerCase())).toEqual(ANALYST_POOL);
  for (const path of ['infra/docker/clickhouse-entrypoint.sh', 'packages/testkit/src/containers.ts']) {
    const names = new Set(
      read(path)
        .match(/\w+/g)
        ?.map((name) => name.replace(/^CLICKHOUSE_|_SHA256$/g, '')),
    );
    expect([path, accounts.filter((name) => !names.has(name))]).toEqual([path, []]);
  }
});
