import type { Wish } from './people.ts';
import { changed, type Move, type Rules, type State, type Topics, withOffset } from './state.ts';

const TOPIC_OF = { event: 'events', link: 'links', consent: 'consents' } as const;

/**
 * Moves of the gateways. They accept messages and requests in order. Each gateway puts a consent into Redis at some
 * later moment.
 */
export function take(rules: Rules, state: State): Move[] {
  return [...send(rules, state), ...putConsents(rules, state), ...loseHolds(rules, state)];
}

function send(rules: Rules, state: State): Move[] {
  const { sent: offset, topics, erasures, happened } = state;
  const next = rules.log.sent[offset];
  if (next === undefined) return [];
  const sent = offset + 1;
  const step = `gateway takes ${next.kind}`;
  if ('erasure' in next) {
    const { subject } = rules.log.wishes[next.erasure] as Wish;
    const change = next.kind === 'hold' ? { held: [subject] } : { requested: true };
    const taken: Move = [`${step} ${next.erasure}`, { sent, erasures: changed(erasures, next.erasure, change) }];
    if (next.kind === 'hold' || !rules.mayHappen(state, 'request is lost')) return [taken];
    return [taken, ['the request is lost', { sent, happened: [...happened, 'request is lost'] }]];
  }
  const topic = TOPIC_OF[next.kind];
  const published: Topics = { ...topics, [topic]: [...topics[topic], offset] };
  const unput = next.kind === 'consent' ? withOffset(state.unput, offset) : state.unput;
  return [[`${step} ${rules.log.idsOf(offset)} of ${rules.log.atOf(offset)}`, { sent, topics: published, unput }]];
}

function putConsents(rules: Rules, state: State): Move[] {
  return state.unput.map((offset) => [
    `gateway puts consent ${offset}`,
    { unput: state.unput.filter((each) => each !== offset), choices: putConsent(rules, state, offset) },
  ]);
}

/** One Redis script. Of two consents of one id, it keeps the one that is later in the log. */
export function putConsent(rules: Rules, { choices, fences }: State, offset: number): readonly number[] {
  const [id] = rules.log.idsOf(offset);
  if (rules.covers(fences, offset) && rules.has('refuse consents by T of a fenced id')) return choices;
  const stored = choices.find((each) => rules.log.idsOf(each)[0] === id);
  if (stored === undefined) return withOffset(choices, offset);
  return stored >= offset
    ? choices
    : withOffset(
        choices.filter((each) => each !== stored),
        offset,
      );
}

/** A hold without a request on the topic expires. Any hold may be lost. */
function loseHolds(rules: Rules, state: State): Move[] {
  const isBehindRequest = (erasure: number) =>
    rules.log.sent.findIndex((sent) => sent.kind === 'request' && sent.erasure === erasure) < state.sent;
  return state.erasures.flatMap(({ requested, held }, erasure): Move[] => {
    const letGo = { erasures: changed(state.erasures, erasure, { held: null }) };
    if (held === null) return [];
    if (!requested && isBehindRequest(erasure) && rules.has('let a hold lapse whose request is lost'))
      return [[`hold ${erasure} lapses`, letGo]];
    if (!rules.mayHappen(state, 'hold is lost')) return [];
    return [[`hold ${erasure} is lost`, { ...letGo, happened: [...state.happened, 'hold is lost'] }]];
  });
}
