import { createRecordStore } from '../../records/record-store.ts';
import { createMemoryRecordLog, createMemoryRecords, createMemorySessions } from '../../test/index.ts';
import { ACCOUNTS, type AccountRecord, type Passkey } from '../account.ts';
import type { AccountContext } from '../context.ts';
import { acceptInvitation, createFirstAdministrator, invite } from '../invitations.ts';
import type { Role } from '../roles.ts';

/** Placeholder hash that these tests never verify. */
export const HASH = '$argon2id$…';

export const personOf = (login: string) => ({ login, name: `Name of ${login}`, passwordHash: HASH, passkey: null });

export const passkeyOf = (id: string, counter = 0): Passkey => ({
  id,
  counter,
  publicKey: 'AQ',
  transports: [],
  name: 'Phone',
  createdAt: 1,
});

/** In-memory accounts and sessions with a manual clock. */
export function createWorld() {
  const clock = { at: 1_800_000_000_000 };
  const wallClockMs = () => clock.at;
  const [view, log] = [createMemoryRecords(ACCOUNTS), createMemoryRecordLog<AccountRecord>()];
  const storeOf = (changedBy: string) => createRecordStore({ view, log }, { changedBy, requestId: 'r-1' });
  const store = storeOf('test');
  const { sessions, oneTimeTokens, empty } = createMemorySessions({ wallClockMs });
  const as = (actorId: string | null): AccountContext => ({
    sessions,
    actorId,
    wallClockMs,
    store: storeOf(actorId ?? 'test'),
  });
  const operator = as(null);
  const latest = () => {
    const last = new Map(log.appended.map((record) => [record.id, record]));
    return [...last.values()];
  };
  const addAdministrator = () => createFirstAdministrator(operator, personOf('root'));
  /** Invites a member and accepts the invitation. */
  const addMember = async (login: string, role: Role, projectId = 'p') => {
    const wanted = { name: login, roles: [{ projectId, role }], isAdministrator: false };
    const { text } = await invite(operator, wanted);
    return acceptInvitation(operator, { text, person: personOf(login) });
  };
  const find = (id: string) => latest().find((account) => account.id === id)!;
  return {
    clock,
    view,
    log,
    store,
    sessions,
    oneTimeTokens,
    empty,
    as,
    operator,
    latest,
    find,
    addAdministrator,
    addMember,
  };
}
