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
  /** Empty if the change applies to the whole instance. */
  readonly projectId: string;
  /** Empty if the change applies to the whole project. */
  readonly environmentId: string;
  readonly happenedAt: number;
  /** Identifies the change. Rows with the same id are merged into one row. */
  readonly entryId: string;
  /** `entry` for an audit entry, otherwise the record kind. */
  readonly kind: AuditKind;
  readonly object: string;
  readonly revision: number;
  readonly action: string;
  /** Empty if the author of the change is unknown. */
  readonly actor: string;
  readonly requestId: string;
  /** Client address of the request; empty for rows derived from a record. */
  readonly address: string;
  /** A JSON object without secrets. */
  readonly detail: string;
}

type AuditKind = 'project' | 'key' | 'rate-limit-key' | 'collection' | 'account' | 'signable-key' | 'entry';

/** Returns the verb for a change. @param end verb for a change that ends the object, otherwise null */
const toVerb = (revision: number, end: string | null) => (revision === 1 ? 'create' : (end ?? 'change'));

type Changed = Pick<ProjectRecord, 'revision' | 'changedAt' | 'changedBy' | 'requestId'>;

interface Described {
  readonly kind: Exclude<AuditKind, 'entry'>;
  readonly object: string;
  readonly projectId: string;
  readonly environmentId: string;
  readonly verb: string;
  /** Lists each field explicitly, so that a new record field does not appear without review. */
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
    // Includes the request, because two changes may race for one revision.
    entryId: [kind, object, revision, requestId].join(':'),
    action: `${kind}.${verb}`,
    actor: changedBy,
    requestId,
    address: '',
    detail: JSON.stringify(detail),
  };
}

/** ClickHouse derives the table environment_settings from this detail. */
export function auditOfProject(project: ProjectRecord): AuditRow[] {
  const { id, name, state, environments, timeZone, safeProperties, alertWebhook, alertEmails, alertKeys, revision } =
    project;
  const verb = toVerb(revision, state === 'archived' ? 'archive' : null);
  const shown = environments.map(({ id, name, kind, cap, limit }) => ({ id, name, kind, cap, limit }));
  const described = { kind: 'project', object: id, projectId: id, environmentId: '', verb } as const;
  // The URL can contain a secret, and the addresses are personal data.
  const alertKeyCreatedAt = alertKeys.at(-1) ?? null;
  const alerts = { hasAlertWebhook: alertWebhook !== '', alertEmails: alertEmails.length, alertKeyCreatedAt };
  const detail = { name, state, environments: shown, timeZone, safeProperties, ...alerts };
  return [toRow({ ...described, detail }, project)];
}

export function auditOfKey(record: AccessKeyRecord): AuditRow[] {
  const { projectId, environmentId, environment, kind, live, ended, action } = record;
  const toKeyRow = ({ keyId, first4, last4, name }: EndedKey | LiveKey, verb: string, settings: object) => {
    const described = { kind: 'key', object: keyId, projectId, environmentId, verb } as const;
    return toRow({ ...described, detail: { kind, environment, name, first4, last4, ...settings } }, record);
  };
  const rows: AuditRow[] = [];
  const [last] = ended;
  if ((action === 'refresh' || action === 'revoke') && last !== undefined) rows.push(toKeyRow(last, 'end', {}));
  if (live !== null) {
    const settings = kind === 'publishable' ? { origins: live.origins, endsAt: live.endsAt } : {};
    rows.push(toKeyRow(live, action === 'change' ? 'change' : 'create', settings));
  }
  return rows;
}

export function auditOfRateLimitKey(key: RateLimitKeyRecord): AuditRow[] {
  const { keyId, partner, calls, windowS, expiresAt, first4, last4, revokedAt, revision } = key;
  const verb = toVerb(revision, revokedAt === null ? null : 'end');
  const described = { kind: 'rate-limit-key', object: keyId, projectId: '', environmentId: '', verb } as const;
  return [toRow({ ...described, detail: { partner, calls, windowS, expiresAt, first4, last4 } }, key)];
}

export function auditOfCollection(collection: CollectionRecord): AuditRow[] {
  const { id, projectId, environmentId, chain, contractAddress, name, state, revision } = collection;
  const verb = toVerb(revision, state === 'unlinked' ? 'unlink' : null);
  const described = { kind: 'collection', object: id, projectId, environmentId, verb } as const;
  return [toRow({ ...described, detail: { chain, contractAddress, name, state } }, collection)];
}

/** Returns one row for the instance with all roles, and one per project. Only the instance row shows removed roles. */
export function auditOfAccount(account: AccountRecord): AuditRow[] {
  const { id, name, login, state, isAdministrator, roles, passwordHash, passkeys, openId, invitation } = account;
  const verb = toVerb(account.revision, state === 'disabled' ? 'disable' : null);
  const described = { kind: 'account', object: id, environmentId: '', verb } as const;
  const signIn = {
    hasPassword: passwordHash !== null,
    passkeys: passkeys.length,
    hasOpenId: openId !== null,
    invitedUntil: invitation?.expiresAt ?? null,
  };
  const allRoles = roles.map(({ projectId, role }) => ({ projectId, role }));
  const detail = { name, login, state, isAdministrator, roles: allRoles, ...signIn };
  const toAccountRow = (projectId: string, shown: object) => toRow({ ...described, projectId, detail: shown }, account);
  return [
    toAccountRow('', detail),
    ...roles.map(({ projectId, role }) => toAccountRow(projectId, { name, login, state, role })),
  ];
}

/** Never contains the private key, even in sealed form. */
export function auditOfSignableKey(key: SignableKeyRecord): AuditRow[] {
  const { address, projectId, environmentId, name, state, revision } = key;
  const verb = toVerb(revision, state === 'disabled' ? 'disable' : null);
  const described = { kind: 'signable-key', object: address, projectId, environmentId, verb } as const;
  return [toRow({ ...described, detail: { name, state } }, key)];
}

export function auditOfEntry(entry: AuditEntryRecord): AuditRow[] {
  const { entryId, happenedAt, actor, action, projectId, environmentId, object, detail, address, requestId } = entry;
  const columns = { projectId, environmentId, happenedAt, entryId, object, action, actor, requestId, address, detail };
  return [{ ...columns, kind: 'entry', revision: 0 }];
}
