import type { IdentityDecisionRecord } from '@playline/contracts';
import type { IdentityGraph, LinkSourcePartition, Override } from './graph.ts';

/** What a rebuild reads of a decision. */
export type RebuildDecision = Pick<
  IdentityDecisionRecord,
  'environmentId' | 'generation' | 'partition' | 'offset' | 'outcome' | 'root' | 'moved' | 'receivedAt'
>;

/** Rows loaded in one call: about 100 KB. */
const LOAD_ROWS_MAX = 1_000;

/** Overrides that a decision makes: one a moved identity. */
export function toOverrides(decision: RebuildDecision): Override[] {
  if (decision.outcome !== 'linked') return [];
  const { environmentId, root, receivedAt } = decision;
  // An identity known already keeps its link time (`load` sees to that), so `receivedAt` counts for new ones only.
  return decision.moved.map(({ key, kind }) => ({ environmentId, key, kind, root, linkedAt: receivedAt }));
}

/**
 * Replays decisions, in the order of the log, into a graph without an epoch; the caller mints one afterwards.
 * The last fact of each partition counts as not applied, since perhaps not all its decisions had been published:
 * it is decided again, which changes nothing where they had.
 * @returns number of decisions replayed
 */
export async function rebuildFromDecisions(
  graph: IdentityGraph,
  decisions: AsyncIterable<RebuildDecision> | Iterable<RebuildDecision>,
): Promise<number> {
  const last = new Map<string, LinkSourcePartition & { offset: number }>();
  let rows: Override[] = [];
  let count = 0;
  for await (const decision of decisions) {
    const { generation, partition, offset } = decision;
    const source = `${generation}/${partition}`;
    if (offset > (last.get(source)?.offset ?? -1)) last.set(source, { generation, partition, offset });
    rows.push(...toOverrides(decision));
    count++;
    if (rows.length < LOAD_ROWS_MAX) continue;
    await graph.load(rows);
    rows = [];
  }
  await graph.load(rows);
  for (const { offset, ...source } of last.values()) await graph.loadApplied(source, offset - 1);
  return count;
}
