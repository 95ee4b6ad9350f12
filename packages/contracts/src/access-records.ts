/** Every record of access: its revision (1, then one more with each change), and who changed it by which request. */
interface Revision {
  revision: number;
  changedAt: number;
  changedBy: string;
  requestId: string;
}

/** A revoked or replaced key. The text of a secret key is stored nowhere. */
export interface EndedKey {
  keyId: string;
  /** SHA-256 of the key's text, hexadecimal. */
  hash: string;
  /** First and last four characters of the random part. */
  first4: string;
  last4: string;
  /** '' without a name. */
  name: string;
  createdAt: number;
  /** Account of the operator who changed it last. */
  changedBy: string;
  revokedAt: number;
}

/** The valid key of an environment. */
export interface LiveKey extends Omit<EndedKey, 'revokedAt'> {
  /** Text of a publishable key; null for a secret key. */
  text: string | null;
  /** Origins whose pages may use a publishable key, such as `https://game.example`. Empty means any. */
  origins: string[];
}

/**
 * Value of `access.keys.v1`, keyed by `id`: the keys of one kind of an environment. Times are epoch milliseconds. A
 * refresh is one record, so two keys of a kind are never live.
 */
export interface AccessKeyRecord extends Revision {
  /** `environmentId/kind` */
  id: string;
  projectId: string;
  environmentId: string;
  environment: 'production' | 'development';
  kind: 'publishable' | 'secret';
  live: LiveKey | null;
  /** Newest first. */
  ended: EndedKey[];
  /** `change`: other origins. */
  action: 'create' | 'refresh' | 'revoke' | 'change';
}

export interface MessageRate {
  perSecond: number;
  burst: number;
}

/** Ten times the capacity of one gateway process. One message is then 5 µs of debt, which clocks still resolve. */
export const MESSAGE_RATE_MAX: Readonly<MessageRate> = { perSecond: 200_000, burst: 10_000_000 };

export interface ProjectEnvironment {
  /** Never changes and is never reused. */
  id: string;
  name: string;
  kind: 'production' | 'development';
  /** An administrator's limit, which replaces the gateways' setting; null keeps the setting. */
  cap: MessageRate | null;
  /** The project's own limit, which can only lower the cap. */
  limit: MessageRate | null;
  createdAt: number;
}

/** Value of `access.projects.v1`, keyed by `id`. Times are epoch milliseconds. */
export interface ProjectRecord extends Revision {
  /** Never changes and is never reused. */
  id: string;
  name: string;
  state: 'live' | 'archived';
  environments: ProjectEnvironment[];
  createdAt: number;
}

/** Value of `access.rate-limit-keys.v1`, keyed by `keyId`. Times are epoch milliseconds. */
export interface RateLimitKeyRecord extends Revision {
  keyId: string;
  /** Who was given the key. */
  partner: string;
  /** Calls in any window of `windowS` seconds. */
  calls: number;
  windowS: number;
  /** Null when it does not expire. */
  expiresAt: number | null;
  /** SHA-256 of the key text, hexadecimal. */
  hash: string;
  first4: string;
  last4: string;
  createdAt: number;
  revokedAt: number | null;
}

/** Value of `access.collections.v1`, keyed by `id`. Times are epoch milliseconds. */
export interface CollectionRecord extends Revision {
  /** `chain:contractAddress` */
  id: string;
  chain: string;
  contractAddress: string;
  projectId: string;
  environmentId: string;
  name: string;
  state: 'linked' | 'unlinked';
  createdAt: number;
}

export interface ProjectRole {
  projectId: string;
  role: 'owner' | 'developer' | 'analyst';
}

export interface Passkey {
  /** base64url, as `publicKey`. */
  id: string;
  publicKey: string;
  /** Signature counter at the last use. */
  counter: number;
  transports: string[];
  name: string;
  createdAt: number;
}

/** Value of `access.accounts.v1`, keyed by `id`. Times are epoch milliseconds. */
export interface AccountRecord extends Revision {
  id: string;
  name: string;
  /** Lower case; '' until the invitation is accepted. */
  login: string;
  state: 'invited' | 'live' | 'disabled';
  /** Of the whole instance. */
  isAdministrator: boolean;
  roles: ProjectRole[];
  /** Argon2id hash with its salt and costs; null without a password. */
  passwordHash: string | null;
  passkeys: Passkey[];
  /** Account at an OpenID Connect provider. */
  openId: { issuer: string; subject: string } | null;
  /**
   * The open invitation. `hash`: SHA-256 of the link's text, hexadecimal. `takenBy`: the account that is accepting it.
   */
  invitation: { hash: string; expiresAt: number; takenBy: string | null } | null;
  /** The last revision that changed rights or credentials, which ended all earlier sessions. */
  sessionsFrom: number;
  createdAt: number;
}

/** Value of `access.signable-keys.v1`, keyed by `address`. Times are epoch milliseconds. */
export interface SignableKeyRecord extends Revision {
  address: string;
  projectId: string;
  environmentId: string;
  name: string;
  /** The private key as a compact JWE for the process that signs. */
  sealed: string;
  state: 'live' | 'disabled';
  createdAt: number;
}

/** Value of `access.audit.v1`, keyed by `projectId`: actions without another record. */
export interface AuditEntryRecord {
  /** A UUID. */
  entryId: string;
  /** Epoch milliseconds. */
  happenedAt: number;
  /** An account; '' when unknown. */
  actor: string;
  /** Such as `session.create` or `erasure.request`. */
  action: string;
  /** '' for the whole instance. */
  projectId: string;
  /** '' for the whole project. */
  environmentId: string;
  /** Never a secret or a player's id. */
  object: string;
  /** JSON; never a secret. */
  detail: string;
  /** Client address of the request, or ''. */
  address: string;
  requestId: string;
}
