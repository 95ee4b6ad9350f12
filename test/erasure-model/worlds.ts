import { consent, event, hold, link, request } from './people.ts';
import type { World } from './state.ts';

/** An erasure of `s` with cut-off 1. */
const ONE = [{ subject: 's', cutoff: 1 }] as const;
/** The device `d` is linked with `s` up to the cut-off. The stranger `b` is linked later. */
const USUAL = [
  event(1, 's'),
  event(1, 'd'),
  event(1, 'b'),
  link(1, 's', 'd'),
  hold(0),
  request(0),
  event(2, 's'),
  link(2, 'd', 'b'),
  event(2, 'b'),
] as const;
/** Shorter logs: only links, only rows, or only records to reread. */
const LINKS = [event(1, 'd'), event(1, 'b'), link(1, 's', 'd'), hold(0), request(0), link(2, 'd', 'b')] as const;
const EVENTS = [event(1, 's'), event(1, 'b'), hold(0), request(0), event(2, 's')] as const;
const READ_TWICE = [event(1, 'd'), link(1, 's', 'd'), hold(0), request(0), link(2, 'd', 'b')] as const;
const FIRST_RECORDS = [event(1, 'd'), event(1, 'b'), event(1, 'c'), link(1, 's', 'd')] as const;

/** Situations in which the protocol must be correct. */
export const WORLDS = {
  'nothing goes wrong': { sent: USUAL, requests: ONE },
  'a zombie writer inserts late': { sent: EVENTS, requests: ONE, mishaps: ['zombie writer'] },
  'a delete fails': { sent: EVENTS, requests: ONE, mishaps: ['delete fails'] },
  'the whole log is reread': { sent: READ_TWICE, requests: ONE, mishaps: ['replay'] },
  'the hold is lost': { sent: LINKS, requests: ONE, mishaps: ['hold is lost'] },
  'the request may be lost': { sent: LINKS, requests: ONE, mishaps: ['request is lost'] },
  'another eraser takes over': { sent: LINKS, requests: ONE, mishaps: ['second eraser'] },
  // Gateways can be slow, so the log is not ordered by time.
  'a link up to T is late': {
    sent: [event(1, 'd'), event(1, 'b'), hold(0), link(2, 'd', 'b'), link(1, 's', 'd'), request(0)],
    requests: ONE,
  },
  'a link up to T follows the request': {
    sent: [event(1, 'd'), event(1, 'b'), hold(0), request(0), link(2, 'd', 'b'), link(1, 's', 'd')],
    requests: ONE,
  },
  // The gateway chooses the cut-off before the hold is in effect.
  'the hold is late': {
    sent: [event(1, 'd'), event(1, 'b'), link(1, 's', 'd'), link(2, 'd', 'b'), hold(0), request(0)],
    requests: ONE,
  },
  // `b` is linked between the two cut-offs, so only the second erasure covers `b`. `c` is linked after both cut-offs.
  'two erasures of one person': {
    sent: [...FIRST_RECORDS, hold(0), request(0), link(2, 'd', 'b'), hold(1), request(1), link(3, 's', 'c')],
    requests: [
      { subject: 's', cutoff: 1 },
      { subject: 'd', cutoff: 2 },
    ],
  },
  // `d` joins `s` and `b`, and the first erasure removes `d` from the graph.
  'the same request arrives twice': {
    sent: [...FIRST_RECORDS, hold(0), hold(1), request(0), request(1), link(2, 'd', 'b'), link(3, 's', 'c')],
    requests: [
      { subject: 's', cutoff: 1 },
      { subject: 's', cutoff: 2 },
    ],
  },
  // The last consent was accepted before the cut-off by a slow gateway.
  'consents are recorded': {
    sent: [consent(1, 's'), hold(0), request(0), consent(2, 's'), consent(1, 's')],
    requests: ONE,
  },
} satisfies Record<string, World>;
export type WorldName = keyof typeof WORLDS;
