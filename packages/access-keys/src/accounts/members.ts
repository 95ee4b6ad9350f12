import type { AccountRecord, ProjectRole } from './account.ts';
import { type AccountContext, assertMay, changeAccount, conflict } from './context.ts';
import { toRemoved } from './invitations.ts';
import { type Role, roleIn } from './roles.ts';

/**
 * Says what an account is in a project; null takes it out. Owners change members of their project, administrators everybody.
 * @throws PublicError AUTHENTICATION_ERROR when the one who asks may not, and as `changeAccount`
 */
export function setRole(
  context: AccountContext,
  { accountId, projectId, role }: { accountId: string; projectId: string; role: Role | null },
): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, { accounts }) => {
    assertMay(context, accounts, { action: 'members.change', projectId });
    // An owner could else find out by its id who has an account.
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
    // A link that is open would let somebody in later.
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
 * Ends an account for ever: its name, login and credentials go from the record, its id stays in what it has done.
 * @throws PublicError as `setRole`
 */
export function removeAccount(context: AccountContext, accountId: string): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, { accounts }) => {
    assertMay(context, accounts, { action: 'accounts.remove', projectId: null });
    return toRemoved(account);
  });
}
