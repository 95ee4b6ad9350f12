// Database credentials of portal members: created by a member, limited by the member's role.
import type { AccountRecord, ProjectRecord } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import type { ClickHouseAccount } from '@playline/stores';
import { conflict } from '../accounts/context.ts';
import { mayDo } from '../accounts/roles.ts';
import type { AuditEntry, AuditLog } from '../audit/audit-log.ts';
import { nextPoll } from '../records/record-copy.ts';
import { toName } from '../records/record-store.ts';
import {
  type AnalystAccount,
  type AnalystCredentials,
  type AnalystOwner,
  createRunStatement,
  dropAnalyst,
  listAnalysts,
  setGrant,
} from './accounts.ts';
import { assignAnalyst, NoFreeAccount } from './assign.ts';

export type OwnedAnalyst = AnalystAccount & { readonly owner: AnalystOwner };

export interface AnalystStore {
  /** Lists the accounts of all members. */
  list(): Promise<OwnedAnalyst[]>;
  /** Creates an account without grants. @throws NoFreeAccount */
  create(wanted: { readonly owner: AnalystOwner; readonly rawIds: boolean }): Promise<AnalystCredentials>;
  setGrant(account: string, change: { readonly environmentId: string; readonly revoked: boolean }): Promise<void>;
  /** Revokes all grants, ends running queries, and deletes the account if it was created with SQL. */
  drop(account: string): Promise<void>;
}

/** @param clickhouse the account `accounts` @param pool accounts in users.xml that can be assigned */
export function createAnalystStore(clickhouse: ClickHouseAccount, pool: readonly AnalystCredentials[]): AnalystStore {
  const run = createRunStatement(clickhouse);
  return {
    list: async () => (await listAnalysts(run)).filter((each): each is OwnedAnalyst => each.owner !== null),
    create: (wanted) => assignAnalyst({ clickhouse, run, pool: () => pool }, wanted),
    setGrant: (account, change) => setGrant(run, account, change),
    drop: (account) => dropAnalyst(run, account),
  };
}

export interface PortalRecordLists {
  readonly accounts: readonly AccountRecord[];
  readonly projects: readonly ProjectRecord[];
}

/**
 * Returns the environments that the credentials of a member may read: all environments of the project, or none while
 * the member may not read raw ids that the credentials include. Null if the member no longer has access to the project.
 */
export function readableEnvironmentsOf(
  { owner, rawIds }: Pick<OwnedAnalyst, 'owner' | 'rawIds'>,
  { accounts, projects }: PortalRecordLists,
): readonly string[] | null {
  const { accountId, projectId } = owner;
  const account = accounts.find(({ id }) => id === accountId);
  if (account === undefined || !mayDo({ account, action: 'project.read', projectId })) return null;
  if (rawIds && !mayDo({ account, action: 'people.raw-ids', projectId })) return [];
  return projects.find(({ id }) => id === projectId)?.environments.map(({ id }) => id) ?? [];
}

/** A signed-in member on the pages of a project. */
export interface CredentialsContext {
  readonly store: AnalystStore;
  readonly viewer: AccountRecord;
  readonly projectId: string;
}

/** Lists the credentials that a member may see and revoke, oldest first: the member's own, or all for an owner. */
export async function listCredentials({ store, viewer, projectId }: CredentialsContext): Promise<OwnedAnalyst[]> {
  const seesAll = mayDo({ account: viewer, action: 'analysts.revoke', projectId });
  const isVisible = ({ owner }: OwnedAnalyst) =>
    owner.projectId === projectId && (seesAll || owner.accountId === viewer.id);
  return (await store.list()).filter(isVisible).toSorted((a, b) => a.createdAt - b.createdAt);
}

/** Accounts in users.xml are few, and accounts that no one uses are a risk. */
const CREDENTIALS_MAX = 5;

/**
 * Creates credentials that read what the member's role allows.
 * @throws PublicError VALIDATION_ERROR for an invalid name; CONFLICT_ERROR if no account is left
 */
export async function createCredentials(
  context: CredentialsContext,
  wanted: { readonly name: string; readonly rawIds: boolean },
  records: PortalRecordLists,
): Promise<AnalystCredentials & { readonly rawIds: boolean }> {
  const { store, viewer, projectId } = context;
  const owner = { accountId: viewer.id, projectId, name: toName(wanted.name, 'the credentials') };
  const rawIds = wanted.rawIds && mayDo({ account: viewer, action: 'people.raw-ids', projectId });
  const own = (await listCredentials(context)).filter((each) => each.owner.accountId === viewer.id);
  if (own.length >= CREDENTIALS_MAX)
    throw conflict(
      `You already have ${CREDENTIALS_MAX} credentials in this project. Revoke one that you no longer use.`,
    );
  const created = await store.create({ owner, rawIds }).catch((fault: unknown) => {
    throw fault instanceof NoFreeAccount ? conflict(NO_FREE_ACCOUNT) : fault;
  });
  for (const environmentId of readableEnvironmentsOf({ owner, rawIds }, records) ?? [])
    await store.setGrant(created.account, { environmentId, revoked: false });
  return { ...created, rawIds };
}

const NO_FREE_ACCOUNT =
  'All database accounts of this ClickHouse are in use. Revoke unused credentials, then contact an operator to restart the stack.';

/** @throws PublicError RESOURCE_NOT_FOUND unless the member may revoke the credentials */
export async function revokeCredentials(context: CredentialsContext, account: string): Promise<void> {
  const isVisible = (await listCredentials(context)).some((each) => each.account === account);
  if (!isVisible) throw new PublicError('RESOURCE_NOT_FOUND', { message: 'These credentials do not exist.' });
  await context.store.drop(account);
}

/** Changes the grants of an account to the environments that its owner may read, or drops the account. */
export async function followRole(
  store: AnalystStore,
  account: OwnedAnalyst,
  records: PortalRecordLists,
): Promise<boolean> {
  const allowed = readableEnvironmentsOf(account, records);
  if (allowed === null) {
    await store.drop(account.account);
    return false;
  }
  const change = (ids: readonly string[], revoked: boolean) =>
    Promise.all(ids.map((environmentId) => store.setGrant(account.account, { environmentId, revoked })));
  const { environments: current, partlyGranted } = account;
  await change(
    current.filter((id) => !allowed.includes(id)),
    true,
  );
  await change(
    allowed.filter((id) => !current.includes(id) || partlyGranted.includes(id)),
    false,
  );
  return true;
}

/** Describes the revocation of credentials whose owner no longer has access to the project. */
const toRevocation = ({ account, owner }: OwnedAnalyst): AuditEntry => {
  const scope = { projectId: owner.projectId, environmentId: '', address: '', requestId: '' };
  return { ...scope, actor: '', action: 'analyst.revoke', object: account, detail: { owner: owner.accountId } };
};

const FOLLOW_EVERY_MS = 2_000;
/** Also repairs grants that were changed in ClickHouse. */
const COMPARE_EVERY_MS = 60_000;

export interface RoleFollowerParts {
  readonly store: AnalystStore;
  /** Each returns the same list until a record changes. */
  readonly accounts: { all(): Promise<readonly AccountRecord[]> };
  readonly projects: { all(): Promise<readonly ProjectRecord[]> };
  readonly audit: AuditLog;
  /** Called once per outage, when a second comparison in a row has failed. */
  readonly onFault: (fault: unknown) => void;
  readonly everyMs?: number;
}

/**
 * Compares all credentials with the roles of their owners at the start and whenever a record has changed, so that
 * changes made while no portal was running also take effect.
 */
export function openRoleFollower(parts: RoleFollowerParts) {
  const { store, accounts, projects, audit, onFault, everyMs = FOLLOW_EVERY_MS } = parts;
  const closed = new AbortController();
  let [followed, comparedAt, failures] = [null as PortalRecordLists | null, 0, 0];
  const follow = async () => {
    const records = { accounts: await accounts.all(), projects: await projects.all() };
    // Without any account, the portal is new or reads the wrong records.
    if (records.accounts.length === 0) return;
    const isUnchanged = records.accounts === followed?.accounts && records.projects === followed.projects;
    if (isUnchanged && performance.now() - comparedAt < COMPARE_EVERY_MS) return;
    for (const account of await store.list())
      if (!(await followRole(store, account, records))) await audit.append(toRevocation(account));
    [followed, comparedAt] = [records, performance.now()];
  };
  const followUntilClosed = async () => {
    while (!closed.signal.aborted) {
      try {
        await follow();
        failures = 0;
      } catch (fault) {
        failures += 1;
        // The first comparison of a new process fails until its records are in sync.
        if (failures === 2) onFault(fault);
      }
      await nextPoll(everyMs, closed.signal);
    }
  };
  const following = followUntilClosed();
  return {
    close: async () => {
      closed.abort();
      await following;
    },
  };
}
