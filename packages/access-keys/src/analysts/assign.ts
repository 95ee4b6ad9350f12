import { randomInt } from 'node:crypto';
import { type ClickHouseAccount, createQueryRows, readRows } from '@playline/stores';
import {
  type AnalystCredentials,
  canReadRawIds,
  claim,
  createBySql,
  isAssigned,
  type NewAccount,
  type RunStatement,
} from './accounts.ts';

/** No account in users.xml can be assigned, and ClickHouse does not allow accounts to be created with SQL. */
export class NoFreeAccount extends Error {
  override readonly name = 'NoFreeAccount';
  /** Number of accounts whose passwords are known. */
  readonly known: number;

  constructor(known: number) {
    super(known === 0 ? 'no password of an analyst account is known' : `all ${known} analyst accounts are assigned`);
    this.known = known;
  }
}

const POOL_ENTRY = /^(analyst_(?:raw_)?\d+)=(\S+)$/;

/** Parses `account=password,…`. @throws Error that does not quote the text */
export function parseAnalystAccounts(text: string): AnalystCredentials[] {
  return text.split(',').map((entry) => {
    const [, account, password] = POOL_ENTRY.exec(entry.trim()) ?? [];
    if (account === undefined || password === undefined)
      throw new Error('expected comma-separated entries such as analyst_1=password');
    return { account, password };
  });
}

export interface AssignContext {
  readonly clickhouse: ClickHouseAccount;
  readonly run: RunStatement;
  /** Accounts in users.xml with known passwords. */
  readonly pool: () => readonly AnalystCredentials[];
}

/** Creates an account without grants, or assigns one from users.xml. @throws NoFreeAccount */
export async function assignAnalyst(
  { clickhouse, run, pool }: AssignContext,
  wanted: NewAccount,
): Promise<AnalystCredentials> {
  const created = await createBySql(run, wanted);
  if (created !== null) return created;
  const accounts = pool().filter(({ account }) => canReadRawIds(account) === wanted.rawIds);
  let candidates: readonly AnalystCredentials[] = accounts;
  while (candidates.length > 0) {
    const [candidate, ...remaining] = candidates as [AnalystCredentials, ...AnalystCredentials[]];
    candidates = remaining;
    if (await isAssigned(run, candidate)) continue;
    // ClickHouse may have been started with a different password.
    if (!(await canLogIn(clickhouse, candidate))) continue;
    if (await claim(run, candidate, wanted.owner ?? null)) return candidate;
    // Shuffled, so that two concurrent processes do not collide again.
    candidates = shuffle(remaining);
  }
  throw new NoFreeAccount(accounts.length);
}

function shuffle<T>(values: readonly T[]): T[] {
  const keyed = values.map((value) => ({ value, sortKey: randomInt(2 ** 32) }));
  return keyed.toSorted((a, b) => a.sortKey - b.sortKey).map(({ value }) => value);
}

async function canLogIn({ onFault: _, ...clickhouse }: ClickHouseAccount, { account, password }: AnalystCredentials) {
  const query = createQueryRows({ ...clickhouse, user: account, password }, { isReadonly: true });
  return readRows(query('SELECT 1')).then(
    () => true,
    () => false,
  );
}
