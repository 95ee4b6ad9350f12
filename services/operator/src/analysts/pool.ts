import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readStack } from '../stack-file.ts';
import type { Credentials } from './accounts.ts';

/** Accounts of users.xml that are given out where none can be created by SQL, with their passwords. */
export interface AnalystPool {
  readonly accounts: readonly Credentials[];
  /** Arranges a new password before an account is given out again. @returns what the operator must do, a sentence */
  renewPassword(account: string): string;
}

export interface PoolOptions {
  /** Folder whose `.playline` may contain the records of a stack. */
  readonly folder: string;
  /** Address of the ClickHouse that is used. */
  readonly url: string;
  /** Environment of the process, with `CLICKHOUSE_ANALYST_1_PASSWORD` and so on for deployments without a stack. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const ACCOUNT = /^analyst_(raw_)?\d+$/;
const VARIABLE = /^CLICKHOUSE_(ANALYST_(?:RAW_)?\d+)_PASSWORD$/;
const secretsSchema = z.object({ analystPasswords: z.record(z.string().regex(ACCOUNT), z.string().min(1)) });

/** Whether an account of the pool may read raw ids; its name in users.xml says so. */
export const readsRawIds = (account: string) => account.startsWith('analyst_raw_');

/** The pool of the stack in `folder` if its ClickHouse is the one in use, otherwise the pool of the environment. */
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
      // Read by the next start, the only writer of secrets.json, whose loss cannot be repaired.
      const dropped = join(state, 'dropped-accounts');
      mkdirSync(dropped, { recursive: true, mode: 0o700 });
      closeSync(openSync(join(dropped, account), 'a', 0o600));
      return 'It gets a new password at the next start (npm run down, npm run up), and can be given out again then.';
    },
  };
}

const renewOfEnvironment = (account: string) =>
  `To give it out again, set another CLICKHOUSE_${account.toUpperCase()}_PASSWORD, for ClickHouse too, and start ClickHouse again.`;

function readPasswords(path: string): Credentials[] {
  const parsed = secretsSchema.safeParse(JSON.parse(readFileSync(path, 'utf8')));
  // A stack that never started has none.
  if (!parsed.success) return [];
  return Object.entries(parsed.data.analystPasswords).map(([account, password]) => ({ account, password }));
}

const inOrder = (accounts: Credentials[]) =>
  accounts.toSorted((a, b) => a.account.localeCompare(b.account, 'en', { numeric: true }));
