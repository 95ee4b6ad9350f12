import { componentOf, joinAll, type Wish } from './people.ts';
import { commit, type Move, type Rules, type State } from './state.ts';

/**
 * Reads links in the order of their topic. A link that a hold delays goes back to the end of the topic after a while.
 */
export function link(rules: Rules, state: State): Move[] {
  const { topics, decided } = state;
  const offset = topics.links[0];
  if (offset === undefined) return [];
  const ids = rules.log.idsOf(offset);
  if (decided === 'parked')
    return [[`linker sends ${ids} round`, { ...commit(state, 'links', [offset]), decided: null }]];
  if (decided !== null) {
    const decisions = decided === 'linked' ? [...topics.decisions, offset] : topics.decisions;
    const published = { ...state, topics: { ...topics, decisions } };
    return [[`linker publishes and commits ${ids}`, { ...commit(published, 'links'), decided: null }]];
  }
  if (isParked(rules, state, offset)) return [[`linker parks ${ids}`, { decided: 'parked' }]];
  const isRefused = rules.covers(state.fences, offset) && rules.has('refuse links by T that touch a fenced id');
  if (isRefused) return [[`linker refuses ${ids}`, { decided: 'refused' }]];
  return [[`linker joins ${ids}`, { graph: joinAll(state.graph, ids), decided: 'linked' }]];
}

/**
 * The linker script's rule. The link touches all ids of the persons that it would join. It is parked when it is later
 * than the latest cut-off of the holds of any such id.
 */
function isParked({ log }: Rules, { graph, erasures }: State, offset: number): boolean {
  const touched = log.idsOf(offset).flatMap((id) => componentOf(graph, id));
  return touched.some((id) => {
    const cutoffs = erasures.flatMap(({ held }, erasure) =>
      held?.includes(id) ? [(log.wishes[erasure] as Wish).cutoff] : [],
    );
    return cutoffs.length > 0 && log.atOf(offset) > Math.max(...cutoffs);
  });
}
