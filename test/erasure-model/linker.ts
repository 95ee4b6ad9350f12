import { componentOf, joinAll, type RequestedErasure } from './people.ts';
import { commit, type Move, type Rules, type State } from './state.ts';

/** Reads links in topic order and republishes links that a hold delays. */
export function link(rules: Rules, state: State): Move[] {
  const { topics, decided } = state;
  const offset = topics.links[0];
  if (offset === undefined) return [];
  const ids = rules.log.idsOf(offset);
  if (decided === 'parked')
    return [[`linker republishes ${ids}`, { ...commit(state, 'links', [offset]), decided: null }]];
  if (decided !== null) {
    const decisions = decided === 'linked' ? [...topics.decisions, offset] : topics.decisions;
    const published = { ...state, topics: { ...topics, decisions } };
    return [[`linker publishes and commits ${ids}`, { ...commit(published, 'links'), decided: null }]];
  }
  if (isParked(rules, state, offset)) return [[`linker parks ${ids}`, { decided: 'parked' }]];
  const isRefused = rules.covers(state.fences, offset) && rules.has('refuse links up to T that contain a fenced id');
  if (isRefused) return [[`linker refuses ${ids}`, { decided: 'refused' }]];
  return [[`linker joins ${ids}`, { graph: joinAll(state.graph, ids), decided: 'linked' }]];
}

/** Whether the link is later than the latest cut-off of a hold on any id of the persons it would join. */
function isParked({ log }: Rules, { graph, erasures }: State, offset: number): boolean {
  const affected = log.idsOf(offset).flatMap((id) => componentOf(graph, id));
  return affected.some((id) => {
    const cutoffs = erasures.flatMap(({ held }, erasure) =>
      held?.includes(id) ? [(log.requests[erasure] as RequestedErasure).cutoff] : [],
    );
    return cutoffs.length > 0 && log.atOf(offset) > Math.max(...cutoffs);
  });
}
