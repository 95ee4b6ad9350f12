/** Generates what happens in an environment, stores it, and keeps a list of the messages and persons that views must show. */
import { randomUUID } from 'node:crypto';
import { openErasureRows } from '@playline/erasure/clickhouse';
import { openOwnDatabase } from '@playline/testkit';
import fc from 'fast-check';
import { expect } from 'vitest';

export const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
const START_MS = Date.parse('2026-03-27T00:00:00Z');
export const START_DAY = START_MS / DAY_MS;
const DAYS = 4;
export const ZONES = ['UTC', 'Asia/Kathmandu', 'Pacific/Kiritimati', 'America/St_Johns', 'Pacific/Pago_Pago'];
export const USER = 2;
export const USER_ID = 'user-2';

export interface Message {
  readonly id: string;
  readonly atMs: number;
  readonly owner: number;
  readonly name: string;
  readonly session: string;
  readonly surface: string;
  readonly path: string;
  readonly score: number;
  readonly isTest: boolean;
  /** Times of receipt of the message and its copies, in the order in which they are stored. */
  readonly receivedMs: readonly number[];
}
interface Link {
  readonly owner: number;
  /** Equal to the owner for an unlink. */
  readonly person: number;
}
export type Step =
  | { readonly kind: 'messages'; readonly messages: readonly Message[] }
  | { readonly kind: 'link'; readonly link: Link }
  | { readonly kind: 'erasure'; readonly owner: number; readonly cutoffMs: number }
  | { readonly kind: 'merge' };

/** The messages that remain, and the person of each owner. */
export interface Stored {
  readonly environment: string;
  readonly messages: readonly Message[];
  readonly persons: ReadonlyMap<number, number>;
}

const OWNERS = [0, 1, USER];
const owner = fc.constantFrom(...OWNERS);
const CUTOFFS_MS = Array.from({ length: DAYS + 1 }, (_, day) => START_MS + day * DAY_MS);
export const receivedFirst = ({ receivedMs }: Pick<Message, 'receivedMs'>) => Math.min(...receivedMs);
export const capped = (message: Message) => Math.min(message.atMs, receivedFirst(message) + MINUTE_MS);

/** Two owners may send the same message. An erasure removes all copies of a message, or none. */
const messages: fc.Arbitrary<Message[]> = fc
  .record({
    id: fc.constant('').map(() => randomUUID()),
    atMs: fc.nat(DAYS * 96).map((quarter) => START_MS + quarter * 15 * MINUTE_MS),
    owner,
    other: owner,
    isSentByOther: fc.nat(4).map((number) => number === 0),
    name: fc.constantFrom('', 'match', 'level'),
    session: fc.constantFrom('', 'a', 'b'),
    surface: fc.constantFrom('web', 'unity'),
    path: fc.constantFrom('', '/arena', '/store/7', '/help'),
    score: fc.nat(9),
    isTest: fc.nat(9).map((number) => number === 0),
    leadMs: fc.constantFrom(-1000, -1000, -2 * DAY_MS, 5 * MINUTE_MS, 23 * HOUR_MS),
    copiesAfterMs: fc.array(fc.constantFrom(-500, 30_000, 10 * MINUTE_MS, 30 * HOUR_MS), { maxLength: 2 }),
  })
  .map(({ leadMs, copiesAfterMs, other, isSentByOther, ...message }) => {
    const first = message.atMs - leadMs;
    const all = [first, ...copiesAfterMs.map((ms) => first + ms)];
    const isDivided = (cutoffMs: number) => message.atMs > cutoffMs && new Set(all.map((ms) => ms > cutoffMs)).size > 1;
    const sent = { ...message, receivedMs: CUTOFFS_MS.some(isDivided) ? [first] : all };
    return isSentByOther && other !== message.owner ? [sent, { ...sent, owner: other }] : [sent];
  });

export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc
        .array(messages, { minLength: 1, maxLength: 6 })
        .map((lists) => ({ kind: 'messages' as const, messages: lists.flat() })),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('link' as const), link: fc.record({ owner, person: owner }) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('erasure' as const),
        owner,
        cutoffMs: fc.constantFrom(...CUTOFFS_MS),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ kind: 'merge' as const }) },
  ),
  { minLength: 3, maxLength: 10 },
);

export const toText = (ms: number) => new Date(ms).toISOString().replace(/[TZ]/g, ' ').trim();
export const toDay = (day: number) => toText(day * DAY_MS).slice(0, 10);
export const dayIn = (timeZone: string, ms: number) => new Intl.DateTimeFormat('sv-SE', { timeZone }).format(ms);
/** A key includes the environment, and its first half identifies it in the dictionary. */
export const toKey = (environment: string, number: number) =>
  `${environment.split('-').at(-1)}-${number}`.padStart(8, '0').padEnd(16, '0');

export type AnalystModel = Awaited<ReturnType<typeof openAnalystModel>>;

/** Opens a database of its own. */
export async function openAnalystModel() {
  const { query, target, close } = await openOwnDatabase();
  let count = 0;

  async function insert(environment: string, list: readonly Message[]): Promise<void> {
    const rows = list.flatMap(({ receivedMs, ...each }) =>
      receivedMs.map((received, copy) => ({
        environment_id: environment,
        type: each.name === '' ? 'page' : 'track',
        event_name: each.name,
        event_time: toText(each.atMs),
        received_at: toText(received),
        message_id: each.id,
        identity_key: toKey(environment, each.owner),
        // Clients do not always trim ids.
        ...(each.owner === USER && {
          user_key: toKey(environment, USER),
          user_id: each.score % 2 === 0 ? USER_ID : ` ${USER_ID} `,
        }),
        session_id: each.session,
        surface: each.surface,
        page_path: each.path,
        page_url: `https://play.example.com${each.path}`,
        properties: JSON.stringify({ score: each.score }),
        test: each.isTest,
        kafka_offset: copy,
      })),
    );
    // Copies are in separate inserts and are stored again, as after a failed insert.
    for (const half of [rows.filter((_, index) => index % 2 === 0), rows])
      await query(`INSERT INTO events FORMAT JSONEachRow ${half.map((row) => JSON.stringify(row)).join(' ')}`);
  }

  async function erase(environment: string, number: number, cutoffMs: number): Promise<void> {
    const rows = openErasureRows(target);
    const batch = Buffer.from(randomUUID().replaceAll('-', ''), 'hex');
    try {
      const key = Buffer.from(toKey(environment, number));
      await rows.putTargets(batch, [{ environmentId: environment, key, cutoffMs }]);
      await rows.sweep(batch);
      expect(await rows.findSurvivors(batch)).toEqual([]);
      await rows.dropTargets(batch);
    } finally {
      await rows.close();
    }
  }

  return {
    close,
    readRows: async (sql: string) =>
      (await query(`${sql} FORMAT JSONCompactEachRow`))
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as unknown[]),
    /** Stores the steps in a new environment. */
    async store(zone: string, list: readonly Step[]): Promise<Stored> {
      const environment = `model-${++count}`;
      await query(
        `INSERT INTO environment_settings (environment_id, time_zone, version) VALUES ('${environment}', '${zone}', 1)`,
      );
      let stored: Message[] = [];
      const persons = new Map(OWNERS.map((number) => [number, number]));
      const cutoffs = new Map<number, number>();
      /** A fence refuses erased messages that arrive later. */
      const remains = (message: Message) =>
        Math.min(message.atMs, receivedFirst(message)) > (cutoffs.get(message.owner) ?? Number.NEGATIVE_INFINITY);
      for (const [version, step] of list.entries()) {
        if (step.kind === 'messages') {
          const accepted = step.messages.filter(remains);
          stored = [...stored, ...accepted];
          if (accepted.length > 0) await insert(environment, accepted);
        } else if (step.kind === 'link') {
          const { owner: from, person } = step.link;
          persons.set(from, person);
          await query(`INSERT INTO identity_overrides (environment_id, identity_key, person_key, linked_at, version)
            VALUES ('${environment}', '${toKey(environment, from)}', '${toKey(environment, person)}', '2026-12-01 00:00:00', ${version})`);
        } else if (step.kind === 'erasure') {
          cutoffs.set(step.owner, Math.max(step.cutoffMs, cutoffs.get(step.owner) ?? 0));
          stored = stored.filter(remains);
          await erase(environment, step.owner, step.cutoffMs);
        } else
          for (const table of ['events', 'identity_days', 'identities', 'session_days'])
            await query(`OPTIMIZE TABLE ${table} FINAL`);
      }
      return { environment, messages: stored, persons };
    },
  };
}
