// Analyst accounts that were dropped: the next start changes their passwords, so that they can be assigned again.
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { StackPaths } from './paths.ts';
import { ANALYST_POOL, droppedAccountsOf } from './secrets.ts';
import type { StackFile } from './stack-file.ts';

const QUERY_MAX_MS = 2_000;
const DROPPED = 'SELECT account FROM analyst_accounts FINAL GROUP BY account HAVING min(dropped) FORMAT TSV';

/** Marks the accounts of `users.xml` that no one uses any more. A failed query leaves them for a later stop. */
export async function markDroppedAccounts(paths: StackPaths, { clickhouse }: Pick<StackFile, 'clickhouse'>) {
  const { url, user, password, database } = clickhouse;
  const response = await fetch(`${url}/?database=${database}`, {
    method: 'POST',
    headers: { connection: 'close', 'x-clickhouse-user': user, 'x-clickhouse-key': password },
    body: DROPPED,
    signal: AbortSignal.timeout(QUERY_MAX_MS),
  }).catch(() => null);
  const names = response?.ok === true ? (await response.text()).split('\n') : [];
  const dropped = droppedAccountsOf(paths);
  for (const name of names.filter((each) => ANALYST_POOL.includes(each))) {
    mkdirSync(dropped, { recursive: true, mode: 0o700 });
    closeSync(openSync(join(dropped, name), 'a', 0o600));
  }
}
