import { setTimeout as delay } from 'node:timers/promises';
import { type ErasureRecords, readCutoffs } from '@playline/erasure';
import type { People } from '@playline/people';
import { inBatches, type QueryRows, quoteText, readRows } from '@playline/stores';
import { readOverrides } from '../rebuild/tables.ts';

/** An identity with different persons in Redis and in ClickHouse; keys are hexadecimal. */
export interface PersonDifference {
  readonly environmentId: string;
  readonly identityKey: string;
  readonly inRedis: string;
  readonly inClickHouse: string;
}

export interface PersonsReport {
  readonly compared: number;
  /** Number of differences. More than 1,000 differences are not checked again. */
  readonly different: number;
  readonly examples: readonly PersonDifference[];
}

export interface PersonsOptions {
  readonly query: QueryRows;
  readonly records: Pick<ErasureRecords, 'readFences'>;
  readonly people: Pick<People, 'graph' | 'rebuild'>;
  /** Resolves once the writer has stored the current decisions, or after a time limit. */
  awaitDecisionsStored(): Promise<void>;
  readonly onProgress: (line: string) => void;
}

interface Identity {
  readonly environmentId: string;
  readonly key: Buffer;
}

/** About 100 KB of SQL; ClickHouse accepts 256 KiB. */
const BATCH_MAX = 1_000;
/** Further differences are only counted. */
const CHECKED_MAX = 1_000;
/** New links are in Redis before they are in the log, so differences are checked several times. */
const CHECKS = 4;
const CHECK_INTERVAL_MS = 1_000;
const EXAMPLES_MAX = 20;

/** Compares persons in Redis with `identity_overrides`, and rechecks differences, which new links may cause. */
export async function comparePersons(options: PersonsOptions): Promise<PersonsReport> {
  options.onProgress('comparing persons in Redis with identity_overrides');
  const cutoffs = new Map((await readCutoffs(options.records)).map((fence) => [nameOf(fence), fence.cutoffMs]));
  const compare = createCompare(options, cutoffs);
  const found = new Map<string, PersonDifference>();
  let [compared, different] = [0, 0];
  const add = (differences: readonly PersonDifference[]) => {
    for (const difference of differences) {
      const name = `${difference.environmentId} ${difference.identityKey}`;
      if (found.has(name)) continue;
      different++;
      if (found.size < CHECKED_MAX) found.set(name, difference);
    }
  };
  for await (const batch of inBatches(options.people.rebuild.identities(), BATCH_MAX)) {
    compared += batch.length;
    add(await compare(batch));
  }
  // Finds identities that are only in the tables.
  for await (const batch of inBatches(readOverrides(options.query), BATCH_MAX)) add(await compare(batch));
  if (different > CHECKED_MAX) return { compared, different, examples: [...found.values()].slice(0, EXAMPLES_MAX) };
  let differences = [...found.values()];
  for (let check = 0; check < CHECKS && differences.length > 0; check++) {
    if (check > 0) await delay(CHECK_INTERVAL_MS);
    await options.awaitDecisionsStored();
    differences = await compare(
      differences.map(({ environmentId, identityKey }) => ({ environmentId, key: Buffer.from(identityKey, 'hex') })),
    );
  }
  return { compared, different: differences.length, examples: differences.slice(0, EXAMPLES_MAX) };
}

const nameOf = ({ environmentId, key }: Identity) => `${environmentId} ${key.toString('hex')}`;

/** In both stores, an identity without an entry is a separate person. */
function createCompare({ query, people }: PersonsOptions, cutoffs: ReadonlyMap<string, number>) {
  return async (identities: readonly Identity[]): Promise<PersonDifference[]> => {
    const keys = identities.map(
      ({ environmentId, key }) => `(${quoteText(environmentId)}, unhex('${key.toString('hex')}'))`,
    );
    const rows = await readRows(
      query(`SELECT environment_id, lower(hex(identity_key)), lower(hex(person_key)), toUnixTimestamp64Milli(linked_at)
        FROM identity_overrides FINAL WHERE (environment_id, identity_key) IN (${keys.join(', ')})`),
    );
    const stored = new Map(
      rows.map(([environmentId, key, root, linkedAt]) => [`${environmentId} ${key}`, { root, linkedAt }]),
    );
    const roots = await readRoots(people, identities);
    return identities.flatMap((identity, index) => {
      const identityKey = identity.key.toString('hex');
      const row = stored.get(nameOf(identity));
      const inRedis = (roots[index] ?? identity.key).toString('hex');
      const inClickHouse = String(row?.root ?? identityKey);
      // Rows from before the cut-off of an erasure are about to be deleted.
      const isErased = row !== undefined && Number(row.linkedAt) <= (cutoffs.get(nameOf(identity)) ?? -1);
      const isSame = inRedis === inClickHouse || isErased;
      return isSame ? [] : [{ environmentId: identity.environmentId, identityKey, inRedis, inClickHouse }];
    });
  };
}

/** Returns the roots in the order of the identities. */
async function readRoots({ graph }: PersonsOptions['people'], identities: readonly Identity[]) {
  const byEnvironment = Map.groupBy(identities.entries(), ([, { environmentId }]) => environmentId);
  const roots: (Buffer | null)[] = [];
  for (const [environmentId, group] of byEnvironment) {
    const read = await graph.rootsOf(
      environmentId,
      group.map(([, { key }]) => key),
    );
    for (const [index, [position]] of group.entries()) roots[position] = read[index]!;
  }
  return roots;
}
