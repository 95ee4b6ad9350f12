import { commit, type Move, type Rules, type State, type Written, withOffset } from './state.ts';

const TOPICS: readonly Written[] = ['events', 'decisions', 'consents'];

/**
 * Writes events, decisions and consents: checks each record against the fences, inserts the row and commits the offset.
 */
export function write(rules: Rules, state: State): Move[] {
  const moves: Move[] = state.loaded ? [] : [['writer loads the fences', { loaded: true }]];
  for (const topic of TOPICS) {
    const offset = state.topics[topic][0];
    if (offset !== undefined) moves.push(...writeOne(rules, state, { topic, offset }));
  }
  return moves;
}

function writeOne(rules: Rules, state: State, record: { topic: Written; offset: number }): Move[] {
  const { inFlight, loaded, rows } = state;
  const { topic, offset } = record;
  const progress = inFlight[topic];
  const name = `${topic} at ${offset}`;
  if (progress === null) {
    if (!loaded && rules.has('stop a writer that has not loaded the fences')) return [];
    const isChecked = topic !== 'decisions' || rules.has('refuse decisions up to T about a fenced id');
    const keep = !(loaded && isChecked && rules.covers(state.fences, offset));
    return [
      [`writer ${keep ? 'keeps' : 'drops'} ${name}`, { inFlight: { ...inFlight, [topic]: { keep, inserted: false } } }],
    ];
  }
  if (progress.keep && !progress.inserted) {
    const inserted = { ...inFlight, [topic]: { ...progress, inserted: true } };
    return [[`writer inserts ${name}`, { rows: withOffset(rows, offset), inFlight: inserted }]];
  }
  return [[`writer commits ${name}`, { ...commit(state, topic), inFlight: { ...inFlight, [topic]: null } }]];
}

/**
 * The paused writer does not repeat its fence check. The other writer starts at the committed offset without fences.
 */
export function takeOver(rules: Rules, state: State): Move[] {
  const { inFlight, zombie, rows, mishaps } = state;
  if (zombie !== null)
    return [['zombie writer inserts', { rows: withOffset(rows, zombie), revived: [zombie], zombie: null }]];
  const progress = inFlight.events;
  if (!rules.mayHappen(state, 'zombie writer') || progress === null || !progress.keep || progress.inserted) return [];
  const paused = { zombie: state.topics.events[0] as number, inFlight: { ...inFlight, events: null }, loaded: false };
  return [['another writer takes over', { ...paused, mishaps: [...mishaps, 'zombie writer'] }]];
}

/** Models the daily scrub as a single run after all other steps. */
export function scrub(rules: Rules, state: State): Move[] {
  const isIdle = Object.values(state.topics).every((topic) => topic.length === 0) && state.zombie === null;
  const isErased = state.erasures.every(
    ({ requested, hasReceipt, held }) => !requested || (hasReceipt && held === null),
  );
  const isOver = state.sent === rules.log.sent.length && isIdle && isErased;
  if (!rules.has('scrub while the fence exists') || !isOver || state.scrubbed) return [];
  const rows = state.rows.filter((offset) => !rules.covers(state.fences, offset));
  return [['scrub', { rows, revived: [], scrubbed: true }]];
}
