// Changes to accounts: permission checks and invariants that apply to every change.
import { PublicError } from '@playline/errors';
import type { Content, RecordStore } from '../records/record-store.ts';
import { ViewFault } from '../records/record-view.ts';
import { type AccountRecord, isRemoved } from './account.ts';
import { type Action, mayDo } from './roles.ts';
import type { Sessions } from './sessions.ts';

export interface AccountContext {
  readonly store: RecordStore<AccountRecord>;
  /** Used to end sessions when permissions or credentials change. */
  readonly sessions: Pick<Sessions, 'endAll'>;
  /** Account that makes the change. Null for operator commands, which have all permissions. */
  readonly actorId: string | null;
  readonly wallClockMs?: () => number;
}

export const readClock = ({ wallClockMs = Date.now }: AccountContext): number => wallClockMs();

/**
 * Changes one account, based on the latest records of all accounts, and ends the account's sessions.
 * @throws PublicError RESOURCE_NOT_FOUND for an unknown account; CONFLICT_ERROR if the change would remove the last
 * administrator or the last owner of a project
 */
export async function changeAccount(
  context: AccountContext,
  id: string,
  decide: (account: AccountRecord, accounts: readonly AccountRecord[]) => Content<AccountRecord>,
): Promise<AccountRecord> {
  const changing = context.store.change((accounts) => {
    const account = findAccount(accounts, id);
    const next = decide(account, accounts);
    assertNotLast(accounts, account, next);
    return withoutSessions(account, next);
  });
  const changed = await changing.catch(async (fault: unknown) => {
    // The change is in the log and will reach the view later. The caller will not retry, so end the sessions now.
    if (fault instanceof ViewFault) await context.sessions.endAll(id).catch(() => {});
    throw fault;
  });
  await context.sessions.endAll(id);
  return changed;
}

/** Invalidates all earlier sessions of the account, even if the process crashes before it deletes them. */
export const withoutSessions = ({ revision }: AccountRecord, next: Content<AccountRecord>) => {
  return { ...next, sessionsFrom: revision + 1 };
};

/** @throws PublicError RESOURCE_NOT_FOUND */
export function findAccount(accounts: readonly AccountRecord[], id: string): AccountRecord {
  const account = accounts.find((each) => each.id === id);
  if (account !== undefined && !isRemoved(account)) return account;
  throw new PublicError('RESOURCE_NOT_FOUND', { message: 'This account does not exist.', details: { account: id } });
}

/** @throws PublicError AUTHENTICATION_ERROR unless the acting account has the permission */
export function assertAllowed(
  { actorId }: AccountContext,
  accounts: readonly AccountRecord[],
  wanted: { readonly action: Action; readonly projectId: string | null },
): void {
  if (actorId === null) return;
  const account = accounts.find(({ id }) => id === actorId);
  if (account !== undefined && mayDo({ account, ...wanted })) return;
  const message = 'You do not have permission to do this. Contact a project owner or an administrator.';
  throw forbidden(message, { action: wanted.action });
}

/** @throws PublicError AUTHENTICATION_ERROR if an account tries to change a different account */
export function assertSelf({ actorId }: AccountContext, id: string): void {
  if (actorId !== null && actorId !== id) throw forbidden('You can change this only for your own account.', {});
}

function assertNotLast(accounts: readonly AccountRecord[], before: AccountRecord, after: Content<AccountRecord>): void {
  const others = accounts.filter(({ id, state }) => id !== before.id && state === 'live');
  const isLive = after.state === 'live';
  if (before.state !== 'live') return;
  if (before.isAdministrator && !(isLive && after.isAdministrator) && !others.some((each) => each.isAdministrator))
    throw conflict('This is the last administrator. Make another account an administrator first.', {});
  for (const { projectId } of before.roles.filter(({ role }) => role === 'owner'))
    if (!(isLive && isOwner(after, projectId)) && !others.some((each) => isOwner(each, projectId)))
      throw conflict('This is the last owner of the project. Make another member an owner first.', {
        project: projectId,
      });
}

const isOwner = ({ roles }: Pick<AccountRecord, 'roles'>, projectId: string): boolean =>
  roles.some((each) => each.projectId === projectId && each.role === 'owner');

/** Used, revoked, expired and unknown links all return the same error, which does not reveal the reason. */
export const invalidLink = () =>
  new PublicError('RESOURCE_NOT_FOUND', { message: 'This link was used or has expired. Request another link.' });

type Details = Readonly<Record<string, string>>;
export const conflict = (message: string, details: Details = {}) =>
  new PublicError('CONFLICT_ERROR', { message, details });
export const forbidden = (message: string, details: Details = {}) =>
  new PublicError('AUTHENTICATION_ERROR', { message, details });
export const invalid = (message: string, details: Details = {}) =>
  new PublicError('VALIDATION_ERROR', { message, details });
