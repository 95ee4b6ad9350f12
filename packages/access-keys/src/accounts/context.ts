import { PublicError } from '@playline/errors';
import type { Content, RecordStore } from '../records/record-store.ts';
import { toDone } from '../records/record-store.ts';
import { ViewFault } from '../records/record-view.ts';
import { type AccountRecord, isRemoved } from './account.ts';
import { type Action, mayDo } from './roles.ts';
import type { Sessions } from './sessions.ts';

/** What is needed to change accounts. */
export interface AccountContext {
  readonly store: RecordStore<AccountRecord>;
  /** Sessions of an account end when its rights or credentials change. */
  readonly sessions: Pick<Sessions, 'endAll'>;
  /** Id of the account that makes the change. Null for the operator's commands, which may do everything. */
  readonly actorId: string | null;
  readonly wallClockMs?: () => number;
}

/** All accounts, the one that is to be changed, and when. */
export interface AccountsAtTime {
  readonly accounts: readonly AccountRecord[];
  readonly nowAt: number;
}

export function nowOf({ wallClockMs = Date.now }: AccountContext): number {
  return wallClockMs();
}

/**
 * Changes one account. What the log says of all accounts decides whether the change is allowed. The sessions of the
 * account end too: its record says so, so they end with the change even if the process dies before it has removed them
 * from their store.
 * @throws PublicError RESOURCE_NOT_FOUND when there is no such account, or it was removed; CONFLICT_ERROR when the
 * instance would be left without an administrator, or a project that has an owner without one
 */
export async function changeAccount(
  context: AccountContext,
  id: string,
  decide: (account: AccountRecord, situation: AccountsAtTime) => Content<AccountRecord>,
): Promise<AccountRecord> {
  const changing = context.store.change((accounts) => {
    const account = findAccount(accounts, id);
    const next = decide(account, { accounts, nowAt: nowOf(context) });
    assertNotLast(accounts, account, next);
    return withoutSessions(account, next);
  });
  const changed = await changing.catch(async (fault: unknown) => {
    // The log has the change, and the view gets it later by itself. The sessions must be ended here, since nobody
    // repeats this call.
    if (fault instanceof ViewFault) await context.sessions.endAll(id).catch(() => {});
    throw fault;
  });
  await context.sessions.endAll(id);
  return toDone(changed);
}

/**
 * The change that ends all sessions that the account has had so far.
 * @param before the present record
 */
export function withoutSessions(
  { revision }: Pick<AccountRecord, 'revision'>,
  next: Content<AccountRecord>,
): Content<AccountRecord> {
  return { ...next, sessionsFrom: revision + 1 };
}

/** @throws PublicError RESOURCE_NOT_FOUND */
export function findAccount(accounts: readonly AccountRecord[], id: string): AccountRecord {
  const account = accounts.find((each) => each.id === id);
  if (account !== undefined && !isRemoved(account)) return account;
  throw new PublicError('RESOURCE_NOT_FOUND', { message: 'There is no such account.', details: { account: id } });
}

/**
 *
 * @throws PublicError AUTHENTICATION_ERROR unless the account that asks may do this now
 */
export function assertAllowed(
  { actorId }: AccountContext,
  accounts: readonly AccountRecord[],
  wanted: { readonly action: Action; readonly projectId: string | null },
): void {
  if (actorId === null) return;
  const account = accounts.find(({ id }) => id === actorId);
  if (account !== undefined && mayDo({ account, ...wanted })) return;
  throw forbidden('You may not do this: ask an owner of the project, or an administrator.', { action: wanted.action });
}

/** @throws PublicError AUTHENTICATION_ERROR unless an account asks about itself */
export function assertSelf({ actorId }: AccountContext, id: string): void {
  if (actorId !== null && actorId !== id) throw forbidden('Everybody changes this of themselves alone.', {});
}

/** The last account that can let others in must not be lost. */
function assertNotLast(accounts: readonly AccountRecord[], before: AccountRecord, after: Content<AccountRecord>): void {
  const others = accounts.filter(({ id, state }) => id !== before.id && state === 'live');
  const isLive = after.state === 'live';
  if (before.state !== 'live') return;
  if (before.isAdministrator && !(isLive && after.isAdministrator) && !others.some((each) => each.isAdministrator))
    throw conflict('This is the last administrator: make another account one first.', {});
  for (const { projectId } of before.roles.filter(({ role }) => role === 'owner'))
    if (!(isLive && isOwner(after, projectId)) && !others.some((each) => isOwner(each, projectId)))
      throw conflict('This is the last owner of the project: make another member one first.', { project: projectId });
}

function isOwner({ roles }: Pick<AccountRecord, 'roles'>, projectId: string): boolean {
  return roles.some((each) => each.projectId === projectId && each.role === 'owner');
}

/** One error for a link that was used, was revoked, is too old or never existed, so that it does not reveal which. */
export const invalidLink = () =>
  new PublicError('RESOURCE_NOT_FOUND', { message: 'This link was used, or its time is over: ask for another one.' });

type Details = Readonly<Record<string, string>>;
export const conflict = (message: string, details: Details = {}) =>
  new PublicError('CONFLICT_ERROR', { message, details });
export const forbidden = (message: string, details: Details = {}) =>
  new PublicError('AUTHENTICATION_ERROR', { message, details });
export const invalid = (message: string, details: Details = {}) =>
  new PublicError('VALIDATION_ERROR', { message, details });
