import { toDone } from '../records/record-store.ts';
import { type AccountRecord, findAnyInvited, type ProjectRole } from './account.ts';
import {
  type AccountContext,
  assertMay,
  changeAccount,
  conflict,
  findAccount,
  forbidden,
  linkNotGood,
  nowOf,
} from './context.ts';
import { toRemoved } from './invitations.ts';
import { isAtMost, type Role, roleIn } from './roles.ts';

/**
 * Sets the role of an account in a project; null removes it from the project. Owners change members of their project,
 * administrators change everybody.
 * @throws PublicError AUTHENTICATION_ERROR when the account that asks may not do this, and as `changeAccount`
 */
export function setRole(
  context: AccountContext,
  { accountId, projectId, role }: { accountId: string; projectId: string; role: Role | null },
): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, { accounts }) => {
    assertMay(context, accounts, { action: 'members.change', projectId });
    // Otherwise an owner could find out which ids are accounts.
    if (roleIn(account, projectId) === null)
      assertMay(context, accounts, { action: 'accounts.change', projectId: null });
    const others = account.roles.filter((each) => each.projectId !== projectId);
    const roles: ProjectRole[] = role === null ? others : [...others, { projectId, role }];
    return { ...account, roles };
  });
}

/** Makes an account an administrator of the instance, or no longer. @throws PublicError as `setRole` */
export function setAdministrator(
  context: AccountContext,
  { accountId, isAdministrator }: { accountId: string; isAdministrator: boolean },
): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, { accounts }) => {
    assertMay(context, accounts, { action: 'accounts.change', projectId: null });
    return { ...account, isAdministrator };
  });
}

/** Keeps an account from signing in until it is enabled again; what it may do is kept. @throws PublicError as `setRole` */
export function disableAccount(context: AccountContext, accountId: string): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, { accounts }) => {
    assertMay(context, accounts, { action: 'accounts.change', projectId: null });
    if (account.state === 'invited') throw conflict('Nobody has accepted the invitation: revoke it.');
    // An open link would let the person back in later.
    return { ...account, state: 'disabled', invitation: null };
  });
}

/** @throws PublicError as `setRole` */
export function enableAccount(context: AccountContext, accountId: string): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, { accounts }) => {
    assertMay(context, accounts, { action: 'accounts.change', projectId: null });
    if (account.state !== 'disabled') throw conflict('The account is not disabled.');
    return { ...account, state: 'live' };
  });
}

/**
 * Removes an account for good. Its name, login and credentials are erased from the record. Its id stays, since records
 * of what it did name it.
 * @throws PublicError as `setRole`
 */
export function removeAccount(context: AccountContext, accountId: string): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, { accounts }) => {
    assertMay(context, accounts, { action: 'accounts.remove', projectId: null });
    return toRemoved(account);
  });
}

/** Somebody who has an account, and the text of a link. */
export interface Joining {
  readonly text: string;
  readonly accountId: string;
}

/**
 * The invitation that an account may take. Null when the link is not valid, when it is a link to get back in, or when
 * another account has begun to take it.
 */
export function findJoinable(
  accounts: readonly AccountRecord[],
  { text, accountId }: Joining,
  nowAt: number,
): AccountRecord | null {
  const invited = findAnyInvited(accounts, text, nowAt);
  if (invited === null || invited.state !== 'invited') return null;
  const takenBy = invited.invitation?.takenBy ?? null;
  return takenBy === null || takenBy === accountId ? invited : null;
}

/**
 * Adds the roles of an invitation to an existing account. Where both have a role in one project, the stronger one
 * stays. The account's sessions end. This takes three records. The first marks the invitation as taken by this account,
 * so if the process dies in between, the link works for this account only and continues where it stopped.
 * @throws PublicError RESOURCE_NOT_FOUND when the link is not valid for this account; AUTHENTICATION_ERROR when the
 * account is not live
 */
export async function joinInvitation(context: AccountContext, joining: Joining): Promise<AccountRecord> {
  const { accountId } = joining;
  let invitedId = '';
  await context.store.change((accounts) => {
    const invited = findJoinable(accounts, joining, nowOf(context));
    if (invited === null || invited.invitation === null) throw linkNotGood();
    if (findAccount(accounts, accountId).state !== 'live') throw forbidden('The account is not live.');
    invitedId = invited.id;
    return { ...invited, invitation: { ...invited.invitation, takenBy: accountId } };
  });
  const joined = await changeAccount(context, accountId, (account, { accounts }) => {
    const invited = findAccount(accounts, invitedId);
    if (account.state !== 'live' || invited.invitation?.takenBy !== accountId) throw linkNotGood();
    const isAdministrator = account.isAdministrator || invited.isAdministrator;
    return { ...account, isAdministrator, roles: mergeRoles(account.roles, invited.roles) };
  });
  await context.store.change((accounts) => toRemoved(findAccount(accounts, invitedId)));
  return toDone(joined);
}

function mergeRoles(own: readonly ProjectRole[], given: readonly ProjectRole[]): ProjectRole[] {
  const better = given.filter(({ projectId, role }) => {
    const standing = own.find((each) => each.projectId === projectId);
    return standing === undefined || !isAtMost(role, standing.role);
  });
  return [...own.filter((each) => !better.some(({ projectId }) => projectId === each.projectId)), ...better];
}
