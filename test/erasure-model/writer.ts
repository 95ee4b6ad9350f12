import { commit, type Move, type Rules, type State, type Written, withOffset } from './state.ts';

const TOPICS: readonly Written[] = ['events', 'decisions', 'consents'];

/** Writes rows of events, decisions and consents: checks a record against the fences, inserts its row, commits it. */
export function write(rules: Rules, state: State): Move[] {
  const moves: Move[] = state.loaded ? [] : [['writer loads the fences', { loaded: true }]];
  for (const topic of TOPICS) {
    const offset = state.topics[topic][0];
    if (offset !== undefined) moves.push(...writeOne(rules, state, { topic, offset }));
  }
  return moves;
}

function writeOne(rules: Rules, state: State, record: { topic: Written; offset: number }): Move[] {
  const { hands, loaded, rows } = state;
  const { topic, offset } = record;
  const hand = hands[topic];
  const name = `${topic} at ${offset}`;
  if (hand === null) {
    if (!loaded && rules.has('stop a writer that has not loaded the fences')) return [];
    const isJudged = topic !== 'decisions' || rules.has('refuse decisions by T about a fenced id');
    const keep = !(loaded && isJudged && rules.covers(state.fences, offset));
    return [
      [`writer ${keep ? 'keeps' : 'drops'} ${name}`, { hands: { ...hands, [topic]: { keep, inserted: false } } }],
    ];
  }
  if (hand.keep && !hand.inserted) {
    const inserted = { ...hands, [topic]: { ...hand, inserted: true } };
    return [[`writer inserts ${name}`, { rows: withOffset(rows, offset), hands: inserted }]];
  }
  return [[`writer commits ${name}`, { ...commit(state, topic), hands: { ...hands, [topic]: null } }]];
}

/**
 * The paused writer keeps its decision about a record. The other one starts at the committed position without fences.
 */
export function takeOver(rules: Rules, state: State): Move[] {
  const { hands, zombie, rows, happened } = state;
  if (zombie !== null)
    return [['zombie writer inserts', { rows: withOffset(rows, zombie), revived: [zombie], zombie: null }]];
  const hand = hands.events;
  if (!rules.mayHappen(state, 'zombie writer') || hand === null || !hand.keep || hand.inserted) return [];
  const paused = { zombie: state.topics.events[0] as number, hands: { ...hands, events: null }, loaded: false };
  return [['another writer takes over', { ...paused, happened: [...happened, 'zombie writer'] }]];
}

/**
 * The scrub runs daily, so it runs once after everything else. It uses the fences, because nothing else is stored by
 * then.
 */
export function scrub(rules: Rules, state: State): Move[] {
  const isIdle = Object.values(state.topics).every((topic) => topic.length === 0) && state.zombie === null;
  const isErased = state.erasures.every(
    ({ requested, hasReceipt, held }) => !requested || (hasReceipt && held === null),
  );
  const isOver = state.sent === rules.log.sent.length && isIdle && isErased;
  if (!rules.has('scrub while the fence lives') || !isOver || state.scrubbed) return [];
  const rows = state.rows.filter((offset) => !rules.covers(state.fences, offset));
  return [['scrub', { rows, revived: [], scrubbed: true }]];
}
