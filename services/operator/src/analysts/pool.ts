import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readStack } from '../stack-file.ts';
import type { Credentials } from './accounts.ts';

/** Accounts of users.xml with their passwords, for servers that accept no accounts by SQL. */
export interface AnalystPool {
  readonly accounts: readonly Credentials[];
  /** Arranges a new password for a dropped account. @returns what the operator must do, a sentence */
  renewPassword(account: string): string;
}

export interface PoolOptions {
  /** Folder whose `.playline` may contain a stack. */
  readonly folder: string;
  /** Address of ClickHouse. */
  readonly url: string;
  /** With `CLICKHOUSE_ANALYST_1_PASSWORD` and so on, for deployments without a stack. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const ACCOUNT = /^analyst_(raw_)?\d+$/;
const VARIABLE = /^CLICKHOUSE_(ANALYST_(?:RAW_)?\d+)_PASSWORD$/;
const secretsSchema = z.object({ analystPasswords: z.record(z.string().regex(ACCOUNT), z.string().min(1)) });

/** Accounts with raw ids have other names in users.xml. */
export const readsRawIds = (account: string) => account.startsWith('analyst_raw_');

/** The pool of the stack in `folder` if its ClickHouse is used, otherwise that of the environment. */
export function readPool({ folder, url, environment }: PoolOptions): AnalystPool {
  if (readStack(folder).clickhouse?.url === url) return poolOfStack(join(folder, '.playline'));
  const accounts = Object.entries(environment).flatMap(([variable, password = '']) => {
    const account = VARIABLE.exec(variable)?.[1]?.toLowerCase();
    return account === undefined || password === '' ? [] : [{ account, password }];
  });
  return { accounts: inOrder(accounts), renewPassword: renewOfEnvironment };
}

function poolOfStack(state: string): AnalystPool {
  return {
    accounts: inOrder(readPasswords(join(state, 'secrets.json'))),
    renewPassword: (account) => {
      // Read by the next start, the only writer of secrets.json.
      const dropped = join(state, 'dropped-accounts');
      mkdirSync(dropped, { recursive: true, mode: 0o700 });
      closeSync(openSync(join(dropped, account), 'a', 0o600));
      return 'It gets a new password at the next start (npm run down, npm run up), and is available again then.';
    },
  };
}

const renewOfEnvironment = (account: string) =>
  `To make it available again, set another CLICKHOUSE_${account.toUpperCase()}_PASSWORD, for ClickHouse too, and restart ClickHouse.`;

function readPasswords(path: string): Credentials[] {
  const parsed = secretsSchema.safeParse(JSON.parse(readFileSync(path, 'utf8')));
  // A stack that never started has none.
  if (!parsed.success) return [];
  return Object.entries(parsed.data.analystPasswords).map(([account, password]) => ({ account, password }));
}

const inOrder = (accounts: Credentials[]) =>
  accounts.toSorted((a, b) => a.account.localeCompare(b.account, 'en', { numeric: true }));
