import type { AccountRecord } from '@playline/contracts';
import type { OneTimeTexts } from './one-time-texts.ts';

/** Sessions end after this time without use, or at this age. */
export const SESSION_IDLE_MS = 12 * 60 * 60_000;
export const SESSION_MAX_MS = 7 * 24 * 60 * 60_000;
/** The time of last use is stored at most this often. */
export const SEEN_EVERY_MS = 60_000;
/** Longer ones are cut; they are only shown. */
export const USER_AGENT_CHARACTERS_MAX = 200;

export interface SessionRecord {
  /** SHA-256 of the text, hexadecimal. */
  readonly id: string;
  readonly accountId: string;
  /** Of the account's record at the sign-in. */
  readonly accountRevision: number;
  /** Epoch milliseconds, as the next two. */
  readonly createdAt: number;
  /** Exact to a minute. */
  readonly seenAt: number;
  /** When the person last proved their identity. */
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
  /** Absent: 0, so that any change of rights or credentials has ended the session. */
  readonly accountRevision?: number;
  /** Epoch milliseconds. Absent: now. */
  readonly signedInAt?: number;
}

export interface CreatedSession {
  /** 256 bits, base64url; only in the cookie. */
  readonly text: string;
  readonly session: SessionRecord;
}

/** An emptied store signs everyone out. */
export interface Sessions {
  create(wanted: NewSession): Promise<CreatedSession>;
  /** Null when there is no session of this text, or it has ended. */
  find(text: string): Promise<SessionRecord | null>;
  /** Notes that the person has proved their identity again. */
  markSignedIn(id: string): Promise<void>;
  /** Of an account, the newest first. */
  list(accountId: string): Promise<readonly SessionRecord[]>;
  end(id: string): Promise<void>;
  endAll(accountId: string, exceptId?: string): Promise<void>;
}

export interface SessionStores {
  readonly sessions: Sessions;
  readonly oneTimeTexts: OneTimeTexts;
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

export function toSession(id: string, wanted: NewSession, nowAt: number): SessionRecord {
  const { accountId, userAgent, address, accountRevision = 0, signedInAt = nowAt } = wanted;
  const cut = userAgent.slice(0, USER_AGENT_CHARACTERS_MAX);
  const times = { createdAt: nowAt, seenAt: nowAt, signedInAt: Math.min(signedInAt, nowAt) };
  return { id, accountId, accountRevision, ...times, userAgent: cut, address };
}

/** A session older than the last change of rights or credentials is invalid, even while the store still has it. */
export function isSessionOf(
  session: Pick<SessionRecord, 'accountId' | 'accountRevision'>,
  account: Pick<AccountRecord, 'id' | 'sessionsFrom'>,
): boolean {
  return session.accountId === account.id && session.accountRevision >= account.sessionsFrom;
}

/** When a session ends unless it is used. */
export const endOfSession = ({ createdAt, seenAt }: Pick<SessionRecord, 'createdAt' | 'seenAt'>): number =>
  Math.min(seenAt + SESSION_IDLE_MS, createdAt + SESSION_MAX_MS);
