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
  const { sent: place, topics, erasures, happened } = state;
  const next = rules.log.sent[place];
  if (next === undefined) return [];
  const sent = place + 1;
  const words = `gateway takes ${next.kind}`;
  if ('erasure' in next) {
    const { subject } = rules.log.wishes[next.erasure] as Wish;
    const change = next.kind === 'hold' ? { held: [subject] } : { asked: true };
    const taken: Move = [`${words} ${next.erasure}`, { sent, erasures: changed(erasures, next.erasure, change) }];
    if (next.kind === 'hold' || !rules.mayHappen(state, 'request is lost')) return [taken];
    return [taken, ['the request never stands', { sent, happened: [...happened, 'request is lost'] }]];
  }
  const topic = TOPIC_OF[next.kind];
  const published: Topics = { ...topics, [topic]: [...topics[topic], place] };
  const unput = next.kind === 'consent' ? withOffset(state.unput, place) : state.unput;
  return [[`${words} ${rules.log.idsOf(place)} of ${rules.log.atOf(place)}`, { sent, topics: published, unput }]];
}

function putConsents(rules: Rules, state: State): Move[] {
  return state.unput.map((place) => [
    `gateway puts consent ${place}`,
    { unput: state.unput.filter((each) => each !== place), choices: putConsent(rules, state, place) },
  ]);
}

/** One Redis script. Of two consents of one id, it keeps the one that is later in the log. */
export function putConsent(rules: Rules, { choices, fences }: State, place: number): readonly number[] {
  const [id] = rules.log.idsOf(place);
  if (rules.covers(fences, place) && rules.has('refuse consents by T of a fenced id')) return choices;
  const stored = choices.find((each) => rules.log.idsOf(each)[0] === id);
  if (stored === undefined) return withOffset(choices, place);
  return stored >= place
    ? choices
    : withOffset(
        choices.filter((each) => each !== stored),
        place,
      );
}

/** A hold without a request on the topic expires. Any hold may be lost. */
function loseHolds(rules: Rules, state: State): Move[] {
  const isBehindRequest = (erasure: number) =>
    rules.log.sent.findIndex((sent) => sent.kind === 'request' && sent.erasure === erasure) < state.sent;
  return state.erasures.flatMap(({ requested: asked, held }, erasure): Move[] => {
    const letGo = { erasures: changed(state.erasures, erasure, { held: null }) };
    if (held === null) return [];
    if (!asked && isBehindRequest(erasure) && rules.has('let a hold lapse whose request does not stand'))
      return [[`hold ${erasure} lapses`, letGo]];
    if (!rules.mayHappen(state, 'hold is lost')) return [];
    return [[`hold ${erasure} is lost`, { ...letGo, happened: [...state.happened, 'hold is lost'] }]];
  });
}
