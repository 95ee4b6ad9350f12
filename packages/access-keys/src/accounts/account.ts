import { type AccountRecord, accountCodec, TOPICS } from '@playline/contracts';
import type { RecordKind } from '../records/record-log.ts';
import { normalizeLogin } from './login.ts';
import { hashToken } from './one-time-texts.ts';
import { isAtMost, mayDo, roleIn } from './roles.ts';

export type { AccountRecord, Passkey, ProjectRole } from '@playline/contracts';

/** One record for each person. */
export const ACCOUNTS: RecordKind<AccountRecord> = {
  name: 'accounts',
  topic: TOPICS.accounts.name,
  codec: accountCodec,
  idOf: ({ id }) => id,
};

/** The account, live or disabled, of a login as typed; null without one. */
export function findByLogin(accounts: readonly AccountRecord[], login: string): AccountRecord | null {
  const wanted = normalizeLogin(login);
  // Accounts without a login have '', which an empty input must not match.
  return wanted === '' ? null : (accounts.find((account) => account.login === wanted) ?? null);
}

/** @param passkeyId base64url */
export const findByPasskey = (accounts: readonly AccountRecord[], passkeyId: string): AccountRecord | null =>
  accounts.find(({ passkeys }) => passkeys.some(({ id }) => id === passkeyId)) ?? null;

/** The account of a link; null when the link was used, revoked or has expired, or its inviter may no longer invite. */
export function findAnyInvited(accounts: readonly AccountRecord[], text: string, nowAt: number): AccountRecord | null {
  const hash = hashToken(text);
  const account = accounts.find(({ invitation }) => invitation?.hash === hash);
  if (account?.invitation == null || account.invitation.expiresAt <= nowAt) return null;
  return isStillPermitted(accounts, account) ? account : null;
}

/** Whether the inviter may still invite. Operator commands have no account. */
function isStillPermitted(
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

/** True after the name and login were erased, or the invitation was revoked. Such an account cannot be changed. */
export const isRemoved = ({ state, login }: Pick<AccountRecord, 'state' | 'login'>): boolean =>
  state === 'disabled' && login === '';

/** Whether there is an administrator who can sign in, or whose access can be reset. */
export const hasAdministrator = (accounts: readonly AccountRecord[]): boolean =>
  accounts.some(({ isAdministrator, state }) => isAdministrator && state !== 'invited');
