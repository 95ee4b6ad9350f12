/** What is kept of a key of an environment. The text of a secret key is nowhere: it is shown once and hashed. */
export interface EndedKey {
  keyId: string;
  /** SHA-256 of the key's text, hexadecimal. */
  hash: string;
  /** First and last four characters of the random part, so that a person can tell keys apart. */
  first4: string;
  last4: string;
  /** Name for people; '' without one. */
  name: string;
  createdAt: number;
  /** Who made, changed or ended it last: an account of an operator. */
  changedBy: string;
  revokedAt: number;
}

/** The key of an environment that is valid now. */
export interface LiveKey extends Omit<EndedKey, 'revokedAt'> {
  /** Text of a publishable key, which is no secret; null for a secret key. */
  text: string | null;
  /** For a publishable key: origins whose pages may use it, such as `https://game.example`. Empty means any. */
  origins: string[];
}

/**
 * Value of `access.keys.v1`, keyed by `id`: the keys of one kind of an environment. Times are epoch milliseconds. A
 * refresh is one record, so an environment never has two live keys of a kind.
 */
export interface AccessKeyRecord {
  /** `environmentId/kind` */
  id: string;
  /** 1, and one more with each change. */
  revision: number;
  projectId: string;
  environmentId: string;
  environment: 'production' | 'development';
  kind: 'publishable' | 'secret';
  /** Null when the environment has no valid key of this kind. */
  live: LiveKey | null;
  /** The newest first. */
  ended: EndedKey[];
  /** What this revision did; `change`: other origins. */
  action: 'create' | 'refresh' | 'revoke' | 'change';
  changedAt: number;
  /** Account of an operator. */
  changedBy: string;
  /** Of the command or request that made the change. */
  requestId: string;
}

/** Rate limit: messages per second, and the burst. */
export interface MessageRate {
  perSecond: number;
  burst: number;
}

/**
 * The highest rate: ten times what one gateway process can take. One message is then 5 µs of debt, which clocks can
 * still resolve.
 */
export const MESSAGE_RATE_MAX: Readonly<MessageRate> = { perSecond: 200_000, burst: 10_000_000 };

/** An environment of a project. Every event, key and limit belongs to one. */
export interface ProjectEnvironment {
  /** Never changed, never given again. */
  id: string;
  name: string;
  kind: 'production' | 'development';
  /** Limit set by an administrator. It replaces the gateways' setting; null keeps that setting. */
  cap: MessageRate | null;
  /** Limit set by the project. It can only lower the one above. */
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
  /** Null when it is valid until it is revoked. */
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
  /** Name of the chain, as in the paths of the interface. */
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

/** Public key of a WebAuthn credential. */
export interface Passkey {
  /** base64url */
  id: string;
  /** base64url */
  publicKey: string;
  /** Signature counter of the device at its last use. */
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
  /** Login name, lower case; '' until the invitation is accepted. */
  login: string;
  state: 'invited' | 'live' | 'disabled';
  /** Of the whole instance. */
  isAdministrator: boolean;
  roles: ProjectRole[];
  /** Argon2id hash with its salt and costs; null without a password. */
  passwordHash: string | null;
  passkeys: Passkey[];
  /** Identity of the account at a provider of OpenID Connect. */
  openId: { issuer: string; subject: string } | null;
  /**
   * The invitation, while it is open. `hash`: SHA-256 of the text in the link, hexadecimal. `takenBy`: the account that
   * is accepting it but does not have all that it grants yet; nobody else can use the link.
   */
  invitation: { hash: string; expiresAt: number; takenBy: string | null } | null;
  /** The last revision that changed rights or credentials. It ended all earlier sessions. */
  sessionsFrom: number;
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
  /** The private key as a compact JWE, encrypted for the process that signs. */
  sealed: string;
  state: 'live' | 'disabled';
  createdAt: number;
  changedAt: number;
  changedBy: string;
  requestId: string;
}

/** Value of `access.audit.v1`, keyed by `projectId`: actions that leave no other record. */
export interface AuditEntryRecord {
  /** A UUID. */
  entryId: string;
  /** Epoch milliseconds. */
  happenedAt: number;
  /** Account of the portal or of an operator; '' when unknown. */
  actor: string;
  /** Such as `session.create` or `erasure.request`. */
  action: string;
  /** '' for what concerns the whole instance. */
  projectId: string;
  /** '' for what concerns the whole project. */
  environmentId: string;
  /** Id of the object of the action. Never a secret, never an id of a player. */
  object: string;
  /** JSON; never a secret. */
  detail: string;
  /** Client address of the request; '' without one. */
  address: string;
  requestId: string;
}
