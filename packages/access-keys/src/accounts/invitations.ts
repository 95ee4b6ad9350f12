// Invitations, first links, and changes of accounts by owners and administrators.
import { randomUUID } from 'node:crypto';
import { PublicError } from '@playline/errors';
import type { ReceivedRecord, RecordLogReader } from '../records/record-log.ts';
import type { Content } from '../records/record-store.ts';
import { isLater } from '../records/record-view.ts';
import {
  type AccountRecord,
  findAnyInvited,
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
  nowOf,
  withoutSessions,
} from './context.ts';
import { toLogin, toPersonName } from './login.ts';
import { createToken, hashToken, type OneTimeTexts } from './one-time-texts.ts';
import { findByOpenId, type OpenIdSubject } from './open-id.ts';
import { isAtMost, type Role, roleIn } from './roles.ts';

/** Lifetime of an invitation or a reset. */
export const INVITATION_MS = 72 * 60 * 60_000;

/** At least one of these. */
export interface NewCredentials {
  /** From `Passwords.hash`. */
  readonly passwordHash: string | null;
  readonly passkey: Passkey | null;
  readonly openId?: OpenIdSubject;
}

export interface NewPerson extends NewCredentials {
  readonly login: string;
  readonly name: string;
}

export interface Invitation {
  /** The person may change it. */
  readonly name: string;
  readonly roles: readonly ProjectRole[];
  readonly isAdministrator: boolean;
}

/** An account without a person, and the text of its link, which cannot be read again. */
export interface Invited {
  readonly account: AccountRecord;
  /** 256 bits, base64url. */
  readonly text: string;
}

/**
 * @param person `id`: the one that a passkey was made for; absent: a new one
 * @throws PublicError CONFLICT_ERROR when there is an administrator, VALIDATION_ERROR for an invalid login or name
 */
export async function createFirstAdministrator(
  context: AccountContext,
  { id, ...person }: NewPerson & { readonly id?: string },
): Promise<AccountRecord> {
  return context.store.change((accounts) => {
    if (hasAdministrator(accounts)) throw hasAdministratorAlready();
    const blank = { ...toBlank('', nowOf(context)), isAdministrator: true };
    if (accounts.some((each) => each.id === id)) throw conflict('This account already exists.');
    return toLive(id === undefined ? blank : { ...blank, id }, person, accounts);
  });
}

/**
 * Creates an account for an invited person.
 * @throws PublicError AUTHENTICATION_ERROR for more rights than the inviter has; VALIDATION_ERROR without any right
 */
export async function invite(context: AccountContext, wanted: Invitation): Promise<Invited> {
  if (wanted.roles.length === 0 && !wanted.isAdministrator) throw invalid('Choose a role for the person.');
  assertRoles(wanted.roles);
  const name = toPersonName(wanted.name);
  const text = createToken();
  const account = await context.store.change((accounts) => {
    assertMayInvite(context, accounts, wanted);
    const { isAdministrator, roles } = wanted;
    return { ...toBlank(name, nowOf(context)), isAdministrator, roles: [...roles], invitation: openFor(text, context) };
  });
  return { account, text };
}

/** The account of a link; null for an invalid link, and while the owner of another account is accepting it. */
export function findInvited(accounts: readonly AccountRecord[], text: string, nowAt: number): AccountRecord | null {
  const account = findAnyInvited(accounts, text, nowAt);
  return (account?.invitation?.takenBy ?? null) === null ? account : null;
}

/**
 * Makes an account live with the link of an invitation or of a reset, once.
 * @param person its login is used only if the account has none
 * @throws PublicError RESOURCE_NOT_FOUND for an invalid link, CONFLICT_ERROR for a login in use
 */
export async function acceptInvitation(
  context: AccountContext,
  { text, person }: { readonly text: string; readonly person: NewPerson },
): Promise<AccountRecord> {
  const accepted = await context.store.change((accounts) => {
    const account = findInvited(accounts, text, nowOf(context));
    if (account === null || account.state === 'disabled') throw invalidLink();
    const login = account.login === '' ? person.login : account.login;
    return withoutSessions(account, toLive(account, { ...person, login }, accounts));
  });
  await context.sessions.endAll(accepted.id);
  return accepted;
}

/** @throws PublicError AUTHENTICATION_ERROR unless the acting account could have invited, CONFLICT_ERROR when it was accepted */
export function revokeInvitation(context: AccountContext, id: string): Promise<AccountRecord> {
  return changeAccount(context, id, (account, accounts) => {
    assertMayInvite(context, accounts, account);
    if (account.state !== 'invited') throw conflict('The invitation was accepted. Change the account instead.');
    return toRemoved(account);
  });
}

/**
 * Removes all credentials, and creates a link that is valid for 72 hours. Only for operator commands.
 * @throws PublicError CONFLICT_ERROR for a disabled account
 */
export async function resetAccess(context: AccountContext, id: string): Promise<Invited> {
  if (context.actorId !== null) throw forbidden('Only a command resets access: npm run accounts -- reset.');
  const text = createToken();
  const account = await changeAccount(context, id, (account) => {
    if (account.state === 'disabled') throw conflict('The account is disabled. Enable it first.', { account: id });
    return { ...account, passwordHash: null, passkeys: [], openId: null, invitation: openFor(text, context) };
  });
  return { account, text };
}

/** Keeps the id, because records of the account's actions contain it. */
function toRemoved(account: AccountRecord): Content<AccountRecord> {
  const erased = { name: '', login: '', isAdministrator: false, roles: [], invitation: null };
  return { ...account, ...erased, state: 'disabled', passwordHash: null, passkeys: [], openId: null };
}

/** @throws PublicError VALIDATION_ERROR for two roles in one project */
function assertRoles(roles: readonly ProjectRole[]): void {
  if (new Set(roles.map(({ projectId }) => projectId)).size < roles.length)
    throw invalid('A person has one role per project.');
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
    const own = roleIn(inviter, projectId);
    if (own === null || !isAtMost(role, own))
      throw forbidden('You cannot grant more rights than you have.', { project: projectId });
  }
}

const openFor = (text: string, context: AccountContext): NonNullable<AccountRecord['invitation']> => ({
  hash: hashToken(text),
  expiresAt: nowOf(context) + INVITATION_MS,
  takenBy: null,
});

function toBlank(name: string, createdAt: number): Content<AccountRecord> {
  const nothing = { login: '', passwordHash: null, passkeys: [], openId: null, invitation: null, sessionsFrom: 0 };
  return { id: randomUUID(), name, state: 'invited', isAdministrator: false, roles: [], createdAt, ...nothing };
}

function toLive(
  account: Content<AccountRecord>,
  person: NewPerson,
  accounts: readonly AccountRecord[],
): Content<AccountRecord> {
  const { passwordHash, passkey, openId = null } = person;
  if (passwordHash === null && passkey === null && openId === null) throw invalid('Set a password or a passkey.');
  const login = toLogin(person.login);
  const holder = findByLogin(accounts, login);
  if (holder !== null && holder.id !== account.id) throw conflict('This login is taken.', { login });
  if (passkey !== null) assertNewPasskey(accounts, passkey);
  if (openId !== null) assertNewOpenId(accounts, openId);
  const credentials = { passwordHash, passkeys: passkey === null ? [] : [passkey], openId };
  return { ...account, ...credentials, login, name: toPersonName(person.name), state: 'live', invitation: null };
}

/** @throws PublicError CONFLICT_ERROR for a passkey of any account */
export function assertNewPasskey(accounts: readonly AccountRecord[], { id }: Passkey): void {
  if (accounts.some(({ passkeys }) => passkeys.some((each) => each.id === id)))
    throw conflict('This passkey is already in use.');
}

/** @throws PublicError CONFLICT_ERROR for a linked identity */
export function assertNewOpenId(accounts: readonly AccountRecord[], openId: OpenIdSubject): void {
  if (findByOpenId(accounts, openId) !== null)
    throw conflict('Another account signs in with this provider account already.');
}

const hasAdministratorAlready = () => conflict('This instance has an administrator. Request an invitation.');

/** Lifetime of the link that makes the first administrator. */
export const FIRST_LINK_LIFETIME_S = 15 * 60;
const PURPOSE = 'first-administrator';

interface FirstLinkParts {
  readonly log: RecordLogReader<AccountRecord>;
  readonly oneTimeTexts: Pick<OneTimeTexts, 'issue' | 'read' | 'take'>;
}

/**
 * Creates the text of the link. Administrators are read from the log, because an emptied Redis must not give access.
 * @throws PublicError CONFLICT_ERROR when there is an administrator; the log's error when it cannot be read
 */
export async function issueFirstLink({ log, oneTimeTexts }: FirstLinkParts): Promise<string> {
  if (hasAdministrator(await readLog(log))) throw hasAdministratorAlready();
  return oneTimeTexts.issue({ purpose: PURPOSE, value: '', lifetimeS: FIRST_LINK_LIFETIME_S });
}

/** Whether a link is still valid. Does not use it up. */
export async function isFirstLink(
  { oneTimeTexts }: Pick<FirstLinkParts, 'oneTimeTexts'>,
  text: string,
): Promise<boolean> {
  return (await oneTimeTexts.read({ purpose: PURPOSE, text })) !== null;
}

/**
 * Makes the person the first administrator, of whom the log accepts only one. Success uses the link up; a failed attempt
 * does not.
 * @param person `id`: as for `createFirstAdministrator`
 * @throws PublicError RESOURCE_NOT_FOUND for an invalid link, also when there is an administrator; else as
 * `createFirstAdministrator`
 */
export async function acceptFirstLink(
  context: AccountContext & Pick<FirstLinkParts, 'oneTimeTexts'>,
  { text, person }: { readonly text: string; readonly person: Parameters<typeof createFirstAdministrator>[1] },
): Promise<AccountRecord> {
  if (!(await isFirstLink(context, text))) throw invalidLink();
  const use = () => context.oneTimeTexts.take({ purpose: PURPOSE, text });
  try {
    const account = await createFirstAdministrator(context, person);
    await use();
    return account;
  } catch (fault) {
    const isConflict = fault instanceof PublicError && fault.code === 'CONFLICT_ERROR';
    if (!isConflict || !hasAdministrator(await context.store.readAll())) throw fault;
    await use();
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

/** Sets the role of an account in a project; null removes it. @throws PublicError AUTHENTICATION_ERROR, and as `changeAccount` */
export function setRole(
  context: AccountContext,
  { accountId, projectId, role }: { accountId: string; projectId: string; role: Role | null },
): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, accounts) => {
    assertAllowed(context, accounts, { action: 'members.change', projectId });
    // Otherwise an owner could find out which ids are accounts.
    if (roleIn(account, projectId) === null)
      assertAllowed(context, accounts, { action: 'accounts.change', projectId: null });
    const others = account.roles.filter((each) => each.projectId !== projectId);
    const roles: ProjectRole[] = role === null ? others : [...others, { projectId, role }];
    return { ...account, roles };
  });
}

/** @throws PublicError as `setRole` */
export function setAdministrator(
  context: AccountContext,
  { accountId, isAdministrator }: { accountId: string; isAdministrator: boolean },
): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, accounts) => {
    assertAllowed(context, accounts, { action: 'accounts.change', projectId: null });
    return { ...account, isAdministrator };
  });
}

/** Keeps the rights of the account for `enableAccount`. @throws PublicError as `setRole` */
export function disableAccount(context: AccountContext, accountId: string): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, accounts) => {
    assertAllowed(context, accounts, { action: 'accounts.change', projectId: null });
    if (account.state === 'invited') throw conflict('The invitation was not accepted. Revoke it instead.');
    // An open link would let the person back in later.
    return { ...account, state: 'disabled', invitation: null };
  });
}

/** @throws PublicError as `setRole` */
export function enableAccount(context: AccountContext, accountId: string): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, accounts) => {
    assertAllowed(context, accounts, { action: 'accounts.change', projectId: null });
    if (account.state !== 'disabled') throw conflict('The account is not disabled.');
    return { ...account, state: 'live' };
  });
}

/** Erases name, login and credentials; keeps the id. @throws PublicError as `setRole` */
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

/** The invitation that an account may take; null for other links, or when another account has begun to take it. */
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
 * Adds the roles of an invitation to an existing account, and ends its sessions. The first of three records marks the
 * invitation as taken by this account, so that an interrupted call can be repeated by this account only.
 * @throws PublicError RESOURCE_NOT_FOUND for an invalid link; AUTHENTICATION_ERROR unless the account is live
 */
export async function joinInvitation(context: AccountContext, joining: Joining): Promise<AccountRecord> {
  const { accountId } = joining;
  let invitedId = '';
  await context.store.change((accounts) => {
    const invited = findJoinable(accounts, joining, nowOf(context));
    if (invited === null || invited.invitation === null) throw invalidLink();
    if (findAccount(accounts, accountId).state !== 'live') throw forbidden('The account is not live.');
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

function mergeRoles(own: readonly ProjectRole[], given: readonly ProjectRole[]): ProjectRole[] {
  const better = given.filter(({ projectId, role }) => {
    const current = own.find((each) => each.projectId === projectId);
    return current === undefined || !isAtMost(role, current.role);
  });
  return [...own.filter((each) => !better.some(({ projectId }) => projectId === each.projectId)), ...better];
}
