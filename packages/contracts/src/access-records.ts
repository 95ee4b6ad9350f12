/** Fields of all access records. `revision` starts at 1 and increases by 1 with each change. */
interface Revision {
  revision: number;
  changedAt: number;
  changedBy: string;
  requestId: string;
}

/** A revoked or replaced key. Secret keys are stored only as hashes. */
export interface EndedKey {
  keyId: string;
  /** SHA-256 of the key, hexadecimal. */
  hash: string;
  /** First and last four characters of the random part. */
  first4: string;
  last4: string;
  /** '' if no name is set. */
  name: string;
  createdAt: number;
  /** The operator account that last changed the key. */
  changedBy: string;
  revokedAt: number;
}

/** A valid key of an environment. */
export interface LiveKey extends Omit<EndedKey, 'revokedAt'> {
  /** The publishable key itself; null for a secret key. */
  text: string | null;
  /** Origins that may use a publishable key, such as `https://game.example`. Empty allows any origin. */
  origins: string[];
  /** When a publishable key stops working; null if no end is set. Gateways compare it with their clock. */
  endsAt: number | null;
  /** Keys with the same value share one message rate limit. '' if the key has its own limit. */
  limitId: string;
}

/**
 * Value of `access.keys.v1`, keyed by `id`: one live key and the keys that it replaced. Times are epoch milliseconds. A
 * refresh is a single record, so there is never more than one live secret key.
 */
export interface AccessKeyRecord extends Revision {
  /** `environmentId/kind`, or `environmentId/publishable/2` and so on for further publishable keys. */
  id: string;
  projectId: string;
  environmentId: string;
  environment: 'production' | 'development';
  kind: 'publishable' | 'secret';
  live: LiveKey | null;
  /** Newest first. */
  ended: EndedKey[];
  /** `change` sets the name, the allowed origins or the end of the live key. */
  action: 'create' | 'refresh' | 'revoke' | 'change';
}

export interface MessageRate {
  perSecond: number;
  burst: number;
}

/** Ten times the capacity of a gateway process. At this rate, a message costs 5 µs, which clocks can still resolve. */
export const MESSAGE_RATE_MAX: Readonly<MessageRate> = { perSecond: 200_000, burst: 10_000_000 };

export interface ProjectEnvironment {
  /** Never changes and is never reused. */
  id: string;
  name: string;
  kind: 'production' | 'development';
  /** The administrator's limit, which replaces the gateways' setting; null applies the setting. */
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
  /** Time zone of the days in analyst views, an IANA name. */
  timeZone: string;
  /** Names of the event properties that analysts without raw ids may read. */
  safeProperties: string[];
  /** URL to which alerts are posted, which can contain a secret; '' if none is set. */
  alertWebhook: string;
  alertEmails: string[];
  /** Times at which the keys that sign alerts were created, the newest last. The keys are derived from these times. */
  alertKeys: number[];
  createdAt: number;
}

/** Value of `access.rate-limit-keys.v1`, keyed by `keyId`. Times are epoch milliseconds. */
export interface RateLimitKeyRecord extends Revision {
  keyId: string;
  /** The partner that received the key. */
  partner: string;
  /** Calls allowed in each window of `windowS` seconds. */
  calls: number;
  windowS: number;
  /** Null if the key does not expire. */
  expiresAt: number | null;
  /** SHA-256 of the key, hexadecimal. */
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
  /** base64url, like `publicKey`. */
  id: string;
  publicKey: string;
  /** Signature counter of the last sign-in. */
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
  /** Administrator of the whole instance. */
  isAdministrator: boolean;
  roles: ProjectRole[];
  /** Argon2id hash with its salt and cost parameters; null if no password is set. */
  passwordHash: string | null;
  passkeys: Passkey[];
  /** Account at an OpenID Connect provider. */
  openId: { issuer: string; subject: string } | null;
  /** `hash` is the SHA-256 of the invitation token, hexadecimal. `takenBy` is the account that is accepting it. */
  invitation: { hash: string; expiresAt: number; takenBy: string | null } | null;
  /** The last revision that changed rights or credentials. Sessions from earlier revisions are invalid. */
  sessionsFrom: number;
  createdAt: number;
}

/** Value of `access.signable-keys.v1`, keyed by `address`. Times are epoch milliseconds. */
export interface SignableKeyRecord extends Revision {
  address: string;
  projectId: string;
  environmentId: string;
  name: string;
  /** The private key as a compact JWE, which only the process that signs transactions can decrypt. */
  sealed: string;
  state: 'live' | 'disabled';
  createdAt: number;
}

/** Value of `access.audit.v1`, keyed by `projectId`: an action that creates no other record. */
export interface AuditEntryRecord {
  /** A UUID. */
  entryId: string;
  /** Epoch milliseconds. */
  happenedAt: number;
  /** An account; '' if unknown. */
  actor: string;
  /** For example `session.create` or `erasure.request`. */
  action: string;
  /** '' for the whole instance. */
  projectId: string;
  /** '' for the whole project. */
  environmentId: string;
  /** Id of the affected object; never a secret or a player's id. */
  object: string;
  /** JSON without secrets. */
  detail: string;
  /** Client address of the request; '' if there was no request. */
  address: string;
  requestId: string;
}
