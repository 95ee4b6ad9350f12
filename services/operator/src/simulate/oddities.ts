import { CONTEXT_CODE_POINTS_MAX, ID_CODE_POINTS_MAX } from '@playline/contracts';
import type { Message } from './messages.ts';
import type { Random } from './random.ts';

/** A message that looks strange but must be accepted (contract, "Rules of a message"). */
export interface Oddity {
  readonly name: string;
  /** Changes the message, but neither its owner nor its link. */
  change(message: Message, random: Random): void;
}

const contextOf = (message: Message) => message.context as Message;

/** An emoji is one code point and two UTF-16 units; a limit must count code points. */
const emoji = (codePoints: number) => '🎮'.repeat(codePoints);

export const ODDITIES: readonly Oddity[] = [
  { name: 'no context', change: (message) => void delete message.context },
  { name: 'null in optional members', change: (message) => Object.assign(message, { deviceId: null, test: null }) },
  {
    name: 'null in the context',
    change: (message) => Object.assign(contextOf(message), { locale: null, screen: null }),
  },
  { name: 'blank optional ids', change: (message) => Object.assign(message, { deviceId: '  ', sessionId: '' }) },
  {
    name: 'empty context strings',
    change: (message) => Object.assign(contextOf(message), { pageTitle: '', pageReferrer: '' }),
  },
  {
    name: 'unknown members',
    change: (message) => Object.assign(message, { sentBy: 'beta', extra: { deep: [1, { deeper: null }] } }),
  },
  {
    name: 'upper-case message id',
    change: (message) => Object.assign(message, { messageId: String(message.messageId).toUpperCase() }),
  },
  { name: 'longest session id', change: (message) => Object.assign(message, { sessionId: emoji(ID_CODE_POINTS_MAX) }) },
  {
    name: 'longest user agent',
    change: (message) => Object.assign(contextOf(message), { userAgent: emoji(CONTEXT_CODE_POINTS_MAX.userAgent) }),
  },
  {
    name: 'longest page address',
    change: (message) =>
      Object.assign(contextOf(message), { pageUrl: 'https://a.example/'.padEnd(CONTEXT_CODE_POINTS_MAX.pageUrl, 'é') }),
  },
  {
    name: 'lower-case t and z',
    change: (message) => Object.assign(message, { eventTimestamp: String(message.eventTimestamp).toLowerCase() }),
  },
  {
    name: 'nine digits of a second',
    change: (message) =>
      Object.assign(message, {
        eventTimestamp: String(message.eventTimestamp).replace(/(\.\d+)?(Z|[+-]\d\d:\d\d)$/, '.123456789$2'),
      }),
  },
  { name: 'consent not set', change: (message) => Object.assign(message, { consentLevel: 'not_set' }) },
  { name: 'no surface', change: (message) => void delete message.surface },
  {
    name: 'awkward text',
    change: (message) =>
      Object.assign(message, {
        properties: { text: '\u0000\u2028"\\\t</script> ﷽ \ud83c\udfae', __proto_: 1, 'a.b': '' },
      }),
  },
];
