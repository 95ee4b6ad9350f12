// Invitations, the first administrator's link, and account changes by owners and administrators.
import { randomUUID } from 'node:crypto';
import { PublicError } from '@playline/errors';
import type { ReceivedRecord, RecordLogReader } from '../records/record-log.ts';
import type { Content } from '../records/record-store.ts';
import { isLater } from '../records/record-view.ts';
import {
  type AccountRecord,
  findByLink,
  findByLogin,
  hasAdministrator,
  type Passkey,
  type ProjectRole,
} from './account.ts';
import {
  type AccountContext,
  assertAllowed,
  changeAccount,
  conflict,
  findAccount,
  forbidden,
  invalid,
  invalidLink,
  readClock,
  withoutSessions,
} from './context.ts';
import { toLogin, toPersonName } from './login.ts';
import { createToken, hashToken, type OneTimeTokens } from './one-time-tokens.ts';
import { findByOpenId, type OpenIdSubject } from './open-id.ts';
import { isAtMost, type Role, roleIn } from './roles.ts';

/** Lifetime of invitation and reset links. */
export const INVITATION_MS = 72 * 60 * 60_000;

/** At least one credential is required. */
export interface NewCredentials {
  /** Returned by `Passwords.hash`. */
  readonly passwordHash: string | null;
  readonly passkey: Passkey | null;
  readonly openId?: OpenIdSubject;
}

export interface NewPerson extends NewCredentials {
  readonly login: string;
  readonly name: string;
}

export interface Invitation {
  /** Suggested name, which the person may change. */
  readonly name: string;
  readonly roles: readonly ProjectRole[];
  readonly isAdministrator: boolean;
}

/** An invited account, and the token in its link, which is returned only once. */
export interface Invited {
  readonly account: AccountRecord;
  /** 256 bits, base64url. */
  readonly text: string;
}

/**
 * @param person.id account id for which the passkey was created; default: a new id
 * @throws PublicError CONFLICT_ERROR if an administrator exists, VALIDATION_ERROR for an invalid login or name
 */
export async function createFirstAdministrator(
  context: AccountContext,
  { id, ...person }: NewPerson & { readonly id?: string },
): Promise<AccountRecord> {
  return context.store.change((accounts) => {
    if (hasAdministrator(accounts)) throw administratorExists();
    const blank = { ...toBlank('', readClock(context)), isAdministrator: true };
    if (accounts.some((each) => each.id === id)) throw conflict('This account already exists.');
    return toLive(id === undefined ? blank : { ...blank, id }, person, accounts);
  });
}

/**
 * Creates an account for an invited person.
 * @throws PublicError AUTHENTICATION_ERROR if the inviter has fewer permissions; VALIDATION_ERROR if no role is given
 */
export async function invite(context: AccountContext, wanted: Invitation): Promise<Invited> {
  if (wanted.roles.length === 0 && !wanted.isAdministrator) throw invalid('Choose a role for the person.');
  assertRoles(wanted.roles);
  const name = toPersonName(wanted.name);
  const text = createToken();
  const account = await context.store.change((accounts) => {
    assertMayInvite(context, accounts, wanted);
    const permissions = { isAdministrator: wanted.isAdministrator, roles: [...wanted.roles] };
    return { ...toBlank(name, readClock(context)), ...permissions, invitation: toInvitation(text, context) };
  });
  return { account, text };
}

/** Finds the account for a link. Null if the link is invalid or reserved by an existing account. */
export function findInvited(accounts: readonly AccountRecord[], text: string, nowAt: number): AccountRecord | null {
  const account = findByLink(accounts, text, nowAt);
  return (account?.invitation?.takenBy ?? null) === null ? account : null;
}

/**
 * Activates an account with an invitation or reset link. Each link works once.
 * @param person.login used only if the account has no login
 * @throws PublicError RESOURCE_NOT_FOUND for an invalid link, CONFLICT_ERROR for a login in use
 */
export async function acceptInvitation(
  context: AccountContext,
  { text, person }: { readonly text: string; readonly person: NewPerson },
): Promise<AccountRecord> {
  const accepted = await context.store.change((accounts) => {
    const account = findInvited(accounts, text, readClock(context));
    if (account === null || account.state === 'disabled') throw invalidLink();
    const login = account.login === '' ? person.login : account.login;
    return withoutSessions(account, toLive(account, { ...person, login }, accounts));
  });
  await context.sessions.endAll(accepted.id);
  return accepted;
}

/** @throws PublicError AUTHENTICATION_ERROR without permission to invite, CONFLICT_ERROR for an accepted invitation */
export function revokeInvitation(context: AccountContext, id: string): Promise<AccountRecord> {
  return changeAccount(context, id, (account, accounts) => {
    assertMayInvite(context, accounts, account);
    if (account.state !== 'invited') throw conflict('The invitation was already accepted. Change the account instead.');
    return toRemoved(account);
  });
}

/**
 * Removes all credentials and creates a link that is valid for 72 hours. Available only to operator commands.
 * @throws PublicError CONFLICT_ERROR for a disabled account
 */
export async function resetAccess(context: AccountContext, id: string): Promise<Invited> {
  if (context.actorId !== null) throw forbidden('Reset access on the command line: npm run accounts -- reset.');
  const text = createToken();
  const account = await changeAccount(context, id, (account) => {
    if (account.state === 'disabled') throw conflict('The account is disabled. Enable it first.', { account: id });
    return { ...account, passwordHash: null, passkeys: [], openId: null, invitation: toInvitation(text, context) };
  });
  return { account, text };
}

/** Retains the id, because audit records refer to it. */
function toRemoved(account: AccountRecord): Content<AccountRecord> {
  const erased = { name: '', login: '', isAdministrator: false, roles: [], invitation: null };
  return { ...account, ...erased, state: 'disabled', passwordHash: null, passkeys: [], openId: null };
}

/** @throws PublicError VALIDATION_ERROR for two roles in one project */
function assertRoles(roles: readonly ProjectRole[]): void {
  if (new Set(roles.map(({ projectId }) => projectId)).size < roles.length)
    throw invalid('A person can have only one role per project.');
}

function assertMayInvite(
  context: AccountContext,
  accounts: readonly AccountRecord[],
  { roles, isAdministrator }: Pick<Invitation, 'roles' | 'isAdministrator'>,
): void {
  if (isAdministrator) assertAllowed(context, accounts, { action: 'accounts.invite', projectId: null });
  for (const { projectId, role } of roles) {
    assertAllowed(context, accounts, { action: 'members.invite', projectId });
    const inviter = context.actorId === null ? null : findAccount(accounts, context.actorId);
    if (inviter === null || inviter.isAdministrator) continue;
    const inviterRole = roleIn(inviter, projectId);
    if (inviterRole === null || !isAtMost(role, inviterRole))
      throw forbidden('You cannot grant more permissions than you have.', { project: projectId });
  }
}

const toInvitation = (text: string, context: AccountContext): NonNullable<AccountRecord['invitation']> => ({
  hash: hashToken(text),
  expiresAt: readClock(context) + INVITATION_MS,
  takenBy: null,
});

function toBlank(name: string, createdAt: number): Content<AccountRecord> {
  const empty = { login: '', passwordHash: null, passkeys: [], openId: null, invitation: null, sessionsFrom: 0 };
  return { id: randomUUID(), name, state: 'invited', isAdministrator: false, roles: [], createdAt, ...empty };
}

function toLive(
  account: Content<AccountRecord>,
  person: NewPerson,
  accounts: readonly AccountRecord[],
): Content<AccountRecord> {
  const { passwordHash, passkey, openId = null } = person;
  if (passwordHash === null && passkey === null && openId === null) throw invalid('Set a password or a passkey.');
  const login = toLogin(person.login);
  const current = findByLogin(accounts, login);
  if (current !== null && current.id !== account.id) throw conflict('This login is taken.', { login });
  if (passkey !== null) assertNewPasskey(accounts, passkey);
  if (openId !== null) assertNewOpenId(accounts, openId);
  const credentials = { passwordHash, passkeys: passkey === null ? [] : [passkey], openId };
  return { ...account, ...credentials, login, name: toPersonName(person.name), state: 'live', invitation: null };
}

/** @throws PublicError CONFLICT_ERROR if any account already has the passkey */
export function assertNewPasskey(accounts: readonly AccountRecord[], { id }: Passkey): void {
  if (accounts.some(({ passkeys }) => passkeys.some((each) => each.id === id)))
    throw conflict('This passkey is already in use.');
}

/** @throws PublicError CONFLICT_ERROR if any account is already linked to the identity */
export function assertNewOpenId(accounts: readonly AccountRecord[], openId: OpenIdSubject): void {
  if (findByOpenId(accounts, openId) !== null)
    throw conflict('Another account already signs in with this provider identity.');
}

const administratorExists = () => conflict('The installation has an administrator. Request an invitation.');

/** Lifetime of the first administrator's link. */
export const FIRST_LINK_LIFETIME_S = 15 * 60;
const PURPOSE = 'first-administrator';

interface FirstLinkParts {
  readonly log: RecordLogReader<AccountRecord>;
  readonly oneTimeTokens: Pick<OneTimeTokens, 'issue' | 'read' | 'take'>;
}

/**
 * Creates the link's token. Reads administrators from the log, because an emptied Redis must not grant access.
 * @throws PublicError CONFLICT_ERROR if an administrator exists; the log's error if the log cannot be read
 */
export async function issueFirstLink({ log, oneTimeTokens }: FirstLinkParts): Promise<string> {
  if (hasAdministrator(await readLog(log))) throw administratorExists();
  return oneTimeTokens.issue({ purpose: PURPOSE, value: '', lifetimeS: FIRST_LINK_LIFETIME_S });
}

/** Returns whether the link is still valid, without consuming it. */
export async function isFirstLink(
  { oneTimeTokens }: Pick<FirstLinkParts, 'oneTimeTokens'>,
  text: string,
): Promise<boolean> {
  return (await oneTimeTokens.read({ purpose: PURPOSE, text })) !== null;
}

/**
 * Creates the first administrator. Only success consumes the link; after a failed attempt it stays valid.
 * @param person.id see `createFirstAdministrator`
 * @throws PublicError RESOURCE_NOT_FOUND if the link is invalid or an administrator exists; otherwise see
 * `createFirstAdministrator`
 */
export async function acceptFirstLink(
  context: AccountContext & Pick<FirstLinkParts, 'oneTimeTokens'>,
  { text, person }: { readonly text: string; readonly person: Parameters<typeof createFirstAdministrator>[1] },
): Promise<AccountRecord> {
  if (!(await isFirstLink(context, text))) throw invalidLink();
  const consume = () => context.oneTimeTokens.take({ purpose: PURPOSE, text });
  try {
    const account = await createFirstAdministrator(context, person);
    await consume();
    return account;
  } catch (fault) {
    const isConflict = fault instanceof PublicError && fault.code === 'CONFLICT_ERROR';
    if (!isConflict || !hasAdministrator(await context.store.readAll())) throw fault;
    await consume();
    throw invalidLink();
  }
}

async function readLog(log: RecordLogReader<AccountRecord>): Promise<AccountRecord[]> {
  const last = new Map<string, ReceivedRecord<AccountRecord>>();
  for (const range of await log.bounds())
    for (const received of await log.read(range))
      if (isLater(received, last.get(received.record.id))) last.set(received.record.id, received);
  return [...last.values()].map(({ record }) => record);
}

/** Sets an account's role in a project; null removes the role. @throws PublicError AUTHENTICATION_ERROR */
export function setRole(
  context: AccountContext,
  { accountId, projectId, role }: { accountId: string; projectId: string; role: Role | null },
): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, accounts) => {
    assertAllowed(context, accounts, { action: 'members.change', projectId });
    // Otherwise an owner could probe for existing account ids.
    if (roleIn(account, projectId) === null)
      assertAllowed(context, accounts, { action: 'accounts.change', projectId: null });
    const roles = account.roles.filter((each) => each.projectId !== projectId);
    if (role !== null) roles.push({ projectId, role });
    return { ...account, roles };
  });
}

/** @throws PublicError see `setRole` */
export function setAdministrator(
  context: AccountContext,
  { accountId, isAdministrator }: { accountId: string; isAdministrator: boolean },
): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, accounts) => {
    assertAllowed(context, accounts, { action: 'accounts.change', projectId: null });
    return { ...account, isAdministrator };
  });
}

/** Preserves the account's roles for `enableAccount`. @throws PublicError see `setRole` */
export function disableAccount(context: AccountContext, accountId: string): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, accounts) => {
    assertAllowed(context, accounts, { action: 'accounts.change', projectId: null });
    if (account.state === 'invited') throw conflict('The invitation is still pending. Revoke it instead.');
    // A pending link would let the person sign in again.
    return { ...account, state: 'disabled', invitation: null };
  });
}

/** @throws PublicError see `setRole` */
export function enableAccount(context: AccountContext, accountId: string): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, accounts) => {
    assertAllowed(context, accounts, { action: 'accounts.change', projectId: null });
    if (account.state !== 'disabled') throw conflict('The account is not disabled.');
    return { ...account, state: 'live' };
  });
}

/** Erases the name, login and credentials; retains the id. @throws PublicError see `setRole` */
export function removeAccount(context: AccountContext, accountId: string): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, accounts) => {
    assertAllowed(context, accounts, { action: 'accounts.remove', projectId: null });
    return toRemoved(account);
  });
}

export interface Joining {
  readonly text: string;
  readonly accountId: string;
}

/** Finds an invitation that the account may accept. Null if the link is invalid or reserved for another account. */
export function findJoinable(
  accounts: readonly AccountRecord[],
  { text, accountId }: Joining,
  nowAt: number,
): AccountRecord | null {
  const invited = findByLink(accounts, text, nowAt);
  if (invited === null || invited.state !== 'invited') return null;
  const takenBy = invited.invitation?.takenBy ?? null;
  return takenBy === null || takenBy === accountId ? invited : null;
}

/**
 * Adds an invitation's roles to an existing account and ends the account's sessions. Writes three records. The first
 * reserves the invitation, so that only the same account can retry an interrupted call.
 * @throws PublicError RESOURCE_NOT_FOUND for an invalid link; AUTHENTICATION_ERROR unless the account is live
 */
export async function joinInvitation(context: AccountContext, joining: Joining): Promise<AccountRecord> {
  const { accountId } = joining;
  let invitedId = '';
  await context.store.change((accounts) => {
    const invited = findJoinable(accounts, joining, readClock(context));
    if (invited === null || invited.invitation === null) throw invalidLink();
    if (findAccount(accounts, accountId).state !== 'live') throw forbidden('The account is not active.');
    invitedId = invited.id;
    return { ...invited, invitation: { ...invited.invitation, takenBy: accountId } };
  });
  const joined = await changeAccount(context, accountId, (account, accounts) => {
    const invited = findAccount(accounts, invitedId);
    if (account.state !== 'live' || invited.invitation?.takenBy !== accountId) throw invalidLink();
    const isAdministrator = account.isAdministrator || invited.isAdministrator;
    return { ...account, isAdministrator, roles: mergeRoles(account.roles, invited.roles) };
  });
  await context.store.change((accounts) => toRemoved(findAccount(accounts, invitedId)));
  return joined;
}

function mergeRoles(existing: readonly ProjectRole[], granted: readonly ProjectRole[]): ProjectRole[] {
  const upgrades = granted.filter(({ projectId, role }) => {
    const current = existing.find((each) => each.projectId === projectId);
    return current === undefined || !isAtMost(role, current.role);
  });
  return [...existing.filter((each) => !upgrades.some(({ projectId }) => projectId === each.projectId)), ...upgrades];
}
