import type { AccountRecord } from '@playline/contracts';

/** How long a session lasts without being used, and at most. */
export const SESSION_IDLE_MS = 12 * 60 * 60_000;
export const SESSION_MAX_MS = 7 * 24 * 60 * 60_000;
/** A session that is used says so at most this often: reading a page must not be a write each time. */
export const SEEN_EVERY_MS = 60_000;
/** Longer ones are cut: they are shown to the person, and nothing is decided by them. */
const USER_AGENT_CHARACTERS_MAX = 200;

/** That somebody has signed in on some device. */
export interface SessionRecord {
  /** SHA-256 of the text, hexadecimal: whoever reads the store can sign in with nothing. */
  readonly id: string;
  readonly accountId: string;
  /** That of the account's record by which the person was known. */
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
export interface SignInPlace {
  readonly userAgent: string;
  readonly address: string;
}

/** A session that is to begin. */
export interface NewSession extends SignInPlace {
  readonly accountId: string;
  /** Of the record by which the person is known. Absent: 0, so that any change of rights or credentials has ended it. */
  readonly accountRevision?: number;
  /** When the person proved who they are, epoch milliseconds. Absent: now. */
  readonly signedInAt?: number;
}

export interface CreatedSession {
  /** 256 bits, base64url. It is in the cookie and nowhere else. */
  readonly text: string;
  readonly session: SessionRecord;
}

/** Who is signed in. A store that was emptied signs everybody out, and does nothing else. */
export interface Sessions {
  create(wanted: NewSession): Promise<CreatedSession>;
  /** The session of a text; null when there is none, it was ended, was not used for 12 hours, or is 7 days old. */
  find(text: string): Promise<SessionRecord | null>;
  /** The person has just proved again who they are. Does nothing to a session that has ended. */
  signedInNow(id: string): Promise<void>;
  /** Those of an account that have not ended, the newest first. */
  list(accountId: string): Promise<readonly SessionRecord[]>;
  end(id: string): Promise<void>;
  /** Ends all sessions of an account, but for one. */
  endAll(accountId: string, exceptId?: string): Promise<void>;
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
 * Whether a session is good for an account as its record stands. Rights and credentials are changed in the record first, and
 * sessions are taken out of their store behind that: what dies in between leaves sessions there that are good for nothing.
 * @param session one of a release before knows no revision
 */
export function isSessionOf(
  session: Pick<NewSession, 'accountId' | 'accountRevision'>,
  account: Pick<AccountRecord, 'id' | 'sessionsFrom'>,
): boolean {
  return session.accountId === account.id && (session.accountRevision ?? 0) >= (account.sessionsFrom ?? 0);
}

/** The instant at which a session ends unless it is used before. */
export function endOfSession({ createdAt, seenAt }: Pick<SessionRecord, 'createdAt' | 'seenAt'>): number {
  return Math.min(seenAt + SESSION_IDLE_MS, createdAt + SESSION_MAX_MS);
}
