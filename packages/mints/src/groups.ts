/** Divides mint data into groups of projects, each of which is stored as a whole. */
import { settleAll, settleSome, toLowest, toPartition } from '@playline/stores';
import type { Quotas } from './accept.ts';
import type { MintClaims } from './claims.ts';
import type { MintState } from './states.ts';
import type { MintUpdate, MintView, MintViewProgress } from './view.ts';

export interface MintGroup {
  readonly claims: MintClaims;
  readonly view: MintView;
  readonly quotas: Quotas;
}

/** Joins the groups. A group that does not respond affects only its projects. */
export function joinGroups(groups: readonly MintGroup[]): MintGroup {
  const indexOf = (projectId: string) => toPartition(Buffer.from(projectId), groups.length);
  const of = (projectId: string) => groups[indexOf(projectId)]!;
  return {
    claims: {
      claim: (scope, wanted, options) => of(scope.projectId).claims.claim(scope, wanted, options),
      confirm: (scope, states) => of(scope.projectId).claims.confirm(scope, states),
      lapse: (scope, claim) => of(scope.projectId).claims.lapse(scope, claim),
      clean: (projectId, claimedUntil) => of(projectId).claims.clean(projectId, claimedUntil),
      read: (scope, referenceId) => of(scope.projectId).claims.read(scope, referenceId),
    },
    quotas: { take: (projectId, policy, units) => of(projectId).quotas.take(projectId, policy, units) },
    view: joinViews(
      groups.map(({ view }) => view),
      (state) => indexOf(state.projectId),
    ),
  };
}

function joinViews(views: readonly MintView[], indexOf: (state: MintState) => number): MintView {
  /** The progress of each group when it was last read; null if the group did not respond. */
  let known: (MintViewProgress | null)[] = views.map(() => null);
  const join = (toText: (progress: MintViewProgress) => string) =>
    known.map((progress) => (progress === null ? '' : toText(progress))).join();
  return {
    async progress() {
      known = await settleSome(views.map((view) => view.progress()));
      return {
        run: join(({ run }) => run),
        completeIn: join(({ completeIn }) => completeIn ?? ''),
        // A group without an offset has not applied the partition, so the partition has none.
        offsets: toLowest(known.flatMap((progress) => progress?.offsets ?? [])),
      };
    },
    async apply(update) {
      const states = Map.groupBy(update.states, indexOf);
      const isRead = known.some((progress) => progress !== null);
      if (!isRead) known = await settleSome(views.map((view) => view.progress()));
      // A group that did not respond keeps its offset, from which the log will be read again.
      const calls = known.map(async (progress, index) =>
        progress === null ? true : applyTo(views[index]!, { ...update, states: states.get(index) ?? [] }, progress),
      );
      return (await settleAll(calls)).every((isApplied) => isApplied);
    },
    async restore(states) {
      const groups = Map.groupBy(states, indexOf);
      await settleAll([...groups].map(([index, ofGroup]) => views[index]!.restore(ofGroup)));
    },
    forgetOffsets: async () => void (await settleAll(views.map((view) => view.forgetOffsets()))),
    async complete(run) {
      const runs = run.split(',');
      await settleAll(views.map(async (view, index) => (runs[index] ? view.complete(runs[index]) : undefined)));
    },
  };
}

/**
 * Applies an update to one group. After a failed update, a group may be ahead of the others. Its states have revisions,
 * so applying them again has no effect.
 */
async function applyTo(view: MintView, update: MintUpdate, progress: MintViewProgress): Promise<boolean> {
  const name = `${update.to.topic}/${update.to.partition}`;
  const from = progress.offsets.get(name) ?? null;
  if (from !== null && update.from !== null && from > update.from && from >= update.to.offset) return true;
  const isApplied = await view.apply({ ...update, from });
  if (isApplied) (progress.offsets as Map<string, number>).set(name, update.to.offset);
  return isApplied;
}
