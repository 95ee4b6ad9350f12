import { randomUUID } from 'node:crypto';
import { PublicError } from '@playline/errors';
import type { ReceivedRecord, RecordLogReader } from '../records/record-log.ts';
import { type Content, toDone } from '../records/record-store.ts';
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
  type AccountsAtTime,
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

/** Lifetime of the link of an invitation or a reset. */
export const INVITATION_MS = 72 * 60 * 60_000;

/** Credentials of a new person: at least one of these. */
export interface NewCredentials {
  /** From `Passwords.hash`. */
  readonly passwordHash: string | null;
  readonly passkey: Passkey | null;
  /** Identity at a provider, just proven there. */
  readonly openId?: OpenIdSubject;
}

/** What a person enters about themselves. */
export interface NewPerson extends NewCredentials {
  readonly login: string;
  readonly name: string;
}

export interface Invitation {
  /** Name that the inviter gives; the person may change it. */
  readonly name: string;
  readonly roles: readonly ProjectRole[];
  readonly isAdministrator: boolean;
}

/**
 * An account that waits for a person, and the text of the link for that person. The text is shown once and cannot be
 * read again.
 */
export interface Invited {
  readonly account: AccountRecord;
  /** 256 bits, base64url. */
  readonly text: string;
}

/**
 * Creates the first administrator, if there is none.
 * @param person `id`: the id that a passkey was made for; a new one when absent
 * @throws PublicError CONFLICT_ERROR when the log has an administrator, VALIDATION_ERROR for a login or a name that
 * cannot be
 */
export async function createFirstAdministrator(
  context: AccountContext,
  { id, ...person }: NewPerson & { readonly id?: string },
): Promise<AccountRecord> {
  const made = await context.store.change((accounts) => {
    if (hasAdministrator(accounts)) throw conflict('This instance has an administrator: ask for an invitation.');
    const blank = { ...toBlank('', nowOf(context)), isAdministrator: true };
    if (accounts.some((each) => each.id === id)) throw conflict('There is such an account already.');
    return toLive(id === undefined ? blank : { ...blank, id }, person, accounts);
  });
  return toDone(made);
}

/**
 * Creates an account for an invited person.
 * @throws PublicError AUTHENTICATION_ERROR when the inviter may not invite, or grants more rights than they have;
 * VALIDATION_ERROR for an invitation without any right
 */
export async function invite(context: AccountContext, wanted: Invitation): Promise<Invited> {
  if (wanted.roles.length === 0 && !wanted.isAdministrator) throw invalid('Say what the person is to be.');
  assertRoles(wanted.roles);
  const name = toPersonName(wanted.name);
  const text = createToken();
  const made = await context.store.change((accounts) => {
    assertMayInvite(context, accounts, wanted);
    const { isAdministrator, roles } = wanted;
    return { ...toBlank(name, nowOf(context)), isAdministrator, roles: [...roles], invitation: openFor(text, context) };
  });
  return { account: toDone(made), text };
}

/**
 * The account of a link; null when the link was used, revoked or is older than 72 hours, or when the owner of an
 * existing account is accepting it.
 */
export function findInvited(accounts: readonly AccountRecord[], text: string, nowAt: number): AccountRecord | null {
  const account = findAnyInvited(accounts, text, nowAt);
  return (account?.invitation?.takenBy ?? null) === null ? account : null;
}

/**
 * Lets a person in with the link of an invitation or of a reset, once.
 * @param person the login counts only if the account has none yet
 * @throws PublicError RESOURCE_NOT_FOUND when the link is not valid, CONFLICT_ERROR for a login that another account
 * has
 */
export async function acceptInvitation(
  context: AccountContext,
  { text, person }: { readonly text: string; readonly person: NewPerson },
): Promise<AccountRecord> {
  const changed = await context.store.change((accounts) => {
    const account = findInvited(accounts, text, nowOf(context));
    if (account === null || account.state === 'disabled') throw invalidLink();
    const login = account.login === '' ? person.login : account.login;
    return withoutSessions(account, toLive(account, { ...person, login }, accounts));
  });
  const account = toDone(changed);
  await context.sessions.endAll(account.id);
  return account;
}

/**
 * Takes an invitation back. Only the fact that there was one stays on record.
 * @throws PublicError AUTHENTICATION_ERROR unless the account that asks could have made it, CONFLICT_ERROR when it was
 * accepted
 */
export function revokeInvitation(context: AccountContext, id: string): Promise<AccountRecord> {
  return changeAccount(context, id, (account, { accounts }) => {
    assertMayInvite(context, accounts, account);
    if (account.state !== 'invited') throw conflict('The invitation was accepted: change the account instead.');
    return toRemoved(account);
  });
}

/**
 * Lets a person back in who has lost every way to sign in. Password, passkeys and provider are removed, and a new link
 * is valid for 72 hours. An open invitation gets a new link. Only the operator's commands may do this.
 * @throws PublicError CONFLICT_ERROR for a disabled account
 */
export async function resetAccess(context: AccountContext, id: string): Promise<Invited> {
  if (context.actorId !== null) throw forbidden('Access is given back by a command: npm run accounts -- reset.');
  const text = createToken();
  const account = await changeAccount(context, id, (account) => {
    if (account.state === 'disabled') throw conflict('The account is disabled: enable it first.', { account: id });
    return { ...account, passwordHash: null, passkeys: [], openId: null, invitation: openFor(text, context) };
  });
  return { account, text };
}

/** What stays of a removed account: its id, since the records of what it did name it. */
export function toRemoved(account: AccountRecord): Content<AccountRecord> {
  const nobody = { name: '', login: '', isAdministrator: false, roles: [], invitation: null };
  return { ...account, ...nobody, state: 'disabled', passwordHash: null, passkeys: [], openId: null };
}

/** @throws PublicError VALIDATION_ERROR for two roles in one project */
export function assertRoles(roles: readonly ProjectRole[]): void {
  if (new Set(roles.map(({ projectId }) => projectId)).size < roles.length)
    throw invalid('A person has one role in a project.');
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
      throw forbidden('Nobody invites to more than they may themselves.', { project: projectId });
  }
}

function openFor(text: string, context: AccountContext): NonNullable<AccountRecord['invitation']> {
  return { hash: hashToken(text), expiresAt: nowOf(context) + INVITATION_MS, takenBy: null };
}

function toBlank(name: string, createdAt: number): Content<AccountRecord> {
  const nothing = { login: '', passwordHash: null, passkeys: [], openId: null, invitation: null, sessionsFrom: 0 };
  return { id: randomUUID(), name, state: 'invited', isAdministrator: false, roles: [], createdAt, ...nothing };
}

function toLive(
  account: Content<AccountRecord>,
  person: NewPerson,
  accounts: AccountsAtTime['accounts'],
): Content<AccountRecord> {
  const { passwordHash, passkey, openId = null } = person;
  if (passwordHash === null && passkey === null && openId === null) throw invalid('Choose a password or a passkey.');
  const login = toLogin(person.login);
  const holder = findByLogin(accounts, login);
  if (holder !== null && holder.id !== account.id) throw conflict('Somebody signs in with this already.', { login });
  if (passkey !== null) assertNewPasskey(accounts, passkey);
  if (openId !== null) assertNewOpenId(accounts, openId);
  const credentials = { passwordHash, passkeys: passkey === null ? [] : [passkey], openId };
  return { ...account, ...credentials, login, name: toPersonName(person.name), state: 'live', invitation: null };
}

/** @throws PublicError CONFLICT_ERROR for a passkey that some account has */
export function assertNewPasskey(accounts: readonly AccountRecord[], { id }: Passkey): void {
  if (accounts.some(({ passkeys }) => passkeys.some((each) => each.id === id)))
    throw conflict('This passkey is in use already.');
}

/** @throws PublicError CONFLICT_ERROR when another account is linked to this identity at a provider */
export function assertNewOpenId(accounts: readonly AccountRecord[], openId: OpenIdSubject): void {
  if (findByOpenId(accounts, openId) !== null)
    throw conflict('Somebody here signs in with this account there already.');
}

/** How long the link is good that makes the first administrator. */
export const FIRST_LINK_LIFETIME_S = 15 * 60;
const PURPOSE = 'first-administrator';

interface FirstLinkParts {
  readonly log: RecordLogReader<AccountRecord>;
  readonly oneTimeTexts: Pick<OneTimeTexts, 'issue' | 'read' | 'take'>;
}

/**
 * Creates the text of the link with which a person becomes the first administrator. Whether there is an administrator
 * already is read from the log and not from Redis: an emptied Redis must not give the instance away.
 * @throws PublicError CONFLICT_ERROR when there is an administrator; what the log throws when it cannot be read
 */
export async function issueFirstLink({ log, oneTimeTexts }: FirstLinkParts): Promise<string> {
  if (hasAdministrator(await readLog(log)))
    throw conflict('This instance has an administrator: ask for an invitation.');
  return oneTimeTexts.issue({ purpose: PURPOSE, value: '', lifetimeS: FIRST_LINK_LIFETIME_S });
}

/** Whether a link is still valid. Asking does not use it up. */
export async function isFirstLink(
  { oneTimeTexts }: Pick<FirstLinkParts, 'oneTimeTexts'>,
  text: string,
): Promise<boolean> {
  return (await oneTimeTexts.read({ purpose: PURPOSE, text })) !== null;
}

/**
 * Makes the person who has a valid link the first administrator. The link is used up by success, not by a failed try.
 * Two people who use one link at the same moment are no danger, since the log accepts only one first administrator.
 * @param person `id`: as for `createFirstAdministrator`
 * @throws PublicError RESOURCE_NOT_FOUND when the link is not valid. If the reason is that there is an administrator,
 * the link is used up. And as `createFirstAdministrator`; the link then stays valid
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

/** Each account as the log has it last. */
async function readLog(log: RecordLogReader<AccountRecord>): Promise<AccountRecord[]> {
  const last = new Map<string, ReceivedRecord<AccountRecord>>();
  for (const range of await log.bounds())
    for (const placed of await log.read(range))
      if (isLater(placed, last.get(placed.record.id))) last.set(placed.record.id, placed);
  return [...last.values()].map(({ record }) => record);
}

/**
 * Sets the role of an account in a project; null removes it from the project. Owners change members of their project,
 * administrators change everybody.
 * @throws PublicError AUTHENTICATION_ERROR when the account that asks may not do this, and as `changeAccount`
 */
export function setRole(
  context: AccountContext,
  { accountId, projectId, role }: { accountId: string; projectId: string; role: Role | null },
): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, { accounts }) => {
    assertAllowed(context, accounts, { action: 'members.change', projectId });
    // Otherwise an owner could find out which ids are accounts.
    if (roleIn(account, projectId) === null)
      assertAllowed(context, accounts, { action: 'accounts.change', projectId: null });
    const others = account.roles.filter((each) => each.projectId !== projectId);
    const roles: ProjectRole[] = role === null ? others : [...others, { projectId, role }];
    return { ...account, roles };
  });
}

/** Makes an account an administrator of the instance, or no longer. @throws PublicError as `setRole` */
export function setAdministrator(
  context: AccountContext,
  { accountId, isAdministrator }: { accountId: string; isAdministrator: boolean },
): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, { accounts }) => {
    assertAllowed(context, accounts, { action: 'accounts.change', projectId: null });
    return { ...account, isAdministrator };
  });
}

/** Keeps an account from signing in until it is enabled again; what it may do is kept. @throws PublicError as `setRole` */
export function disableAccount(context: AccountContext, accountId: string): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, { accounts }) => {
    assertAllowed(context, accounts, { action: 'accounts.change', projectId: null });
    if (account.state === 'invited') throw conflict('Nobody has accepted the invitation: revoke it.');
    // An open link would let the person back in later.
    return { ...account, state: 'disabled', invitation: null };
  });
}

/** @throws PublicError as `setRole` */
export function enableAccount(context: AccountContext, accountId: string): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, { accounts }) => {
    assertAllowed(context, accounts, { action: 'accounts.change', projectId: null });
    if (account.state !== 'disabled') throw conflict('The account is not disabled.');
    return { ...account, state: 'live' };
  });
}

/**
 * Removes an account for good. Its name, login and credentials are erased from the record. Its id stays, since records
 * of what it did name it.
 * @throws PublicError as `setRole`
 */
export function removeAccount(context: AccountContext, accountId: string): Promise<AccountRecord> {
  return changeAccount(context, accountId, (account, { accounts }) => {
    assertAllowed(context, accounts, { action: 'accounts.remove', projectId: null });
    return toRemoved(account);
  });
}

/** Somebody who has an account, and the text of a link. */
export interface Joining {
  readonly text: string;
  readonly accountId: string;
}

/**
 * The invitation that an account may take. Null when the link is not valid, when it is a link to get back in, or when
 * another account has begun to take it.
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
 * Adds the roles of an invitation to an existing account. Where both have a role in one project, the stronger one
 * stays. The account's sessions end. This takes three records. The first marks the invitation as taken by this account,
 * so if the process dies in between, the link works for this account only and continues where it stopped.
 * @throws PublicError RESOURCE_NOT_FOUND when the link is not valid for this account; AUTHENTICATION_ERROR when the
 * account is not live
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
  const joined = await changeAccount(context, accountId, (account, { accounts }) => {
    const invited = findAccount(accounts, invitedId);
    if (account.state !== 'live' || invited.invitation?.takenBy !== accountId) throw invalidLink();
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
