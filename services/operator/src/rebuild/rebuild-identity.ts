import { EpochPresentFault, type People, type RebuiltConsents } from '@playline/people';
import { restoreConsents, restoreLaterConsents, sum } from './restore-consents.ts';
import { type LinkerProgress, type RestoredGraph, restoreGraph } from './restore-graph.ts';
import { restoreHolds } from './restore-holds.ts';
import type { RebuildSources } from './stores.ts';

/** What a rebuild has restored. */
export interface RebuiltIdentity {
  readonly graph: RestoredGraph;
  readonly consents: RebuiltConsents;
  readonly holds: number;
  readonly epoch: string;
}

/**
 * Restores an emptied Redis: fences, graph, consents, holds, and last the epoch, for which linkers and gateways wait.
 * An interrupted run has set none, and can be repeated.
 * @throws Error when there is an epoch, when later consents could not be restored after it, or of a store
 */
export async function rebuildIdentity(
  sources: RebuildSources,
  people: People,
  progress: LinkerProgress,
): Promise<RebuiltIdentity> {
  if ((await people.readEpoch()) !== null) throw new Error(IN_USE);
  const { run } = await people.guards.fenceStatus();
  const restored = await restoreGraph(sources, people, progress).catch((fault: unknown) => {
    throw fault instanceof EpochPresentFault ? new Error(IN_USE, { cause: fault }) : fault;
  });
  const restoredConsents = await restoreConsents(sources, people);
  // Late, since erasures may be requested while the graph is read.
  const holds = await restoreHolds(sources, people);
  const epoch = await people.rebuild.mintEpoch(run);
  // After the epoch: until then a gateway may log changes that it cannot store in Redis.
  const later = await restoreLaterConsents(sources, people, restoredConsents).catch((cause: unknown) => {
    throw new Error(`everything is back and in use but ${CONSENTS_LEFT}`, { cause });
  });
  const consents = sum(restoredConsents.rebuilt, later);
  return { graph: restored, consents, holds, epoch };
}

const CONSENTS_LEFT = 'the consents logged meanwhile: run npm run consent -- rebuild';

/**
 * With an epoch the data is complete and linkers use it: loading old data would undo their work. If the epoch is wrong,
 * empty Redis, which stops them; all its contents are stored elsewhere too.
 */
const IN_USE =
  'the identity graph has an epoch: it is whole and in use, and was left alone. If it was initialised by mistake or ' +
  'comes from an old copy, empty that database of Redis (FLUSHDB), which stops all consumers, and run npm run rebuild; ' +
  `if a rebuild ended with a fault behind its epoch, it lacks ${CONSENTS_LEFT}`;
