import { type ConsentRecord, consentCodec, TOPICS } from '@playline/contracts';
import { type People, type PlacedConsent, type RebuiltConsents, rebuildConsents } from '@playline/people';
import { findGrowth, findTail, type LogTail, readTail } from './log-tail.ts';
import type { RebuildSources } from './stores.ts';
import { readConsents } from './tables.ts';

export interface RestoredConsents {
  readonly rebuilt: RebuiltConsents;
  /** The run of Redis in which it was begun. */
  readonly run: string;
  /** The part of the log that was read. */
  readonly tail: LogTail<ConsentRecord>;
}

/**
 * Puts every consent back: those of the table, and those of the log that the table may lack. Only places count, so it
 * may run beside gateways that write, and again. Fences must stand.
 */
export async function restoreConsents(
  sources: RebuildSources,
  { consents, rebuild }: Pick<People, 'consents' | 'rebuild'>,
): Promise<RestoredConsents> {
  const { run } = await consents.standing();
  const tail = await findTail(sources, [TOPICS.consents, consentCodec]);
  const stored = await rebuildConsents(rebuild, readConsents(sources.query));
  const later = await rebuildConsents(rebuild, toPlaced(sources, tail));
  return { rebuilt: sum(stored, later), run, tail };
}

/**
 * Puts back what came behind the end of `tail` since. For the moment after the epoch was minted: a gateway that had
 * logged a change before it found no store to put it into. The store then has all of the log; were Redis started anew
 * meanwhile, it would not be told so, and gateways would bring in the end of the log themselves.
 */
export async function restoreLaterConsents(
  sources: RebuildSources,
  { consents, rebuild }: Pick<People, 'consents' | 'rebuild'>,
  { run, tail }: Pick<RestoredConsents, 'run' | 'tail'>,
): Promise<RebuiltConsents> {
  const growth = await findGrowth(sources, tail);
  const rebuilt = await rebuildConsents(rebuild, toPlaced(sources, growth));
  await consents.markCurrent(run, new Map(growth.bounds.map(({ partition, end }) => [partition, end])));
  return rebuilt;
}

export function sum(a: RebuiltConsents, b: RebuiltConsents): RebuiltConsents {
  return {
    applied: a.applied + b.applied,
    superseded: a.superseded + b.superseded,
    fenced: a.fenced + b.fenced,
  };
}

async function* toPlaced(sources: RebuildSources, tail: LogTail<ConsentRecord>): AsyncGenerator<PlacedConsent> {
  for await (const { record, value } of readTail(sources, tail)) {
    const { environmentId, identityKey, status, receivedAt } = value;
    const place = { partition: record.partition, offset: record.offset, loggedAtMs: record.timestampMs };
    yield { environmentId, identityKey, status, receivedAt, place };
  }
}
