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
