import { setTimeout as delay } from 'node:timers/promises';
import { type ClickHouseAccount, sendStatement } from '@playline/stores';
import { createDifferences } from '../report.ts';
import { type Ledger, messageIdPrefix, type Run, toMessageId } from '../run.ts';
import { type Cast, type Identity, identityKeyOf, ownerOf } from './persons.ts';
import type { GameDifferenceKind, GameDifferences } from './sender.ts';

export interface StoredOwner {
  readonly kind: string;
  readonly id: string;
  readonly persons: readonly string[];
}

export interface EventReader {
  /** Rows in the raw table, and distinct message ids among them. */
  counts(): Promise<{ raw: number; distinct: number }>;
  eachSequence(each: (sequence: number) => void): Promise<void>;
  /** All owners of events; `kind` is '' for events without an owner. */
  owners(): Promise<StoredOwner[]>;
}

const RUN_ROWS = `environment_id = {environment:String} AND startsWith(toString(message_id), {prefix:String})`;
const OWNERS = `
  SELECT if(identity_type = '', 'untyped', toString(identity_type)) AS kind, user_id, anonymous_id,
    groupUniqArray(3)(lower(hex(person_key))) AS persons
  FROM events_identified WHERE ${RUN_ROWS} GROUP BY kind, user_id, anonymous_id FORMAT JSONCompactEachRow`;
const QUERY_MAX_MS = 120_000;
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

export interface Compared {
  readonly reader: EventReader;
  readonly run: Run;
  readonly ledger: Ledger;
  readonly cast: Cast;
}

export async function reconcile(compared: Compared, differences: GameDifferences) {
  const { rowsOf: _, ...rows } = await compareMessages(compared, differences);
  const persons = await comparePersons(compared, differences);
  return { ...rows, persons };
}

/** Compares rows and ledger message by message. @returns `unknownStored` and rows by sequence number */
export async function compareMessages({ reader, run, ledger }: Omit<Compared, 'cast'>, differences: GameDifferences) {
  const { raw } = await reader.counts();
  const rowsOf = new Uint8Array(ledger.taken);
  let exact = 0;
  await reader.eachSequence((sequence) => {
    exact++;
    if (sequence >= ledger.taken) differences.add('uninvited', `${toMessageId(run, sequence)} was never sent`);
    else if (rowsOf[sequence]! < 255) rowsOf[sequence]!++;
  });
  // Stored but never acknowledged, which is allowed.
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

/** Compares the grouping of owners, not the keys, which depend on a secret. */
async function comparePersons({ reader, cast }: Compared, differences: GameDifferences) {
  // By stored person and by person of the model: the other side's person and its first owner.
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
    if (persons.length !== 1) differences.add('person', `${name} is ${persons.length} persons`);
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

/**
 * Compares until every accepted message is stored, nothing differs and the rows no longer change, or until nothing
 * changed for `idleMaxMs`.
 */
export async function settle(
  compared: Compared,
  options: {
    readonly accepted: number;
    readonly idleMaxMs: number;
    readonly pollMs: number;
    onProgress?(rows: { raw: number; distinct: number }): void;
  },
) {
  let last = '';
  let changedAt = performance.now();
  for (;;) {
    const rows = await compared.reader.counts();
    options.onProgress?.(rows);
    const differences = createDifferences<GameDifferenceKind>();
    // A comparison reads every row, so it waits until the counts allow success.
    const result = rows.distinct >= options.accepted ? await reconcile(compared, differences) : null;
    const state = JSON.stringify([rows, result, differences.total]);
    const still = state === last;
    if (still && result !== null && differences.total === 0) return { result, differences };
    if (!still) changedAt = performance.now();
    last = state;
    if (performance.now() - changedAt > options.idleMaxMs) {
      return { result: result ?? (await reconcile(compared, differences)), differences };
    }
    await delay(options.pollMs);
  }
}
