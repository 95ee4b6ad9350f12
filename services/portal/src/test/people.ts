import type { AccountRecord } from '@playline/access-keys';
import type { TestPortal } from './open-portal.ts';

export const PASSWORD = 'correct horse battery';

let hash: Promise<string> | null = null;

/** Adds an account with a password. By default, the account is live and has no role. */
export async function addPerson(
  { parts }: TestPortal,
  login: string,
  rights: Partial<Pick<AccountRecord, 'state' | 'isAdministrator' | 'roles'>>,
): Promise<AccountRecord> {
  hash ??= parts.passwords.hash({ password: PASSWORD, login: 'a login' });
  const passwordHash = await hash;
  const account = {
    id: `id-of-${login}`,
    login,
    name: `Name of ${login}`,
    state: 'live' as const,
    createdAt: 1,
    isAdministrator: false,
    roles: [],
    passwordHash,
    passkeys: [],
    openId: null,
    invitation: null,
    sessionsFrom: 0,
    ...rights,
  };
  return (await parts.accounts.storeFor({ changedBy: 'a test', requestId: 'r' }).change(() => account))!;
}
