import { EpochPresentFault, type People, type RebuiltConsents } from '@playline/people';
import { restoreConsents, restoreLaterConsents, sum } from './restore-consents.ts';
import { type LinkerProgress, type RestoredGraph, restoreGraph } from './restore-graph.ts';
import { restoreHolds } from './restore-holds.ts';
import type { RebuildSources } from './stores.ts';

/** What a rebuild has put back. */
export interface RebuiltIdentity {
  readonly graph: RestoredGraph;
  readonly consents: RebuiltConsents;
  readonly holds: number;
  readonly epoch: string;
}

/**
 * Restores a Redis that was emptied: fences, graph, consents, holds, and the epoch when all of them are there, because
 * it is the word for it that linkers and gateways wait for. A run that was cut short has minted none, and is repeated.
 * @throws Error when there is an epoch, when the consents logged meanwhile are not back behind it, or of a store
 */
export async function rebuildIdentity(
  sources: RebuildSources,
  people: People,
  progress: LinkerProgress,
): Promise<RebuiltIdentity> {
  if ((await people.readEpoch()) !== null) throw new Error(IN_USE);
  const restored = await restoreGraph(sources, people, progress).catch((fault: unknown) => {
    throw fault instanceof EpochPresentFault ? new Error(IN_USE, { cause: fault }) : fault;
  });
  const restoredConsents = await restoreConsents(sources, people);
  // Late, since requests may be made while the graph is read.
  const holds = await restoreHolds(sources, people);
  const epoch = await people.rebuild.mintEpoch();
  // Behind the epoch: before it a gateway logs changes that it cannot store, up to the last moment.
  const later = await restoreLaterConsents(sources, people, restoredConsents).catch((cause: unknown) => {
    throw new Error(`everything is back and in use but ${CONSENTS_LEFT}`, { cause });
  });
  const consents = sum(restoredConsents.rebuilt, later);
  return { graph: restored, consents, holds, epoch };
}

const CONSENTS_LEFT = 'the consents logged meanwhile: run npm run consent -- rebuild';

/**
 * An epoch says that everything is there, and linkers work with it: loading over it would undo what they do. Whoever
 * knows better empties Redis, which stops them; nothing in it is kept nowhere else.
 */
const IN_USE =
  'the identity graph has an epoch: it is whole and in use, and was left alone. If it was initialised by mistake or ' +
  'comes from an old copy, empty that database of Redis (FLUSHDB), which stops all consumers, and run npm run rebuild; ' +
  `if a rebuild ended with a fault behind its epoch, it lacks ${CONSENTS_LEFT}`;
