import {
  type AccountContext,
  type AccountRecord,
  findByLogin,
  isRemoved,
  type OneTimeTexts,
  type OpenSessions,
} from '@playline/access-keys';
import { withStore } from '../await-store.ts';
import { UnreachableError, UsageError } from '../command.ts';
import type { ProjectSources } from '../projects/environments.ts';
import { type RecordSources, withRecords } from '../records/record-access.ts';

export interface AccountsContext extends ProjectSources {
  readonly accounts: RecordSources<AccountRecord>;
  openSessions(): Promise<OpenSessions>;
  /** Origin of the portal of the local stack; null when there is none. */
  portal(): string | null;
}

/** Reads or changes accounts, with the user of the command as the author. @throws UnreachableError as `withRecords` */
export async function withAccounts<T>(
  { accounts, openSessions }: AccountsContext,
  work: (context: AccountContext, oneTimeTexts: OneTimeTexts) => Promise<T>,
): Promise<T> {
  return withStore('Redis', await openSessions(), ({ sessions, oneTimeTexts }) =>
    withRecords(accounts, (store) => work({ store, sessions, actorId: null }, oneTimeTexts)),
  );
}

/** @param wanted id or login. @throws Error with advice when there is no such account */
export async function requireAccount({ store }: AccountContext, wanted: string): Promise<AccountRecord> {
  const accounts = await store.readAll();
  const found = accounts.find(({ id }) => id === wanted) ?? findByLogin(accounts, wanted);
  if (found === null || isRemoved(found))
    throw new Error(`there is no account ${wanted}: npm run accounts -- list shows those that there are`);
  return found;
}

/**
 * The origin of the portal.
 * @throws UsageError for an invalid origin; UnreachableError when none is given and no local stack has one
 */
export function originOf({ portal }: Pick<AccountsContext, 'portal'>, given: string | undefined): string {
  if (given === undefined) {
    const running = portal();
    if (running !== null) return running;
    throw new UnreachableError(
      'no portal runs here: start it (npm run up), or say --origin https://portal.example.com',
    );
  }
  const url = URL.parse(given);
  if (url !== null && ['http:', 'https:'].includes(url.protocol) && url.href === `${url.origin}/`) return url.origin;
  throw new UsageError('--origin: expected one as https://portal.example.com, without a path');
}

/** The address of a page, with its code. */
export function linkTo(origin: string, path: string, code: string): string {
  const url = new URL(path, origin);
  url.searchParams.set('code', code);
  return url.href;
}
