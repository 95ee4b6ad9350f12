import type {
  AccessKeyRecord,
  AccountRecord,
  AuditEntryRecord,
  CollectionRecord,
  ProjectRecord,
  RateLimitKeyRecord,
  SignableKeyRecord,
} from '@playline/contracts';

/** One row of `audit_log`: who did what to which object. Times are epoch milliseconds. */
export interface AuditRow {
  /** '' for what concerns the whole instance. */
  readonly projectId: string;
  /** '' for what concerns the whole project. */
  readonly environmentId: string;
  readonly happenedAt: number;
  /** The same for the same change, however often its record is written: two rows with it are one. */
  readonly entryId: string;
  /** `entry` for what was written to the audit itself; else the kind of record that it follows from. */
  readonly kind: AuditKind;
  readonly object: string;
  /** Of the record; 0 for an entry. */
  readonly revision: number;
  /** Such as `key.create`. */
  readonly action: string;
  /** '' where nobody is known: releases before did not say. */
  readonly actor: string;
  readonly requestId: string;
  /** Where the request came from; '' for what follows from a record, which does not say. */
  readonly address: string;
  /** JSON of an object; never a secret. */
  readonly detail: string;
}

export const AUDIT_KINDS = [
  ...(['project', 'key', 'rate-limit-key', 'collection', 'account', 'signable-key'] as const),
  'entry',
] as const;
export type AuditKind = (typeof AUDIT_KINDS)[number];

/** What a change is called: the first of an object, one that leaves it ended, and any other. */
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
  /** Every member is named here on purpose: what a record gets later is in no detail until somebody has looked at it. */
  readonly detail: object;
}

function toRow(described: Described, { revision, changedAt, changedBy, requestId }: Changed): AuditRow {
  const { kind, object, projectId, environmentId, verb, detail } = described;
  return {
    ...{ projectId, environmentId, happenedAt: changedAt, kind, object, revision },
    // The request too: of two changes that were made of one revision by accident one has lost, and both were asked for.
    entryId: [kind, object, revision, requestId].join(':'),
    ...{ action: `${kind}.${verb}`, actor: changedBy, requestId, address: '', detail: JSON.stringify(detail) },
  };
}

/** Of a record of a project: its environments with what they may send. */
export function auditOfProject(project: ProjectRecord): AuditRow[] {
  const { id, name, state, environments, revision } = project;
  const verb = verbOf({ isFirst: revision === 1, isEnded: state === 'archived', end: 'archive' });
  const shown = environments.map((each) => ({
    ...{ id: each.id, name: each.name, kind: each.kind, cap: each.cap, limit: each.limit },
  }));
  const described = { kind: 'project', object: id, projectId: id, environmentId: '', verb } as const;
  return [toRow({ ...described, detail: { name, state, environments: shown } }, project)];
}

/**
 * Of a record of a key of an environment, which has no revision: it is made once and ends once. What was changed in between
 * is told apart by its requests.
 */
export function auditOfKey(key: AccessKeyRecord): AuditRow[] {
  const { keyId, projectId, environmentId, environment, kind, first4, last4, name, createdAt, revokedAt } = key;
  const { changedBy, requestId, origins, changedAt } = key;
  const isEnded = revokedAt !== null;
  const verb = verbOf({ isFirst: !isEnded && changedAt === 0, isEnded, end: 'end' });
  const happenedAt = revokedAt ?? (changedAt === 0 ? createdAt : changedAt);
  const change = { revision: isEnded ? 2 : 1, changedAt: happenedAt, changedBy, requestId };
  const described = { kind: 'key', object: keyId, projectId, environmentId, verb } as const;
  const shown = { kind, environment, name, first4, last4, ...(kind === 'publishable' ? { origins } : {}) };
  return [toRow({ ...described, detail: shown }, change)];
}

/** Of a record of a partner's key, which belongs to the instance. */
export function auditOfRateLimitKey(key: RateLimitKeyRecord): AuditRow[] {
  const { keyId, partner, calls, windowS, expiresAt, first4, last4, revokedAt, revision } = key;
  const verb = verbOf({ isFirst: revision === 1, isEnded: revokedAt !== null, end: 'end' });
  const described = { kind: 'rate-limit-key', object: keyId, projectId: '', environmentId: '', verb } as const;
  return [toRow({ ...described, detail: { partner, calls, windowS, expiresAt, first4, last4 } }, key)];
}

/** Of a record of a collection. */
export function auditOfCollection(collection: CollectionRecord): AuditRow[] {
  const { id, projectId, environmentId, chain, contractAddress, name, state, revision } = collection;
  const verb = verbOf({ isFirst: revision === 1, isEnded: state === 'unlinked', end: 'unlink' });
  const described = { kind: 'collection', object: id, projectId, environmentId, verb } as const;
  return [toRow({ ...described, detail: { chain, contractAddress, name, state } }, collection)];
}

/**
 * Of a record of an account: a row for the instance with all roles, and one for each project in which it has a role, with
 * that role alone. A record does not tell of a role that was taken away, so that stands with the instance only.
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

/** Of a record of a key that signs: without its private key, sealed or not. */
export function auditOfSignableKey(key: SignableKeyRecord): AuditRow[] {
  const { address, projectId, environmentId, name, state, revision } = key;
  const verb = verbOf({ isFirst: revision === 1, isEnded: state === 'disabled', end: 'disable' });
  const described = { kind: 'signable-key', object: address, projectId, environmentId, verb } as const;
  return [toRow({ ...described, detail: { name, state } }, key)];
}

/** Of an entry of the audit itself: as it is. */
export function auditOfEntry(entry: AuditEntryRecord): AuditRow[] {
  const { entryId, happenedAt, actor, action, projectId, environmentId, object, detail, address, requestId } = entry;
  const said = { projectId, environmentId, happenedAt, entryId, object, action, actor, requestId, address, detail };
  return [{ ...said, kind: 'entry', revision: 0 }];
}
