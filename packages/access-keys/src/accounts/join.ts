import { type AccountRecord, findAnyInvited, type ProjectRole } from './account.ts';
import { type AccountContext, changeAccount, findAccount, forbidden, linkNotGood, nowOf, toDone } from './context.ts';
import { toRemoved } from './invitations.ts';
import { isAtMost } from './roles.ts';

/** Somebody who has an account, and the text of a link. */
export interface Joining {
  readonly text: string;
  readonly accountId: string;
}

/**
 * The invitation that an account may take; null when the link is not good, is somebody's to get back in, or is being taken by
 * another account.
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
 * Gives what an invitation is to, to somebody who has an account already; of two roles in a project the one that may more
 * stays. Its sessions end. These are three records: the invitation says first whose it is, so whatever dies in between leaves
 * a link that is good for this account alone, and that goes on where it stopped.
 * @throws PublicError RESOURCE_NOT_FOUND when the link is not good for this account; AUTHENTICATION_ERROR when it is not live
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
