import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AnalystCredentials } from '@playline/access-keys';
import { z } from 'zod';
import { readStack } from '../addresses.ts';

export interface PoolOptions {
  /** Folder that may contain a stack in `.playline`. */
  readonly folder: string;
  readonly url: string;
  /** May contain `CLICKHOUSE_ANALYST_1_PASSWORD` and so on, for deployments without a stack. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const POOL_ACCOUNT = /^analyst_(raw_)?\d+$/;
const VARIABLE = /^CLICKHOUSE_(ANALYST_(?:RAW_)?\d+)_PASSWORD$/;
const secretsSchema = z.object({ analystPasswords: z.record(z.string().regex(POOL_ACCOUNT), z.string().min(1)) });

/**
 * Reads the accounts in users.xml and their passwords from the stack in `folder` if its ClickHouse is used, otherwise
 * from the environment. `renewPassword` returns how to make a dropped account available again.
 */
export function readPool({ folder, url, environment }: PoolOptions) {
  if (readStack(folder).clickhouse?.url === url) return readStackPool(join(folder, '.playline'));
  const accounts = Object.entries(environment).flatMap(([variable, password = '']) => {
    const account = VARIABLE.exec(variable)?.[1]?.toLowerCase();
    return account === undefined || password === '' ? [] : [{ account, password }];
  });
  return { accounts: sortAccounts(accounts), renewPassword: renewInEnvironment };
}

function readStackPool(state: string) {
  return {
    accounts: sortAccounts(readPasswords(join(state, 'secrets.json'))),
    renewPassword: (account: string) => {
      // The stack reads this folder when it starts, because only the start writes secrets.json.
      const dropped = join(state, 'dropped-accounts');
      mkdirSync(dropped, { recursive: true, mode: 0o700 });
      closeSync(openSync(join(dropped, account), 'a', 0o600));
      return 'To make the account available again with a new password, run npm run down and npm run up.';
    },
  };
}

const renewInEnvironment = (account: string) =>
  `To make the account available again, change CLICKHOUSE_${account.toUpperCase()}_PASSWORD here and for ClickHouse, and restart ClickHouse.`;

function readPasswords(path: string): AnalystCredentials[] {
  const parsed = secretsSchema.safeParse(JSON.parse(readFileSync(path, 'utf8')));
  // A stack that was never started has no passwords.
  if (!parsed.success) return [];
  return Object.entries(parsed.data.analystPasswords).map(([account, password]) => ({ account, password }));
}

const sortAccounts = (accounts: AnalystCredentials[]) =>
  accounts.toSorted((a, b) => a.account.localeCompare(b.account, 'en', { numeric: true }));
