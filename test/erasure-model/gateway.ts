import type { RequestedErasure } from './people.ts';
import { type Move, type Rules, type State, type Topics, updateAt, withOffset } from './state.ts';

const TOPIC_OF = { event: 'events', link: 'links', consent: 'consents' } as const;

/** Gateways accept messages and requests in order and write consents to Redis later. */
export function accept(rules: Rules, state: State): Move[] {
  return [...send(rules, state), ...putConsents(rules, state), ...loseHolds(rules, state)];
}

function send(rules: Rules, state: State): Move[] {
  const { sent: offset, topics, erasures, mishaps } = state;
  const next = rules.log.sent[offset];
  if (next === undefined) return [];
  const sent = offset + 1;
  const step = `gateway accepts ${next.kind}`;
  if ('erasure' in next) {
    const { subject } = rules.log.requests[next.erasure] as RequestedErasure;
    const change = next.kind === 'hold' ? { held: [subject] } : { requested: true };
    const accepted: Move = [`${step} ${next.erasure}`, { sent, erasures: updateAt(erasures, next.erasure, change) }];
    if (next.kind === 'hold' || !rules.mayHappen(state, 'request is lost')) return [accepted];
    return [accepted, ['the request is lost', { sent, mishaps: [...mishaps, 'request is lost'] }]];
  }
  const topic = TOPIC_OF[next.kind];
  const published: Topics = { ...topics, [topic]: [...topics[topic], offset] };
  const unwritten = next.kind === 'consent' ? withOffset(state.unwritten, offset) : state.unwritten;
  return [[`${step} ${rules.log.idsOf(offset)} of ${rules.log.atOf(offset)}`, { sent, topics: published, unwritten }]];
}

function putConsents(rules: Rules, state: State): Move[] {
  return state.unwritten.map((offset) => [
    `gateway writes consent ${offset}`,
    { unwritten: state.unwritten.filter((each) => each !== offset), choices: putConsent(rules, state, offset) },
  ]);
}

/** Models the Redis script, which keeps the consent that is later in the log. */
export function putConsent(rules: Rules, { choices, fences }: State, offset: number): readonly number[] {
  const [id] = rules.log.idsOf(offset);
  if (rules.covers(fences, offset) && rules.has('refuse consents up to T of a fenced id')) return choices;
  const stored = choices.find((each) => rules.log.idsOf(each)[0] === id);
  if (stored === undefined) return withOffset(choices, offset);
  return stored >= offset
    ? choices
    : withOffset(
        choices.filter((each) => each !== stored),
        offset,
      );
}

/** Holds without a request on the topic expire. Any hold may be lost. */
function loseHolds(rules: Rules, state: State): Move[] {
  const isPastRequest = (erasure: number) =>
    rules.log.sent.findIndex((sent) => sent.kind === 'request' && sent.erasure === erasure) < state.sent;
  return state.erasures.flatMap(({ requested, held }, erasure): Move[] => {
    const released = { erasures: updateAt(state.erasures, erasure, { held: null }) };
    if (held === null) return [];
    if (!requested && isPastRequest(erasure) && rules.has('expire a hold whose request is lost'))
      return [[`hold ${erasure} expires`, released]];
    if (!rules.mayHappen(state, 'hold is lost')) return [];
    return [[`hold ${erasure} is lost`, { ...released, mishaps: [...state.mishaps, 'hold is lost'] }]];
  });
}
