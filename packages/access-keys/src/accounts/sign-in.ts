import { isIPv6 } from 'node:net';
import { PublicError } from '@playline/errors';
import { type AccountRecord, findByLogin, findByPasskey, type Passkey } from './account.ts';
import { type AccountContext, assertSelf, changeAccount, conflict, findAccount, forbidden } from './context.ts';
import { assertNewOpenId, assertNewPasskey } from './invitations.ts';
import { normalizeLogin, toPersonName } from './login.ts';
import type { OneTimeTokens } from './one-time-tokens.ts';
import { findByOpenId, type OpenIdProof, type OpenIdSubject } from './open-id.ts';
import { type PasskeyOwner, type Passkeys, parsePasskeyResponse } from './passkeys.ts';
import type { Passwords } from './passwords.ts';
import type { CreatedSession, NewSession, Sessions, SignInClient } from './sessions.ts';

/** Attempts per login and network. Each known browser has a separate limit of the same size. */
const LOGIN_ATTEMPTS_MAX = 10;
/** Attempts per login across all networks. */
const LOGIN_ATTEMPTS_TOTAL_MAX = 200;
/** Sign-in attempts of any kind per address. */
const ADDRESS_ATTEMPTS_MAX = 50;
const CHALLENGES_MAX = 100;
const ATTEMPTS_WINDOW_S = 15 * 60;
const CHALLENGE_LIFETIME_S = 5 * 60;
/** Limited, because the settings page loads all of an account's sessions. */
const SESSIONS_MAX = 50;

const SIGN_IN_PURPOSE = 'passkey-sign-in';
const CREATION_PURPOSE = 'passkey-creation';

export interface SignInParts {
  /** @throws if the accounts cannot be read, in which case sign-in is impossible */
  readonly accounts: () => Promise<readonly AccountRecord[]>;
  readonly sessions: Sessions;
  readonly oneTimeTokens: OneTimeTokens;
  readonly passwords: Passwords;
  readonly passkeys: Passkeys;
  /** Calls `recordPasskeyUse` on behalf of the account. */
  readonly recordUse: (use: { accountId: string; passkeyId: string; counter: number }) => Promise<unknown>;
  readonly wallClockMs?: () => number;
}

/** The client, and the browser's previous session, which sign-in ends. */
export interface SignInContext extends SignInClient {
  readonly previousText: string | null;
  /** Returns the browser's id if the account has signed in with this browser before; otherwise null. */
  browserOf(accountId: string): string | null;
}

export interface SignedIn extends CreatedSession {
  readonly account: AccountRecord;
}

interface PasswordSignIn extends SignInContext {
  readonly login: string;
  readonly password: string;
}
interface PasskeySignIn extends SignInContext {
  /** The browser's response, as JSON. */
  readonly response: unknown;
}
interface OpenIdProofSignIn extends SignInContext {
  readonly proof: OpenIdProof;
}
type NamedResponse = Pick<PasskeySignIn, 'response'> & { readonly name: string };

export type SignIn = ReturnType<typeof createSignIn>;

/** Each sign-in starts a new session and ends the browser's previous session. */
export function createSignIn(parts: SignInParts) {
  const { oneTimeTokens, passkeys } = parts;
  const challengeFor = (purpose: string, value: string) =>
    oneTimeTokens.issue({ purpose, value, lifetimeS: CHALLENGE_LIFETIME_S });
  return {
    byPassword: (wanted: PasswordSignIn) => signInByPassword(parts, wanted),
    /** Returns the options for `navigator.credentials.get`. @throws PublicError TOO_MANY_REQUESTS_ERROR */
    passkeyRequest: async ({ address }: Pick<SignInContext, 'address'>): Promise<object> => {
      await countAttempt(parts, `request ${toNetwork(address)}`, CHALLENGES_MAX);
      return passkeys.request(await challengeFor(SIGN_IN_PURPOSE, ''));
    },
    byPasskey: (wanted: PasskeySignIn) => signInByPasskey(parts, wanted),
    byOpenId: (wanted: OpenIdProofSignIn) => signInByOpenId(parts, wanted),
    /** Returns the options for `navigator.credentials.create`. The account does not have to exist yet. */
    passkeyCreation: async (owner: PasskeyOwner): Promise<object> =>
      passkeys.creation(owner, await challengeFor(CREATION_PURPOSE, owner.id)),
    readPasskey: (wanted: NamedResponse) => readPasskey(parts, wanted),
  };
}

/**
 * @throws PublicError UNAUTHORISED_REQUEST for an unknown login, a wrong password or an inactive account, with the same
 * message and cost; TOO_MANY_REQUESTS_ERROR above the limits
 */
async function signInByPassword(parts: SignInParts, { login, password, ...from }: PasswordSignIn): Promise<SignedIn> {
  const account = findByLogin(await parts.accounts(), login);
  const counters = await countPasswordAttempt(parts, from, { login, accountId: account?.id ?? '' });
  const isCorrect = await parts.passwords.verify(account?.passwordHash ?? null, password);
  // The account may have been disabled, or the password changed, during hashing.
  const current = (await parts.accounts()).find(({ id }) => id === account?.id);
  const isUnchanged = current?.state === 'live' && current.passwordHash === account?.passwordHash;
  if (!isCorrect || current === undefined || !isUnchanged) throw refused('The login or password is incorrect.');
  for (const name of counters) await parts.oneTimeTokens.resetAttempts(name);
  return begin(parts, current, from);
}

/** Counts a password attempt. @returns the counters to reset if the password is correct */
async function countPasswordAttempt(
  parts: SignInParts,
  { address, browserOf }: Pick<SignInContext, 'address' | 'browserOf'>,
  { login, accountId }: { readonly login: string; readonly accountId: string },
): Promise<string[]> {
  const browser = accountId === '' ? null : browserOf(accountId);
  if (browser !== null) {
    const browserCounter = `browser ${browser}`;
    await countAttempt(parts, browserCounter, LOGIN_ATTEMPTS_MAX);
    return [browserCounter];
  }
  const network = toNetwork(address);
  const loginCounter = `login ${normalizeLogin(login)}`;
  const networkCounter = `${loginCounter} from ${network}`;
  await countAttempt(parts, `address ${network}`, ADDRESS_ATTEMPTS_MAX);
  await countAttempt(parts, networkCounter, LOGIN_ATTEMPTS_MAX);
  await countAttempt(parts, loginCounter, LOGIN_ATTEMPTS_TOTAL_MAX);
  return [networkCounter, loginCounter];
}

/** @throws PublicError see `signInByPassword` */
async function signInByPasskey(parts: SignInParts, { response: sent, ...from }: PasskeySignIn): Promise<SignedIn> {
  await countAttempt(parts, `address ${toNetwork(from.address)}`, ADDRESS_ATTEMPTS_MAX);
  const failure = refused('The passkey is unknown, or the page was open too long. Try again.');
  const response = parsePasskeyResponse(sent);
  if (response === null) throw failure;
  const challenge = await parts.oneTimeTokens.take({ purpose: SIGN_IN_PURPOSE, text: response.challenge });
  const account = findByPasskey(await parts.accounts(), response.id);
  const passkey = account?.passkeys.find(({ id }) => id === response.id);
  if (challenge === null || account === null || passkey === undefined || account.state !== 'live') throw failure;
  const verified = await parts.passkeys.verify(response, passkey);
  if (verified === null) throw failure;
  await parts.recordUse({ accountId: account.id, passkeyId: passkey.id, counter: verified.counter });
  return begin(parts, account, from);
}

/** @throws PublicError UNAUTHORISED_REQUEST unless an active account is linked to this identity */
async function signInByOpenId(parts: SignInParts, { proof, ...from }: OpenIdProofSignIn): Promise<SignedIn> {
  const account = findByOpenId(await parts.accounts(), proof.openId);
  if (account === null || account.state !== 'live')
    throw refused(
      'No account is linked to this identity. Request an invitation from a project owner or an administrator, or sign in another way and link the provider in your settings.',
    );
  return begin(parts, account, { ...from, signedInAt: signedInAtOf(proof) });
}

/** If the provider reports no time, the sign-in does not count as recent. */
export const signedInAtOf = ({ authenticatedAt }: OpenIdProof): number => authenticatedAt ?? 0;

/** Returns the new passkey and its owner. @throws PublicError VALIDATION_ERROR for an invalid response */
async function readPasskey(
  { oneTimeTokens, passkeys, wallClockMs = Date.now }: SignInParts,
  { response: sent, name }: NamedResponse,
) {
  const passkeyName = toPersonName(name);
  const failure = new PublicError('VALIDATION_ERROR', {
    message: 'The passkey was not created, or the page was open too long. Try again.',
  });
  const response = parsePasskeyResponse(sent);
  if (response === null) throw failure;
  const ownerId = await oneTimeTokens.take({ purpose: CREATION_PURPOSE, text: response.challenge });
  const created = ownerId === null ? null : await passkeys.read(response);
  if (ownerId === null || created === null) throw failure;
  return { ownerId, passkey: { ...created, name: passkeyName, createdAt: wallClockMs() } };
}

/** Counts each attempt before checking credentials, so that concurrent attempts cannot exceed the limit. */
async function countAttempt({ oneTimeTokens }: SignInParts, name: string, max: number): Promise<void> {
  if ((await oneTimeTokens.countAttempt({ name, windowS: ATTEMPTS_WINDOW_S })) <= max) return;
  throw new PublicError('TOO_MANY_REQUESTS_ERROR', {
    message: 'Too many attempts. Wait 15 minutes, or sign in with a passkey.',
    retryAfterS: ATTEMPTS_WINDOW_S,
  });
}

/** Starts a new session, because an attacker may have planted the previous session. */
async function begin(
  { sessions }: SignInParts,
  account: AccountRecord,
  { previousText, browserOf: _, ...from }: SignInContext & Pick<NewSession, 'signedInAt'>,
): Promise<SignedIn> {
  const previous = previousText === null ? null : await sessions.find(previousText);
  if (previous !== null) await sessions.end(previous.id);
  for (const { id } of (await sessions.list(account.id)).slice(SESSIONS_MAX - 1)) await sessions.end(id);
  const owner = { accountId: account.id, accountRevision: account.revision };
  return { account, ...(await sessions.create({ ...owner, ...from })) };
}

const refused = (message: string) => new PublicError('UNAUTHORISED_REQUEST', { message });

/** IPv6 addresses with the same 64-bit prefix are counted together. */
function toNetwork(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address;
  const [start = '', end] = address.split('%')[0]!.split('::');
  const first = start === '' ? [] : start.split(':');
  const last = end === undefined || end === '' ? [] : end.split(':');
  const groups = end === undefined ? first : [...first, ...Array(8 - first.length - last.length).fill('0'), ...last];
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}

const PASSKEYS_MAX = 20;

interface OwnAccount {
  readonly accountId: string;
}
/**
 * Sets the password; null removes the password if another credential remains.
 * @throws PublicError AUTHENTICATION_ERROR unless the account is active and belongs to the actor
 */
export function setPassword(
  context: AccountContext,
  { accountId, passwordHash }: OwnAccount & { readonly passwordHash: string | null },
): Promise<AccountRecord> {
  return changeOwnAccount(context, accountId, (account) => ({ ...account, passwordHash }));
}

/** @throws PublicError CONFLICT_ERROR if the passkey is registered or the limit is reached; see also `setPassword` */
export function addPasskey(
  context: AccountContext,
  { accountId, passkey }: OwnAccount & { readonly passkey: Passkey },
): Promise<AccountRecord> {
  return changeOwnAccount(context, accountId, (account, accounts) => {
    assertNewPasskey(accounts, passkey);
    if (account.passkeys.length >= PASSKEYS_MAX)
      throw conflict(`An account can have at most ${PASSKEYS_MAX} passkeys. Remove a passkey first.`);
    return { ...account, passkeys: [...account.passkeys, passkey] };
  });
}

/** @throws PublicError RESOURCE_NOT_FOUND for an unknown passkey; CONFLICT_ERROR for the last credential */
export function removePasskey(
  context: AccountContext,
  { accountId, passkeyId }: OwnAccount & { readonly passkeyId: string },
): Promise<AccountRecord> {
  return changeOwnAccount(context, accountId, (account) => {
    const passkeys = account.passkeys.filter(({ id }) => id !== passkeyId);
    if (passkeys.length === account.passkeys.length)
      throw new PublicError('RESOURCE_NOT_FOUND', { message: 'Your account does not have this passkey.' });
    return { ...account, passkeys };
  });
}

/** @throws PublicError CONFLICT_ERROR if the account or the identity is already linked; see also `setPassword` */
export function linkOpenId(
  context: AccountContext,
  { accountId, openId }: OwnAccount & { readonly openId: OpenIdSubject },
): Promise<AccountRecord> {
  return changeOwnAccount(context, accountId, (account, accounts) => {
    if (account.openId !== null) throw conflict('The account is already linked. Unlink the provider first.');
    assertNewOpenId(accounts, openId);
    return { ...account, openId };
  });
}

/** @throws PublicError CONFLICT_ERROR for the last credential or an unlinked account; see also `setPassword` */
export function unlinkOpenId(context: AccountContext, { accountId }: OwnAccount): Promise<AccountRecord> {
  return changeOwnAccount(context, accountId, (account) => {
    if (account.openId === null) throw conflict('The account is not linked to a provider.');
    return { ...account, openId: null };
  });
}

/** Renames the account; sessions stay valid. @throws PublicError VALIDATION_ERROR; see also `setPassword` */
export async function renameAccount(
  context: AccountContext,
  { accountId, name }: OwnAccount & { readonly name: string },
): Promise<AccountRecord> {
  const newName = toPersonName(name);
  assertSelf(context, accountId);
  return context.store.change((accounts) => ({ ...findLive(accounts, accountId), name: newName }));
}

/**
 * Stores a passkey's signature counter, which increases with each use unless the device always sends 0.
 * @returns null if there is nothing to store
 * @throws PublicError AUTHENTICATION_ERROR if the counter has not increased or the account is inactive
 */
export async function recordPasskeyUse(
  { store }: Pick<AccountContext, 'store'>,
  { accountId, passkeyId, counter }: OwnAccount & { readonly passkeyId: string; readonly counter: number },
): Promise<AccountRecord | null> {
  return store.change((accounts) => {
    const account = findLive(accounts, accountId);
    const passkey = account.passkeys.find(({ id }) => id === passkeyId);
    if (passkey === undefined) throw forbidden('The passkey was removed.');
    if (counter === 0 && passkey.counter === 0) return null;
    if (counter <= passkey.counter) throw forbidden('The passkey was used elsewhere and may be a copy. Remove it.');
    return { ...account, passkeys: account.passkeys.map((each) => (each === passkey ? { ...each, counter } : each)) };
  });
}

async function changeOwnAccount(
  context: AccountContext,
  accountId: string,
  change: (account: AccountRecord, accounts: readonly AccountRecord[]) => AccountRecord,
): Promise<AccountRecord> {
  assertSelf(context, accountId);
  return changeAccount(context, accountId, (_, accounts) => {
    const next = change(findLive(accounts, accountId), accounts);
    if (next.passwordHash === null && next.passkeys.length === 0 && next.openId === null)
      throw conflict('This is your only way to sign in. Add a password or a passkey first.');
    return next;
  });
}

function findLive(accounts: readonly AccountRecord[], id: string): AccountRecord {
  const account = findAccount(accounts, id);
  if (account.state !== 'live') throw forbidden('The account is not active.');
  return account;
}
