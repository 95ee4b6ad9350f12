import type { AccountRecord, ProjectRole } from './account.ts';
import { type AccountContext, assertMay, changeAccount, conflict } from './context.ts';
import { toRemoved } from './invitations.ts';
import { type Role, roleIn } from './roles.ts';

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
