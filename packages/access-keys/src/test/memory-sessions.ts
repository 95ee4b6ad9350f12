import { createToken, hashToken, type OneTimeTokens } from '../accounts/one-time-tokens.ts';
import { endOfSession, SEEN_INTERVAL_MS, type SessionRecord, type Sessions, toSession } from '../accounts/sessions.ts';

export interface MemorySessionsOptions {
  readonly wallClockMs?: () => number;
}

/** In-memory sessions and one-time tokens, for tests and experiments. */
export interface MemorySessions {
  readonly sessions: Sessions;
  readonly oneTimeTokens: OneTimeTokens;
  /** Simulates the loss of all data. */
  empty(): void;
}

export function createMemorySessions({ wallClockMs = Date.now }: MemorySessionsOptions = {}): MemorySessions {
  const records = new Map<string, SessionRecord>();
  const tokens = createExpiring<string>(wallClockMs);
  const attempts = createExpiring<number>(wallClockMs);
  const findLive = (id: string) => {
    const record = records.get(id);
    return record !== undefined && endOfSession(record) > wallClockMs() ? record : null;
  };
  const listLive = (accountId: string) =>
    [...records.keys()].flatMap((id) => findLive(id) ?? []).filter((record) => record.accountId === accountId);
  return {
    sessions: {
      create: async (wanted) => {
        const text = createToken();
        const session = toSession(hashToken(text), wanted, wallClockMs());
        records.set(session.id, session);
        return { text, session };
      },
      find: async (text) => {
        const found = findLive(hashToken(text));
        if (found === null || wallClockMs() - found.seenAt < SEEN_INTERVAL_MS) return found;
        const seen = { ...found, seenAt: wallClockMs() };
        records.set(seen.id, seen);
        return seen;
      },
      markSignedIn: async (id) => {
        const found = findLive(id);
        if (found !== null) records.set(id, { ...found, signedInAt: wallClockMs() });
      },
      list: async (accountId) => listLive(accountId).toSorted((a, b) => b.createdAt - a.createdAt),
      end: async (id) => void records.delete(id),
      endAll: async (accountId, exceptId) => {
        for (const { id } of listLive(accountId)) if (id !== exceptId) records.delete(id);
      },
    },
    oneTimeTokens: createTokens(tokens, attempts),
    empty: () => {
      for (const each of [records, tokens.entries, attempts.entries]) each.clear();
    },
  };
}

interface Expiring<V> {
  readonly entries: Map<string, { readonly value: V; readonly endsAt: number }>;
  get(name: string): V | null;
  /** @param lifetimeS null keeps the current expiry time */
  set(name: string, value: V, lifetimeS: number | null): void;
}

function createExpiring<V>(wallClockMs: () => number): Expiring<V> {
  const entries: Expiring<V>['entries'] = new Map();
  return {
    entries,
    get: (name) => {
      const entry = entries.get(name);
      return entry !== undefined && entry.endsAt > wallClockMs() ? entry.value : null;
    },
    set: (name, value, lifetimeS) => {
      const endsAt = lifetimeS === null ? (entries.get(name)?.endsAt ?? 0) : wallClockMs() + lifetimeS * 1000;
      entries.set(name, { value, endsAt });
    },
  };
}

function createTokens(tokens: Expiring<string>, attempts: Expiring<number>): OneTimeTokens {
  const nameOf = (purpose: string, text: string) => `${purpose} ${hashToken(text)}`;
  return {
    issue: async ({ purpose, value, lifetimeS }) => {
      const text = createToken();
      tokens.set(nameOf(purpose, text), value, lifetimeS);
      return text;
    },
    read: async ({ purpose, text }) => tokens.get(nameOf(purpose, text)),
    take: async ({ purpose, text }) => {
      const value = tokens.get(nameOf(purpose, text));
      tokens.entries.delete(nameOf(purpose, text));
      return value;
    },
    spend: async ({ purpose, text, lifetimeS }) => {
      const name = `spent ${nameOf(purpose, text)}`;
      if (tokens.get(name) !== null) return false;
      tokens.set(name, '', lifetimeS);
      return true;
    },
    countAttempt: async ({ name, windowS }) => {
      const before = attempts.get(name);
      attempts.set(name, (before ?? 0) + 1, before === null ? windowS : null);
      return (before ?? 0) + 1;
    },
    resetAttempts: async (name) => void attempts.entries.delete(name),
  };
}
