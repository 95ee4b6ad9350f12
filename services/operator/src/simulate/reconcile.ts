import { setTimeout as delay } from 'node:timers/promises';
import type { Cast } from './cast.ts';
import type { EventReader } from './clickhouse.ts';
import { createDifferences, type Differences } from './differences.ts';
import type { Ledger } from './ledger.ts';
import { type Identity, identityKeyOf } from './persons.ts';
import { type Run, toMessageId } from './run.ts';

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
export async function reconcile(judged: Judged, differences: Differences): Promise<Reconciliation> {
  const rows = await compareMessages(judged, differences);
  const persons = await comparePersons(judged, differences);
  return { ...rows, persons };
}

async function compareMessages({ reader, run, ledger }: Judged, differences: Differences) {
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
    const [fate, rows] = [ledger.fateOf(sequence), rowsOf[sequence]!];
    if (fate === 'accepted' && rows === 0) differences.add('missing', toMessageId(run, sequence));
    if (rows > 1) differences.add('doubled', `${toMessageId(run, sequence)}: ${rows} rows`);
    if (rows > 0 && fate === 'unknown') unknownStored++;
    else if (rows > 0 && fate !== 'accepted') differences.add('uninvited', `${toMessageId(run, sequence)} was ${fate}`);
  }
  return { raw, exact, unknownStored };
}

/** Compares the grouping of owners, not the keys: person keys depend on a secret that the simulator does not have. */
async function comparePersons({ reader, cast }: Judged, differences: Differences) {
  // By stored person and by person of the model: the other side's person, and the owner that showed it first.
  const modelOf = new Map<string, { model: string; name: string }>();
  const storedOf = new Map<string, { stored: string; name: string }>();
  const seen = new Set<string>();
  for (const { kind, id, persons } of await reader.owners()) {
    const owner = { kind, id } as Identity;
    const name = `${kind} ${id}`;
    if (kind === '') {
      if (persons.join() !== '0'.repeat(32))
        differences.add('person', `events of nobody belong to ${persons.join(', ')}`);
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
): Promise<{ result: Reconciliation; differences: Differences }> {
  let last = '';
  let changedAt = performance.now();
  for (;;) {
    const rows = await judged.reader.counts();
    options.onProgress?.(rows);
    const differences = createDifferences();
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
