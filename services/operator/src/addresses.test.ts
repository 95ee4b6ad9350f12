import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createAddresses } from './addresses.ts';
import { UnreachableError, UsageError } from './command.ts';
import { configSchema } from './config.ts';

const [STACK_PEPPER, ENVIRONMENT_PEPPER] = ['5'.repeat(64), '7'.repeat(64)];

function stackFolder(secrets: string | null): string {
  const folder = mkdtempSync(join(tmpdir(), 'operator-addresses-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, '.playline'));
  if (secrets !== null) writeFileSync(join(folder, '.playline', 'secrets.json'), secrets);
  return folder;
}

const pepperOf = (environment: Record<string, string>, secrets: string | null) =>
  createAddresses(configSchema.parse(environment), stackFolder(secrets)).pepper();

const secrets = JSON.stringify({ identityPepper: STACK_PEPPER });

it('the identity pepper and the store addresses always belong to the same deployment', () => {
  expect(pepperOf({}, secrets).toString('hex')).toBe(STACK_PEPPER);
  expect(pepperOf({ IDENTITY_PEPPER: ENVIRONMENT_PEPPER }, secrets).toString('hex')).toBe(STACK_PEPPER);
  const remote = { REDIS_URL: 'redis://elsewhere:6379', IDENTITY_PEPPER: ENVIRONMENT_PEPPER };
  expect(pepperOf(remote, secrets).toString('hex')).toBe(ENVIRONMENT_PEPPER);
});

it('the identity pepper must be set if the environment contains addresses, even if a local stack exists', () => {
  for (const found of [secrets, null]) {
    const find = () => pepperOf({ CLICKHOUSE_URL: 'http://elsewhere:8123' }, found);
    expect(find).toThrow(UsageError);
    expect(find).toThrow('IDENTITY_PEPPER is not set');
  }
});

it('the identity pepper is never generated: a missing or invalid secrets file is an error', () => {
  for (const [found, message] of [
    [null, 'no local stack is running'],
    ['{ truncated', 'contains no pepper'],
    ['{"identityPepper":"abcd"}', 'contains no pepper'],
  ] as const) {
    expect(() => pepperOf({}, found)).toThrow(UnreachableError);
    expect(() => pepperOf({ IDENTITY_PEPPER: ENVIRONMENT_PEPPER }, found)).toThrow(message);
  }
});

it('the error for a missing address names its setting, and the local stack is not used instead', () => {
  const addresses = createAddresses(configSchema.parse({ REDIS_URL: 'redis://elsewhere:6379' }), '/nowhere');
  expect(() => addresses.clickhouse()).toThrow(
    new UnreachableError('CLICKHOUSE_URL is not set, although other addresses are set'),
  );
});
