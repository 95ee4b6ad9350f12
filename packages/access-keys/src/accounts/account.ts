import { type AccountRecord, accountCodec, TOPICS } from '@playline/contracts';
import type { RecordKind } from '../records/record-log.ts';
import { normalizeLogin } from './login.ts';
import { hashToken } from './one-time-texts.ts';
import { isAtMost, mayDo, roleIn } from './roles.ts';

export type { AccountRecord, Passkey, ProjectRole } from '@playline/contracts';

/** People who sign in to the portal, one record each. */
export const ACCOUNTS: RecordKind<AccountRecord> = {
  name: 'accounts',
  topic: TOPICS.accounts.name,
  codec: accountCodec,
  idOf: ({ id }) => id,
};

/**
 * The account, live or disabled, that signs in with a login; null when there is none.
 * @param login as it was typed
 */
export function findByLogin(accounts: readonly AccountRecord[], login: string): AccountRecord | null {
  const wanted = normalizeLogin(login);
  // Accounts without a login have ''. An empty input must match none of them.
  return wanted === '' ? null : (accounts.find((account) => account.login === wanted) ?? null);
}

/**
 * The account that has a passkey; null when none has.
 * @param passkeyId base64url
 */
export function findByPasskey(accounts: readonly AccountRecord[], passkeyId: string): AccountRecord | null {
  return accounts.find(({ passkeys }) => passkeys.some(({ id }) => id === passkeyId)) ?? null;
}

/**
 * The account that a link was made for, regardless of who uses it; null when the link was used, was revoked or is older
 * than 72 hours, or when the inviter may no longer make the invitation.
 */
export function findAnyInvited(accounts: readonly AccountRecord[], text: string, nowAt: number): AccountRecord | null {
  const hash = hashToken(text);
  const account = accounts.find(({ invitation }) => invitation?.hash === hash);
  if (account?.invitation == null || account.invitation.expiresAt <= nowAt) return null;
  return isStillVouchedFor(accounts, account) ? account : null;
}

/**
 * Whether the account that made an invitation may still do so. Operators' commands have no account. An invitation is
 * checked when its acceptance begins.
 */
function isStillVouchedFor(
  accounts: readonly AccountRecord[],
  { state, invitation, changedBy, isAdministrator, roles }: AccountRecord,
): boolean {
  if (state !== 'invited' || invitation?.takenBy !== null) return true;
  const inviter = accounts.find(({ id }) => id === changedBy);
  if (inviter === undefined || inviter.isAdministrator) return inviter === undefined || inviter.state === 'live';
  return (
    !isAdministrator &&
    roles.every(({ projectId, role }) => {
      const own = roleIn(inviter, projectId);
      const may = mayDo({ account: inviter, action: 'members.invite', projectId });
      return may && own !== null && isAtMost(role, own);
    })
  );
}

/**
 * True for an account whose name and login were erased, or whose invitation was revoked. It cannot be changed any more.
 */
export function isRemoved({ state, login }: Pick<AccountRecord, 'state' | 'login'>): boolean {
  return state === 'disabled' && login === '';
}

/** Whether the instance has an administrator who can sign in, or whom another administrator can let back in. */
export function hasAdministrator(accounts: readonly AccountRecord[]): boolean {
  return accounts.some(({ isAdministrator, state }) => isAdministrator && state !== 'invited');
}
