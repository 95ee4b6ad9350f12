import type {
  AccessKeyRecord,
  AccountRecord,
  AuditEntryRecord,
  CollectionRecord,
  EndedKey,
  LiveKey,
  ProjectRecord,
  RateLimitKeyRecord,
  SignableKeyRecord,
} from '@playline/contracts';

/** One row of `audit_log`. Times are epoch milliseconds. */
export interface AuditRow {
  /** '' when the change concerns the whole instance. */
  readonly projectId: string;
  /** '' when the change concerns the whole project. */
  readonly environmentId: string;
  readonly happenedAt: number;
  /** Identifies the change: rows with the same id are one row. */
  readonly entryId: string;
  /** `entry` for a direct entry, else the kind of the record. */
  readonly kind: AuditKind;
  readonly object: string;
  readonly revision: number;
  readonly action: string;
  /** '' when no person or program made the change. */
  readonly actor: string;
  readonly requestId: string;
  /** Address of the request; '' for rows made from a record. */
  readonly address: string;
  /** JSON of an object; never a secret. */
  readonly detail: string;
}

type AuditKind = 'project' | 'key' | 'rate-limit-key' | 'collection' | 'account' | 'signable-key' | 'entry';

/** The verb of a change. @param end verb of a change that ends the object; null for any other */
const verbOf = (revision: number, end: string | null) => (revision === 1 ? 'create' : (end ?? 'change'));

type Changed = Pick<ProjectRecord, 'revision' | 'changedAt' | 'changedBy' | 'requestId'>;

interface Described {
  readonly kind: Exclude<AuditKind, 'entry'>;
  readonly object: string;
  readonly projectId: string;
  readonly environmentId: string;
  readonly verb: string;
  /** Listed one by one, so that a new field of a record is not shown unchecked. */
  readonly detail: object;
}

function toRow(described: Described, { revision, changedAt, changedBy, requestId }: Changed): AuditRow {
  const { kind, object, projectId, environmentId, verb, detail } = described;
  return {
    projectId,
    environmentId,
    happenedAt: changedAt,
    kind,
    object,
    revision,
    // Includes the request, because two changes of one revision may race.
    entryId: [kind, object, revision, requestId].join(':'),
    action: `${kind}.${verb}`,
    actor: changedBy,
    requestId,
    address: '',
    detail: JSON.stringify(detail),
  };
}

export function auditOfProject(project: ProjectRecord): AuditRow[] {
  const { id, name, state, environments, revision } = project;
  const verb = verbOf(revision, state === 'archived' ? 'archive' : null);
  const shown = environments.map(({ id, name, kind, cap, limit }) => ({ id, name, kind, cap, limit }));
  const described = { kind: 'project', object: id, projectId: id, environmentId: '', verb } as const;
  return [toRow({ ...described, detail: { name, state, environments: shown } }, project)];
}

export function auditOfKey(record: AccessKeyRecord): AuditRow[] {
  const { projectId, environmentId, environment, kind, live, ended, action } = record;
  const rowOf = ({ keyId, first4, last4, name }: EndedKey | LiveKey, verb: string, origins: object) => {
    const described = { kind: 'key', object: keyId, projectId, environmentId, verb } as const;
    return toRow({ ...described, detail: { kind, environment, name, first4, last4, ...origins } }, record);
  };
  const rows: AuditRow[] = [];
  const [last] = ended;
  if ((action === 'refresh' || action === 'revoke') && last !== undefined) rows.push(rowOf(last, 'end', {}));
  if (live !== null) {
    const origins = kind === 'publishable' ? { origins: live.origins } : {};
    rows.push(rowOf(live, action === 'change' ? 'change' : 'create', origins));
  }
  return rows;
}

export function auditOfRateLimitKey(key: RateLimitKeyRecord): AuditRow[] {
  const { keyId, partner, calls, windowS, expiresAt, first4, last4, revokedAt, revision } = key;
  const verb = verbOf(revision, revokedAt === null ? null : 'end');
  const described = { kind: 'rate-limit-key', object: keyId, projectId: '', environmentId: '', verb } as const;
  return [toRow({ ...described, detail: { partner, calls, windowS, expiresAt, first4, last4 } }, key)];
}

export function auditOfCollection(collection: CollectionRecord): AuditRow[] {
  const { id, projectId, environmentId, chain, contractAddress, name, state, revision } = collection;
  const verb = verbOf(revision, state === 'unlinked' ? 'unlink' : null);
  const described = { kind: 'collection', object: id, projectId, environmentId, verb } as const;
  return [toRow({ ...described, detail: { chain, contractAddress, name, state } }, collection)];
}

/** One row for the instance with all roles, and one for each project with its role. Only the former shows removed roles. */
export function auditOfAccount(account: AccountRecord): AuditRow[] {
  const { id, name, login, state, isAdministrator, roles, passwordHash, passkeys, openId, invitation } = account;
  const verb = verbOf(account.revision, state === 'disabled' ? 'disable' : null);
  const described = { kind: 'account', object: id, environmentId: '', verb } as const;
  const signIn = {
    hasPassword: passwordHash !== null,
    passkeys: passkeys.length,
    hasOpenId: openId !== null,
    invitedUntil: invitation?.expiresAt ?? null,
  };
  const ofAll = roles.map(({ projectId, role }) => ({ projectId, role }));
  const detail = { name, login, state, isAdministrator, roles: ofAll, ...signIn };
  const rowOf = (projectId: string, shown: object) => toRow({ ...described, projectId, detail: shown }, account);
  return [rowOf('', detail), ...roles.map(({ projectId, role }) => rowOf(projectId, { name, login, state, role }))];
}

/** Never contains the private key, not even sealed. */
export function auditOfSignableKey(key: SignableKeyRecord): AuditRow[] {
  const { address, projectId, environmentId, name, state, revision } = key;
  const verb = verbOf(revision, state === 'disabled' ? 'disable' : null);
  const described = { kind: 'signable-key', object: address, projectId, environmentId, verb } as const;
  return [toRow({ ...described, detail: { name, state } }, key)];
}

export function auditOfEntry(entry: AuditEntryRecord): AuditRow[] {
  const { entryId, happenedAt, actor, action, projectId, environmentId, object, detail, address, requestId } = entry;
  const columns = { projectId, environmentId, happenedAt, entryId, object, action, actor, requestId, address, detail };
  return [{ ...columns, kind: 'entry', revision: 0 }];
}
