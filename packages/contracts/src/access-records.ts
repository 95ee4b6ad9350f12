/** Value of `access.keys.v1`, keyed by `keyId`. */
export interface AccessKeyRecord {
  keyId: string;
  projectId: string;
  environmentId: string;
  environment: 'production' | 'development';
  kind: 'publishable' | 'secret';
  /** SHA-256 of the key text, hexadecimal. */
  hash: string;
  first4: string;
  last4: string;
  createdAt: number;
  revokedAt: number | null;
  /** What people call it; '' when nobody named it. */
  name: string;
  /** The text of a publishable key, which clients carry and which is no secret; null for secret and for older keys. */
  text: string | null;
  /** Who made or ended it, and with what request; '' where a release before did not say. */
  changedBy: string;
  requestId: string;
  /** Of a publishable key: origins whose pages may use it, such as `https://game.example`; none: any. */
  origins: readonly string[];
  /** When it was changed last while it lived, in epoch milliseconds; 0: never since it was made. */
  changedAt: number;
}

/** How many messages a second, and how many at once. */
export interface MessageRate {
  perSecond: number;
  burst: number;
}

/** An environment of a project: what every event, key and limit belongs to. */
export interface ProjectEnvironment {
  /** Never changed, never given again. */
  id: string;
  name: string;
  kind: 'production' | 'development';
  /** What an administrator allows, in the place of the gateways' setting; null: that setting. */
  cap: MessageRate | null;
  /** What the project itself wants at most; it only lowers. */
  limit: MessageRate | null;
  createdAt: number;
}

/** Value of `access.projects.v1`, keyed by `id`. Times are epoch milliseconds. */
export interface ProjectRecord {
  /** Never changed, never given again. */
  id: string;
  /** 1, and one more with each change of the project. */
  revision: number;
  name: string;
  state: 'live' | 'archived';
  environments: ProjectEnvironment[];
  createdAt: number;
  changedAt: number;
  /** Account of an operator. */
  changedBy: string;
  /** Of the command or request that made the change. */
  requestId: string;
}

/** Value of `access.rate-limit-keys.v1`, keyed by `keyId`. Times are epoch milliseconds. */
export interface RateLimitKeyRecord {
  keyId: string;
  /** 1, and one more with each change of the key. */
  revision: number;
  /** Who was given the key. */
  partner: string;
  /** Calls in any window of `windowS` seconds. */
  calls: number;
  windowS: number;
  /** Null: until it is revoked. */
  expiresAt: number | null;
  /** SHA-256 of the key text, hexadecimal. */
  hash: string;
  first4: string;
  last4: string;
  createdAt: number;
  revokedAt: number | null;
  changedAt: number;
  /** Account of an operator. */
  changedBy: string;
  /** Of the command or request that made the change. */
  requestId: string;
}

/** Value of `access.collections.v1`, keyed by `id`. Times are epoch milliseconds. */
export interface CollectionRecord {
  /** `chain:contractAddress` */
  id: string;
  /** 1, and one more with each change of the collection. */
  revision: number;
  /** Name of the chain, as paths say it. */
  chain: string;
  /** `0x` and 40 lower-case hexadecimal digits. */
  contractAddress: string;
  projectId: string;
  environmentId: string;
  /** What people call it. */
  name: string;
  state: 'linked' | 'unlinked';
  createdAt: number;
  changedAt: number;
  changedBy: string;
  requestId: string;
}

/** What somebody may do in one project. */
export interface ProjectRole {
  projectId: string;
  role: 'owner' | 'developer' | 'analyst';
}

/** A key pair in somebody's device; the public half. */
export interface Passkey {
  /** base64url */
  id: string;
  /** base64url */
  publicKey: string;
  /** As the device counted last. */
  counter: number;
  transports: string[];
  name: string;
  createdAt: number;
}

/** Value of `access.accounts.v1`, keyed by `id`. Times are epoch milliseconds. */
export interface AccountRecord {
  id: string;
  /** 1, and one more with each change of the account. */
  revision: number;
  name: string;
  /** What is typed to sign in, lower case; '' while nobody has accepted the invitation. */
  login: string;
  state: 'invited' | 'live' | 'disabled';
  /** Of the whole instance. */
  isAdministrator: boolean;
  roles: ProjectRole[];
  /** argon2id, with its salt and its costs; null without a password. */
  passwordHash: string | null;
  passkeys: Passkey[];
  /** Who the account is at a provider of OpenID Connect. */
  openId: { issuer: string; subject: string } | null;
  /**
   * Open as long as it is there. `hash`: SHA-256 of the text in the link, hexadecimal. `takenBy`: account that takes what the
   * link gives, and has not got all of it yet; the link is good for nobody else.
   */
  invitation: { hash: string; expiresAt: number; takenBy?: string | null } | null;
  /**
   * The revision with which rights or credentials changed last: sessions of one before have ended. Absent in what a release
   * before has left in Redis: 0.
   */
  sessionsFrom?: number;
  createdAt: number;
  changedAt: number;
  changedBy: string;
  requestId: string;
}

/** Value of `access.signable-keys.v1`, keyed by `address`. Times are epoch milliseconds. */
export interface SignableKeyRecord {
  /** `0x` and 40 lower-case hexadecimal digits. */
  address: string;
  /** 1, and one more with each change of the key. */
  revision: number;
  projectId: string;
  environmentId: string;
  name: string;
  /** JWE, compact: the private key, for the key pair of the process that signs. */
  sealed: string;
  state: 'live' | 'disabled';
  createdAt: number;
  changedAt: number;
  changedBy: string;
  requestId: string;
}

/** Value of `access.audit.v1`, keyed by `projectId`: what leaves no record of its own behind. */
export interface AuditEntryRecord {
  /** A UUID. */
  entryId: string;
  /** Epoch milliseconds. */
  happenedAt: number;
  /** An account of the portal, or of an operator; '' when nobody is known. */
  actor: string;
  /** Such as `session.create` or `erasure.request`. */
  action: string;
  /** '' for what concerns the whole instance. */
  projectId: string;
  /** '' for what concerns the whole project. */
  environmentId: string;
  /** Id of what it was done to; never a secret, never an id of a player. */
  object: string;
  /** JSON; never a secret. */
  detail: string;
  /** Where the request came from; '' when there was none. */
  address: string;
  requestId: string;
}
