import { setTimeout as delay } from 'node:timers/promises';
import { type ClickHouseAccount, sendStatement } from '@playline/stores';
import { createDifferences } from '../report.ts';
import { type Ledger, messageIdPrefix, type Run, toMessageId } from '../run.ts';
import { type Cast, type Identity, identityKeyOf, ownerOf } from './persons.ts';
import type { GameDifferenceKind, GameDifferences } from './sender.ts';

/** One owner of events in the store. `persons` are the distinct person keys (hex) of its events. */
export interface StoredOwner {
  readonly kind: string;
  readonly id: string;
  readonly persons: readonly string[];
}

/** Queries of the reconciliation, all limited to messages of the run. */
export interface EventReader {
  /** Rows in the raw table, and distinct message ids among them. */
  counts(): Promise<{ raw: number; distinct: number }>;
  /** Calls `each` with the sequence number of every row of the exact view. */
  eachSequence(each: (sequence: number) => void): Promise<void>;
  /** All owners of events; `kind` is '' for events without an owner. */
  owners(): Promise<StoredOwner[]>;
}

const RUN_ROWS = `environment_id = {environment:String} AND startsWith(toString(message_id), {prefix:String})`;
const OWNERS = `
  SELECT if(identity_type = '', 'untyped', toString(identity_type)) AS kind, user_id, anonymous_id,
    groupUniqArray(3)(lower(hex(person_key))) AS persons
  FROM events_identified WHERE ${RUN_ROWS} GROUP BY kind, user_id, anonymous_id FORMAT JSONCompactEachRow`;
/** Longer than a scan of some ten million rows takes on a laptop, short enough to notice a store that hangs. */
const QUERY_MAX_MS = 120_000;
/** Bytes of a UUID in RowBinary: two little-endian halves. */
const UUID_BYTES = 16;

export function createEventReader(address: ClickHouseAccount, environmentId: string, run: Run): EventReader {
  const settings = { param_environment: environmentId, param_prefix: messageIdPrefix(run) };
  const query = (sql: string): Promise<Response> =>
    sendStatement(address, { body: sql, settings, deadlineMs: QUERY_MAX_MS });
  return {
    counts: async () => {
      const sql = `SELECT count(), uniqExact(message_id) FROM events WHERE ${RUN_ROWS} FORMAT TabSeparated`;
      const [raw = 0, distinct = 0] = (await (await query(sql)).text()).trim().split('\t').map(Number);
      return { raw, distinct };
    },
    eachSequence: async (each) => {
      const response = await query(`SELECT message_id FROM events_exact WHERE ${RUN_ROWS} FORMAT RowBinary`);
      for await (const id of readRows(response)) each(id.readUInt32LE(UUID_BYTES / 2));
    },
    owners: async () => {
      const text = await (await query(OWNERS)).text();
      const owners = new Map<string, StoredOwner>();
      for (const line of text.split('\n').filter(Boolean)) {
        const [kind, userId, anonymousId, persons] = JSON.parse(line) as [Identity['kind'], string, string, string[]];
        const { kind: ownerKind, id } = ownerOf({ kind, id: userId }, anonymousId) ?? { kind: '', id: '' };
        const name = `${ownerKind} ${id}`;
        const known = owners.get(name)?.persons ?? [];
        owners.set(name, { kind: ownerKind, id, persons: [...new Set([...known, ...persons])] });
      }
      return [...owners.values()];
    },
  };
}

/** Cuts a byte stream into rows of 16 bytes, wherever its chunks end. */
async function* readRows(response: Response): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of response.body ?? []) {
    const bytes = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    let start = 0;
    for (; start + UUID_BYTES <= bytes.length; start += UUID_BYTES) yield bytes.subarray(start, start + UUID_BYTES);
    rest = bytes.subarray(start);
  }
  if (rest.length > 0) throw new Error('ClickHouse ended its answer within a row');
}

export interface Reconciliation {
  readonly raw: number;
  readonly exact: number;
  /** Number of messages that were stored but never acknowledged, which is allowed. */
  readonly unknownStored: number;
  readonly persons: { readonly model: number; readonly stored: number };
}

export interface Judged {
  readonly reader: EventReader;
  readonly run: Run;
  readonly ledger: Ledger;
  readonly cast: Cast;
}

/** Reads the store once and compares it with what was acknowledged; every difference goes to `differences`. */
export async function reconcile(judged: Judged, differences: GameDifferences): Promise<Reconciliation> {
  const { rowsOf: _, ...rows } = await compareMessages(judged, differences);
  const persons = await comparePersons(judged, differences);
  return { ...rows, persons };
}

/** Compares rows and ledger message by message. @returns also the rows of the exact view, by sequence number */
export async function compareMessages(
  { reader, run, ledger }: Omit<Judged, 'cast'>,
  differences: GameDifferences,
): Promise<Omit<Reconciliation, 'persons'> & { readonly rowsOf: Uint8Array }> {
  const { raw } = await reader.counts();
  const rowsOf = new Uint8Array(ledger.taken);
  let exact = 0;
  await reader.eachSequence((sequence) => {
    exact++;
    if (sequence >= ledger.taken) differences.add('uninvited', `${toMessageId(run, sequence)} was never sent`);
    else if (rowsOf[sequence]! < 255) rowsOf[sequence]!++;
  });
  let unknownStored = 0;
  for (let sequence = 0; sequence < ledger.taken; sequence++) {
    const [outcome, rows] = [ledger.outcomeOf(sequence), rowsOf[sequence]!];
    if (outcome === 'accepted' && rows === 0) differences.add('missing', toMessageId(run, sequence));
    if (rows > 1) differences.add('doubled', `${toMessageId(run, sequence)}: ${rows} rows`);
    if (rows > 0 && outcome === 'unknown') unknownStored++;
    else if (rows > 0 && outcome !== 'accepted')
      differences.add('uninvited', `${toMessageId(run, sequence)} was ${outcome}`);
  }
  return { raw, exact, unknownStored, rowsOf };
}

/** Compares the grouping of owners, not the keys: person keys depend on a secret that the simulator does not have. */
async function comparePersons({ reader, cast }: Judged, differences: GameDifferences) {
  // By stored person and by person of the model: the other side's person, and the owner that showed it first.
  const modelOf = new Map<string, { model: string; name: string }>();
  const storedOf = new Map<string, { stored: string; name: string }>();
  const seen = new Set<string>();
  for (const { kind, id, persons } of await reader.owners()) {
    const owner = { kind, id } as Identity;
    const name = `${kind} ${id}`;
    if (kind === '') {
      if (persons.join() !== '0'.repeat(32))
        differences.add('person', `events without an owner belong to ${persons.join(', ')}`);
      continue;
    }
    if (cast.isDoubtful(owner)) continue;
    if (!cast.owners.has(identityKeyOf(owner))) {
      differences.add('person', `${name} owns events but was never accepted`);
      continue;
    }
    seen.add(identityKeyOf(owner));
    if (persons.length !== 1) differences.add('person', `${name} is ${persons.length} persons at once`);
    const [stored, model] = [persons[0]!, cast.model.personOf(owner)];
    const namesake = storedOf.get(model) ?? { stored, name };
    if (namesake.stored !== stored) differences.add('person', `${name} should be one person with ${namesake.name}`);
    const other = modelOf.get(stored) ?? { model, name };
    if (other.model !== model) differences.add('person', `${name} should not be one person with ${other.name}`);
    storedOf.set(model, namesake);
    modelOf.set(stored, other);
  }
  for (const [key, { identity }] of cast.owners) {
    if (!seen.has(key) && !cast.isDoubtful(identity)) differences.add('person', `${key} owns no event in the store`);
  }
  return { model: cast.persons(), stored: modelOf.size };
}

export interface SettleOptions {
  readonly accepted: number;
  /** Gives up after this time without any change in the store. */
  readonly idleMaxMs: number;
  readonly pollMs: number;
  onProgress?(rows: { raw: number; distinct: number }): void;
}

/**
 * Waits until the consumers have caught up: every accepted message is stored, nothing differs and the rows no longer
 * change; or until nothing changed for `idleMaxMs`. Then compares.
 */
export async function settle(
  judged: Judged,
  options: SettleOptions,
): Promise<{ result: Reconciliation; differences: GameDifferences }> {
  let last = '';
  let changedAt = performance.now();
  for (;;) {
    const rows = await judged.reader.counts();
    options.onProgress?.(rows);
    const differences = createDifferences<GameDifferenceKind>();
    // A comparison reads every row, so it waits until the counts allow success.
    const result = rows.distinct >= options.accepted ? await reconcile(judged, differences) : null;
    const state = JSON.stringify([rows, result, differences.total]);
    const still = state === last;
    if (still && result !== null && differences.total === 0) return { result, differences };
    if (!still) changedAt = performance.now();
    last = state;
    if (performance.now() - changedAt > options.idleMaxMs) {
      return { result: result ?? (await reconcile(judged, differences)), differences };
    }
    await delay(options.pollMs);
  }
}
