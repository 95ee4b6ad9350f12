import { type ConsentRecord, consentCodec, TOPICS } from '@playline/contracts';
import { type LoggedConsent, type People, type RebuiltConsents, rebuildConsents } from '@playline/people';
import { findGrowth, findTail, type LogTail, readTail } from './log-tail.ts';
import { readConsents } from './tables.ts';
import type { RebuildSources } from './with-stores.ts';

export interface RestoredConsents {
  readonly rebuilt: RebuiltConsents;
  /** The run of Redis in which it started. */
  readonly run: string;
  readonly tail: LogTail<ConsentRecord>;
}

/** Restores consents from table and log; the latest position wins, so it is safe at any time. Restore fences first. */
export async function restoreConsents(
  sources: RebuildSources,
  { consents, rebuild }: Pick<People, 'consents' | 'rebuild'>,
): Promise<RestoredConsents> {
  const { run } = await consents.syncState();
  const tail = await findTail(sources, [TOPICS.consents, consentCodec]);
  const stored = await rebuildConsents(rebuild, readConsents(sources.query));
  const later = await rebuildConsents(rebuild, toLoggedConsent(sources, tail));
  return { rebuilt: sum(stored, later), run, tail };
}

/**
 * Restores what was logged after `tail`, once the epoch is set. If Redis has restarted since, it is not marked as current
 * and gateways read the end of the log themselves.
 */
export async function restoreLaterConsents(
  sources: RebuildSources,
  { consents, rebuild }: Pick<People, 'consents' | 'rebuild'>,
  { run, tail }: Pick<RestoredConsents, 'run' | 'tail'>,
): Promise<RebuiltConsents> {
  const growth = await findGrowth(sources, tail);
  const rebuilt = await rebuildConsents(rebuild, toLoggedConsent(sources, growth));
  await consents.markCurrent(run, new Map(growth.bounds.map(({ partition, end }) => [partition, end])));
  return rebuilt;
}

export function sum(a: RebuiltConsents, b: RebuiltConsents): RebuiltConsents {
  return { applied: a.applied + b.applied, superseded: a.superseded + b.superseded, fenced: a.fenced + b.fenced };
}

async function* toLoggedConsent(sources: RebuildSources, tail: LogTail<ConsentRecord>): AsyncGenerator<LoggedConsent> {
  for await (const { record, value } of readTail(sources, tail)) {
    const { environmentId, identityKey, status, receivedAt } = value;
    const position = { partition: record.partition, offset: record.offset, loggedAtMs: record.timestampMs };
    yield { environmentId, identityKey, status, receivedAt, position };
  }
}
