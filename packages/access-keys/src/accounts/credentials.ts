import { PublicError } from '@playline/errors';
import { toDone } from '../records/record-store.ts';
import type { AccountRecord, Passkey } from './account.ts';
import { type AccountContext, assertSelf, changeAccount, conflict, findAccount, forbidden } from './context.ts';
import { assertNewOpenId, assertNewPasskey } from './invitations.ts';
import { toPersonName } from './login.ts';
import type { OpenIdSubject } from './open-id.ts';

const PASSKEYS_MAX = 20;

/** What somebody does to their own account. */
interface Own {
  readonly accountId: string;
}

/**
 * Gives an account another password. Null removes it, if a passkey or a provider is left to sign in with.
 * @param own `passwordHash` as `Passwords.hash` returns it
 * @throws PublicError AUTHENTICATION_ERROR for another person's account, or one that is not live
 */
export function setPassword(
  context: AccountContext,
  { accountId, passwordHash }: Own & { readonly passwordHash: string | null },
): Promise<AccountRecord> {
  return changeOwn(context, accountId, (account) => ({ ...account, passwordHash }));
}

/** @throws PublicError CONFLICT_ERROR for a passkey that is in use, or one too many; and as `setPassword` */
export function addPasskey(
  context: AccountContext,
  { accountId, passkey }: Own & { readonly passkey: Passkey },
): Promise<AccountRecord> {
  return changeOwn(context, accountId, (account, accounts) => {
    assertNewPasskey(accounts, passkey);
    if (account.passkeys.length >= PASSKEYS_MAX)
      throw conflict(`An account has ${PASSKEYS_MAX} passkeys at most: remove one first.`);
    return { ...account, passkeys: [...account.passkeys, passkey] };
  });
}

/**
 *
 * @throws PublicError RESOURCE_NOT_FOUND when this account has no such passkey, even if another one has it;
 * CONFLICT_ERROR when it is the last thing that the account can sign in with; and as `setPassword`
 */
export function removePasskey(
  context: AccountContext,
  { accountId, passkeyId }: Own & { readonly passkeyId: string },
): Promise<AccountRecord> {
  return changeOwn(context, accountId, (account) => {
    const passkeys = account.passkeys.filter(({ id }) => id !== passkeyId);
    if (passkeys.length === account.passkeys.length)
      throw new PublicError('RESOURCE_NOT_FOUND', { message: 'You have no such passkey.' });
    return { ...account, passkeys };
  });
}

/**
 * Lets an account sign in by a provider too.
 * @throws PublicError CONFLICT_ERROR when it does by one already, or when another account signs in as the same; and as
 *   `setPassword`
 */
export function linkOpenId(
  context: AccountContext,
  { accountId, openId }: Own & { readonly openId: OpenIdSubject },
): Promise<AccountRecord> {
  return changeOwn(context, accountId, (account, accounts) => {
    if (account.openId !== null) throw conflict('The account is linked already: unlink it first.');
    assertNewOpenId(accounts, openId);
    return { ...account, openId };
  });
}

/** @throws PublicError CONFLICT_ERROR for the last thing that the account signs in with, or for none; and as `setPassword` */
export function unlinkOpenId(context: AccountContext, { accountId }: Own): Promise<AccountRecord> {
  return changeOwn(context, accountId, (account) => {
    if (account.openId === null) throw conflict('The account is not linked.');
    return { ...account, openId: null };
  });
}

/** What somebody is called. Their sessions go on. @throws PublicError VALIDATION_ERROR; and as `setPassword` */
export async function renameAccount(
  context: AccountContext,
  { accountId, name }: Own & { readonly name: string },
): Promise<AccountRecord> {
  const given = toPersonName(name);
  assertSelf(context, accountId);
  const changed = await context.store.change((accounts) => ({ ...findLive(accounts, accountId), name: given }));
  return toDone(changed);
}

/**
 * Stores the counter of a passkey's device. Some devices do not count and always send 0. Any other counter grows with
 * each use, unless the passkey was copied.
 * @returns null when there was nothing to store
 * @throws PublicError AUTHENTICATION_ERROR when the counter has not grown, or the account is not live
 */
export async function notePasskeyUse(
  { store }: Pick<AccountContext, 'store'>,
  { accountId, passkeyId, counter }: Own & { readonly passkeyId: string; readonly counter: number },
): Promise<AccountRecord | null> {
  return store.change((accounts) => {
    const account = findLive(accounts, accountId);
    const passkey = account.passkeys.find(({ id }) => id === passkeyId);
    if (passkey === undefined) throw forbidden('The passkey was removed.');
    if (counter === 0 && passkey.counter === 0) return null;
    if (counter <= passkey.counter)
      throw forbidden('The passkey has been used elsewhere: it may be a copy. Remove it.');
    return {
      ...account,
      passkeys: account.passkeys.map((each) => (each === passkey ? { ...each, counter } : each)),
    };
  });
}

async function changeOwn(
  context: AccountContext,
  accountId: string,
  change: (account: AccountRecord, accounts: readonly AccountRecord[]) => AccountRecord,
): Promise<AccountRecord> {
  assertSelf(context, accountId);
  return changeAccount(context, accountId, (_, { accounts }) => {
    const next = change(findLive(accounts, accountId), accounts);
    if (next.passwordHash === null && next.passkeys.length === 0 && next.openId === null)
      throw conflict('The account would have nothing left to sign in with: add a password or a passkey first.');
    return next;
  });
}

function findLive(accounts: readonly AccountRecord[], id: string): AccountRecord {
  const account = findAccount(accounts, id);
  if (account.state !== 'live') throw forbidden('The account is not live.');
  return account;
}
