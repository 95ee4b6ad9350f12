// Database credentials of portal members: created by a member, limited by the member's role.
import type { AccountRecord, ProjectRecord } from '@playline/contracts';
import type { ClickHouseAccount } from '@playline/stores';
import { mayDo } from '../accounts/roles.ts';
import type { AuditEntry } from '../audit/audit-log.ts';
import { nextPoll } from '../records/record-copy.ts';
import {
  type AnalystAccount,
  type AnalystCredentials,
  type AnalystOwner,
  createRunStatement,
  dropAnalyst,
  listAnalysts,
  setGrant,
} from './accounts.ts';
import { assignAnalyst } from './assign.ts';

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
  const current = account.environments;
  await change(
    current.filter((id) => !allowed.includes(id)),
    true,
  );
  await change(
    allowed.filter((id) => !current.includes(id)),
    false,
  );
  return true;
}

/** Describes the revocation of credentials whose owner no longer has access to the project. */
export const toRevocation = ({ account, owner }: OwnedAnalyst): AuditEntry => {
  const scope = { projectId: owner.projectId, environmentId: '', address: '', requestId: '' };
  return { ...scope, actor: '', action: 'analyst.revoke', object: account, detail: { owner: owner.accountId } };
};

const FOLLOW_EVERY_MS = 2_000;
/** Also repairs grants that were changed in ClickHouse. */
const COMPARE_EVERY_MS = 60_000;

export interface RoleFollowerOptions {
  readonly store: AnalystStore;
  /** Returns the same lists until a record changes. */
  readonly readRecords: () => Promise<PortalRecordLists>;
  readonly onDrop: (account: OwnedAnalyst) => Promise<void>;
  /** Called with the first fault of an outage. */
  readonly onFault: (fault: unknown) => void;
  readonly everyMs?: number;
}

/**
 * Compares all credentials with the roles of their owners at the start and whenever a record has changed, so that
 * changes made while no portal was running also take effect.
 */
export function openRoleFollower({
  store,
  readRecords,
  onDrop,
  onFault,
  everyMs = FOLLOW_EVERY_MS,
}: RoleFollowerOptions) {
  const closed = new AbortController();
  let [followed, comparedAt, isFailing] = [null as PortalRecordLists | null, 0, false];
  const follow = async () => {
    const records = await readRecords();
    // Without any account, the portal is new or reads the wrong records.
    if (records.accounts.length === 0) return;
    const isUnchanged = records.accounts === followed?.accounts && records.projects === followed.projects;
    if (isUnchanged && performance.now() - comparedAt < COMPARE_EVERY_MS) return;
    for (const account of await store.list()) if (!(await followRole(store, account, records))) await onDrop(account);
    [followed, comparedAt] = [records, performance.now()];
  };
  const followUntilClosed = async () => {
    while (!closed.signal.aborted) {
      try {
        await follow();
        isFailing = false;
      } catch (fault) {
        if (!isFailing) onFault(fault);
        isFailing = true;
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
