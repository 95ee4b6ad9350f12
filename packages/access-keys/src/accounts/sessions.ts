import type { AccountRecord } from '@playline/contracts';
import type { OneTimeTexts } from './one-time-texts.ts';

/** How long a session lasts without being used, and at most. */
export const SESSION_IDLE_MS = 12 * 60 * 60_000;
export const SESSION_MAX_MS = 7 * 24 * 60 * 60_000;
/** The time of last use is stored at most this often, so that not every page view is a write. */
export const SEEN_EVERY_MS = 60_000;
/** Longer ones are cut. They are only shown to the person; nothing depends on them. */
export const USER_AGENT_CHARACTERS_MAX = 200;

/** A session: a person has signed in on a device. */
export interface SessionRecord {
  /** SHA-256 of the text, hexadecimal, so that data of the store do not let anybody sign in. */
  readonly id: string;
  readonly accountId: string;
  /** Revision of the account's record when the person signed in. */
  readonly accountRevision: number;
  /** Epoch milliseconds, as the ones below. */
  readonly createdAt: number;
  /** Right to a minute. */
  readonly seenAt: number;
  /** When the person last proved who they are. */
  readonly signedInAt: number;
  readonly userAgent: string;
  readonly address: string;
}

/** Where somebody signs in from. */
export interface SignInClient {
  readonly userAgent: string;
  readonly address: string;
}

/** A session that is to begin. */
export interface NewSession extends SignInClient {
  readonly accountId: string;
  /** Revision of the account's record. Absent means 0, so any change of rights or credentials has ended the session. */
  readonly accountRevision?: number;
  /** When the person proved who they are, epoch milliseconds. Absent: now. */
  readonly signedInAt?: number;
}

export interface CreatedSession {
  /** 256 bits, base64url. It is in the cookie and nowhere else. */
  readonly text: string;
  readonly session: SessionRecord;
}

/** Who is signed in. If the store is emptied, everybody is signed out, and nothing else happens. */
export interface Sessions {
  create(wanted: NewSession): Promise<CreatedSession>;
  /** The session of a text; null when there is none, it was ended, was not used for 12 hours, or is 7 days old. */
  find(text: string): Promise<SessionRecord | null>;
  /** The person has just proved again who they are. Does nothing to a session that has ended. */
  markSignedIn(id: string): Promise<void>;
  /** Those of an account that have not ended, the newest first. */
  list(accountId: string): Promise<readonly SessionRecord[]>;
  end(id: string): Promise<void>;
  /** Ends all sessions of an account except one. */
  endAll(accountId: string, exceptId?: string): Promise<void>;
}

/** Open stores of sessions and one-time texts. */
export interface SessionStores {
  readonly sessions: Sessions;
  readonly oneTimeTexts: OneTimeTexts;
  /** True when they answer. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** A session that begins. */
export function toSession(
  id: string,
  { accountId, userAgent, address, ...also }: NewSession,
  nowAt: number,
): SessionRecord {
  const { accountRevision = 0, signedInAt = nowAt } = also;
  const cut = userAgent.slice(0, USER_AGENT_CHARACTERS_MAX);
  const times = { createdAt: nowAt, seenAt: nowAt, signedInAt: Math.min(signedInAt, nowAt) };
  return { id, accountId, accountRevision, ...times, userAgent: cut, address };
}

/**
 * Whether a session is still valid for an account. A change of rights or credentials is written to the account's record
 * first, and only then are sessions removed from their store. If the process dies in between, the store still has
 * sessions, but none of them is valid.
 */
export function isSessionOf(
  session: Pick<SessionRecord, 'accountId' | 'accountRevision'>,
  account: Pick<AccountRecord, 'id' | 'sessionsFrom'>,
): boolean {
  return session.accountId === account.id && session.accountRevision >= account.sessionsFrom;
}

/** The instant at which a session ends unless it is used before. */
export function endOfSession({ createdAt, seenAt }: Pick<SessionRecord, 'createdAt' | 'seenAt'>): number {
  return Math.min(seenAt + SESSION_IDLE_MS, createdAt + SESSION_MAX_MS);
}
