import { type AccountRecord, accountCodec, TOPICS } from '@playline/contracts';
import type { RecordKind } from '../records/record-log.ts';
import { normalizeLogin } from './login.ts';
import { hashToken } from './one-time-tokens.ts';
import { isAtMost, mayDo, roleIn } from './roles.ts';

export type { AccountRecord, Passkey, ProjectRole } from '@playline/contracts';

/** Accounts, one record per person. */
export const ACCOUNTS: RecordKind<AccountRecord> = {
  name: 'accounts',
  topic: TOPICS.accounts.name,
  codec: accountCodec,
  idOf: ({ id }) => id,
};

/** Finds a live or disabled account by the login that a person typed. */
export function findByLogin(accounts: readonly AccountRecord[], login: string): AccountRecord | null {
  const normalised = normalizeLogin(login);
  // Accounts without a login store '', so empty input must not match them.
  return normalised === '' ? null : (accounts.find((account) => account.login === normalised) ?? null);
}

/** @param passkeyId base64url */
export const findByPasskey = (accounts: readonly AccountRecord[], passkeyId: string): AccountRecord | null =>
  accounts.find(({ passkeys }) => passkeys.some(({ id }) => id === passkeyId)) ?? null;

/** Finds the account for a link. Null if the link is invalid, or the inviter may no longer invite. */
export function findByLink(accounts: readonly AccountRecord[], text: string, nowAt: number): AccountRecord | null {
  const hash = hashToken(text);
  const account = accounts.find(({ invitation }) => invitation?.hash === hash);
  if (account?.invitation == null || account.invitation.expiresAt <= nowAt) return null;
  return mayStillInvite(accounts, account) ? account : null;
}

/** Returns whether the inviter still has permission to invite. Invitations from operator commands stay valid. */
function mayStillInvite(
  accounts: readonly AccountRecord[],
  { state, invitation, changedBy, isAdministrator, roles }: AccountRecord,
): boolean {
  if (state !== 'invited' || invitation?.takenBy !== null) return true;
  const inviter = accounts.find(({ id }) => id === changedBy);
  if (inviter === undefined || inviter.isAdministrator) return inviter === undefined || inviter.state === 'live';
  return (
    !isAdministrator &&
    roles.every(({ projectId, role }) => {
      const inviterRole = roleIn(inviter, projectId);
      const mayInvite = mayDo({ account: inviter, action: 'members.invite', projectId });
      return mayInvite && inviterRole !== null && isAtMost(role, inviterRole);
    })
  );
}

/** Returns whether an account was removed or its invitation revoked. A removed account can no longer be changed. */
export const isRemoved = ({ state, login }: Pick<AccountRecord, 'state' | 'login'>): boolean =>
  state === 'disabled' && login === '';

/** Returns whether any administrator can sign in or can regain access through a reset. */
export const hasAdministrator = (accounts: readonly AccountRecord[]): boolean =>
  accounts.some(({ isAdministrator, state }) => isAdministrator && state !== 'invited');
