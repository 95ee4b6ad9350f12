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

/** One row of `audit_log`: who did what to which object. Times are epoch milliseconds. */
export interface AuditRow {
  /** '' when the change concerns the whole instance. */
  readonly projectId: string;
  /** '' when the change concerns the whole project. */
  readonly environmentId: string;
  readonly happenedAt: number;
  /** Identifies the change. Rows with the same id are one row, however often the record was written. */
  readonly entryId: string;
  /** `entry` for an entry that was written to the audit itself; otherwise the kind of the record behind the row. */
  readonly kind: AuditKind;
  readonly object: string;
  /** Revision of the record; 0 for an entry. */
  readonly revision: number;
  /** Such as `key.create`. */
  readonly action: string;
  /** '' when no person or program made the change. */
  readonly actor: string;
  readonly requestId: string;
  /** Where the request came from; '' for rows made from a record, because records do not contain it. */
  readonly address: string;
  /** JSON of an object; never a secret. */
  readonly detail: string;
}

export const AUDIT_KINDS = [
  ...(['project', 'key', 'rate-limit-key', 'collection', 'account', 'signable-key'] as const),
  'entry',
] as const;
export type AuditKind = (typeof AUDIT_KINDS)[number];

/** How the verb of a change is chosen: for the first revision, for a change that ends the object, and for any other. */
interface Verbs {
  readonly isFirst: boolean;
  readonly isEnded: boolean;
  readonly end: string;
}

const verbOf = ({ isFirst, isEnded, end }: Verbs) => (isFirst ? 'create' : isEnded ? end : 'change');

interface Changed {
  readonly revision: number;
  readonly changedAt: number;
  readonly changedBy: string;
  readonly requestId: string;
}

interface Described {
  readonly kind: Exclude<AuditKind, 'entry'>;
  readonly object: string;
  readonly projectId: string;
  readonly environmentId: string;
  readonly verb: string;
  /**
   * Members are listed one by one on purpose: a field added to a record later is not shown until somebody has checked
   * it.
   */
  readonly detail: object;
}

function toRow(described: Described, { revision, changedAt, changedBy, requestId }: Changed): AuditRow {
  const { kind, object, projectId, environmentId, verb, detail } = described;
  return {
    ...{ projectId, environmentId, happenedAt: changedAt, kind, object, revision },
    // Includes the request: two changes of the same revision may race. One is lost, but both requests belong in the
    // audit.
    entryId: [kind, object, revision, requestId].join(':'),
    ...{ action: `${kind}.${verb}`, actor: changedBy, requestId, address: '', detail: JSON.stringify(detail) },
  };
}

/** Audit row of a project, with its environments and their limits. */
export function auditOfProject(project: ProjectRecord): AuditRow[] {
  const { id, name, state, environments, revision } = project;
  const verb = verbOf({ isFirst: revision === 1, isEnded: state === 'archived', end: 'archive' });
  const shown = environments.map((each) => ({
    ...{ id: each.id, name: each.name, kind: each.kind, cap: each.cap, limit: each.limit },
  }));
  const described = { kind: 'project', object: id, projectId: id, environmentId: '', verb } as const;
  return [toRow({ ...described, detail: { name, state, environments: shown } }, project)];
}

/** Audit rows of keys of an environment: of the key that was ended, and of the one that was created or changed. */
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

/** Audit row of a partner's key. Such a key belongs to the whole instance. */
export function auditOfRateLimitKey(key: RateLimitKeyRecord): AuditRow[] {
  const { keyId, partner, calls, windowS, expiresAt, first4, last4, revokedAt, revision } = key;
  const verb = verbOf({ isFirst: revision === 1, isEnded: revokedAt !== null, end: 'end' });
  const described = { kind: 'rate-limit-key', object: keyId, projectId: '', environmentId: '', verb } as const;
  return [toRow({ ...described, detail: { partner, calls, windowS, expiresAt, first4, last4 } }, key)];
}

/** Audit row of a collection. */
export function auditOfCollection(collection: CollectionRecord): AuditRow[] {
  const { id, projectId, environmentId, chain, contractAddress, name, state, revision } = collection;
  const verb = verbOf({ isFirst: revision === 1, isEnded: state === 'unlinked', end: 'unlink' });
  const described = { kind: 'collection', object: id, projectId, environmentId, verb } as const;
  return [toRow({ ...described, detail: { chain, contractAddress, name, state } }, collection)];
}

/**
 * Audit rows of an account: one for the instance with all roles, and one for each project in which the account has a
 * role, with that role alone. A record does not list roles that were removed, so only the row of the instance shows a
 * removal.
 */
export function auditOfAccount(account: AccountRecord): AuditRow[] {
  const { id, name, login, state, isAdministrator, roles, passwordHash, passkeys, openId, invitation } = account;
  const verb = verbOf({ isFirst: account.revision === 1, isEnded: state === 'disabled', end: 'disable' });
  const described = { kind: 'account', object: id, environmentId: '', verb } as const;
  const signIn = {
    ...{ hasPassword: passwordHash !== null, passkeys: passkeys.length, hasOpenId: openId !== null },
    invitedUntil: invitation?.expiresAt ?? null,
  };
  const ofAll = roles.map(({ projectId, role }) => ({ projectId, role }));
  const detail = { name, login, state, isAdministrator, roles: ofAll, ...signIn };
  return [
    toRow({ ...described, projectId: '', detail }, account),
    ...roles.map(({ projectId, role }) =>
      toRow({ ...described, projectId, detail: { name, login, state, role } }, account),
    ),
  ];
}

/** Audit row of a signing key. It never contains the private key, not even sealed. */
export function auditOfSignableKey(key: SignableKeyRecord): AuditRow[] {
  const { address, projectId, environmentId, name, state, revision } = key;
  const verb = verbOf({ isFirst: revision === 1, isEnded: state === 'disabled', end: 'disable' });
  const described = { kind: 'signable-key', object: address, projectId, environmentId, verb } as const;
  return [toRow({ ...described, detail: { name, state } }, key)];
}

/** Audit row of an entry that was written to the audit itself. */
export function auditOfEntry(entry: AuditEntryRecord): AuditRow[] {
  const { entryId, happenedAt, actor, action, projectId, environmentId, object, detail, address, requestId } = entry;
  const said = { projectId, environmentId, happenedAt, entryId, object, action, actor, requestId, address, detail };
  return [{ ...said, kind: 'entry', revision: 0 }];
}
