import type { AccountRecord } from '@playline/contracts';
import type { OneTimeTokens } from './one-time-tokens.ts';

/** Sessions end after this idle time, or when they reach `SESSION_MAX_MS`. */
export const SESSION_IDLE_MS = 12 * 60 * 60_000;
export const SESSION_MAX_MS = 7 * 24 * 60 * 60_000;
/** Minimum interval between updates to the last-used time. */
export const SEEN_INTERVAL_MS = 60_000;
/** Longer user agents are truncated, because they are only displayed. */
export const USER_AGENT_CHARACTERS_MAX = 200;

export interface SessionRecord {
  /** SHA-256 of the session token, in hexadecimal. */
  readonly id: string;
  readonly accountId: string;
  /** Revision of the account record at sign-in. */
  readonly accountRevision: number;
  /** Epoch milliseconds, like `seenAt` and `signedInAt`. */
  readonly createdAt: number;
  /** Time of the last use, accurate to one minute. */
  readonly seenAt: number;
  /** Time at which the person last proved their identity. */
  readonly signedInAt: number;
  readonly userAgent: string;
  readonly address: string;
}

export interface SignInClient {
  readonly userAgent: string;
  readonly address: string;
}

export interface NewSession extends SignInClient {
  readonly accountId: string;
  /** Default: 0. The session is then invalid if permissions or credentials have ever changed. */
  readonly accountRevision?: number;
  /** Epoch milliseconds; default: now. */
  readonly signedInAt?: number;
}

export interface CreatedSession {
  /** Session token: 256 bits, base64url. Stored only in the cookie. */
  readonly text: string;
  readonly session: SessionRecord;
}

/** Emptying the store signs everyone out. */
export interface Sessions {
  create(wanted: NewSession): Promise<CreatedSession>;
  /** Returns the session for a token; null if the token is unknown or the session has ended. */
  find(text: string): Promise<SessionRecord | null>;
  /** Records that the person has proved their identity again. */
  markSignedIn(id: string): Promise<void>;
  /** Lists the account's sessions, newest first. */
  list(accountId: string): Promise<readonly SessionRecord[]>;
  end(id: string): Promise<void>;
  endAll(accountId: string, exceptId?: string): Promise<void>;
}

export interface SessionStores {
  readonly sessions: Sessions;
  readonly oneTimeTokens: OneTimeTokens;
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

export function toSession(id: string, wanted: NewSession, nowAt: number): SessionRecord {
  const { accountId, userAgent, address, accountRevision = 0, signedInAt = nowAt } = wanted;
  const shortUserAgent = userAgent.slice(0, USER_AGENT_CHARACTERS_MAX);
  const times = { createdAt: nowAt, seenAt: nowAt, signedInAt: Math.min(signedInAt, nowAt) };
  return { id, accountId, accountRevision, ...times, userAgent: shortUserAgent, address };
}

/** Sessions from before the last change of permissions or credentials are invalid, even if still stored. */
export function isSessionOf(
  session: Pick<SessionRecord, 'accountId' | 'accountRevision'>,
  account: Pick<AccountRecord, 'id' | 'sessionsFrom'>,
): boolean {
  return session.accountId === account.id && session.accountRevision >= account.sessionsFrom;
}

/** Returns the time at which the session ends unless it is used before then. */
export const endOfSession = ({ createdAt, seenAt }: Pick<SessionRecord, 'createdAt' | 'seenAt'>): number =>
  Math.min(seenAt + SESSION_IDLE_MS, createdAt + SESSION_MAX_MS);
