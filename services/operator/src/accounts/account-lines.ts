import { type AccountRecord, isRemoved } from '@playline/access-keys';
import type { Terminal } from '../command.ts';

/** The printable part of an account: no hash, no public key, nothing that can be used to sign in. */
export function toShown({ passwordHash, passkeys, invitation, openId, ...account }: AccountRecord) {
  return {
    ...account,
    hasPassword: passwordHash !== null,
    passkeys: passkeys.map(({ name, createdAt }) => ({ name, createdAt })),
    openIdIssuer: openId?.issuer ?? null,
    linkExpiresAt: invitation?.expiresAt ?? null,
  };
}

export function showAccount(account: AccountRecord, isJson: boolean, terminal: Terminal): void {
  terminal.result(isJson ? JSON.stringify(toShown(account)) : toLine(account));
}

/** Lists accounts that are not removed, the oldest first. */
export function listAccounts(accounts: readonly AccountRecord[], isJson: boolean, terminal: Terminal): void {
  const there = accounts.filter((account) => !isRemoved(account)).toSorted((a, b) => a.createdAt - b.createdAt);
  for (const account of there) showAccount(account, isJson, terminal);
  if (there.length === 0)
    terminal.progress(
      'There is no account: npm run accounts -- link prints the link that makes the first administrator.',
    );
}

function toLine(account: AccountRecord): string {
  const { id, login, name, state, isAdministrator, roles, passwordHash, passkeys, openId, invitation } = account;
  const ways = [
    ...(passwordHash === null ? [] : ['password']),
    ...(passkeys.length === 0 ? [] : [`${passkeys.length} passkeys`]),
    ...(openId === null ? [] : [openId.issuer]),
    ...(invitation === null ? [] : [`link until ${new Date(invitation.expiresAt).toISOString()}`]),
  ];
  const rights = [
    ...(isAdministrator ? ['administrator'] : []),
    ...roles.map(({ projectId, role }) => `${role} of ${projectId}`),
  ];
  const orNone = (words: readonly string[]) => (words.length === 0 ? '-' : words.join(', '));
  return [id, login || '-', name || '-', state, orNone(rights), orNone(ways)].join('  ');
}
