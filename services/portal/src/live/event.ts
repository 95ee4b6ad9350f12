import type { Fate, LiveEntry, MessageContent } from './entry.ts';

/** What a looker is told, as JSON on one line. */
export type LiveEvent =
  | ({ readonly kind: 'message' } & ShownHead & Partial<ShownMessage>)
  | ({ readonly kind: 'rejection' } & ShownHead & NonNullable<LiveEntry['rejection']>)
  /** Of something that was shown; `fenced` takes away what it said. */
  | { readonly kind: 'fate'; readonly place: string; readonly fate: Fate; readonly reason: string }
  | ({ readonly kind: 'status' } & LiveStatus)
  /** Nothing comes behind it. */
  | { readonly kind: 'end'; readonly reason: EndReason };

export type EndReason = 'not allowed any more' | 'permission unknown' | 'closed';

interface ShownHead extends Pick<LiveEntry, 'place' | 'fate' | 'receivedAt' | 'traceId' | 'reason'> {}

interface ShownMessage extends Omit<MessageContent, 'ownKeys' | 'anonymousKey'> {}

/** How much of what happens is shown: what is not, is said. */
export interface LiveStatus {
  /** False until it is known from where on the log is read; what is sent before that is not seen. */
  readonly isWatching: boolean;
  /** Records of the environment that were read since this looker came. */
  readonly seen: number;
  /** Those that were told; filters leave out others. */
  readonly shown: number;
  /** Those that the filter wanted and that were dropped, because the looker did not read in time or nothing could be told. */
  readonly lost: number;
  /** Share of the log that was read since this looker came: below 1 it was a sample. */
  readonly share: number;
  /** Why nothing is told now; '' while nothing is wrong. */
  readonly trouble: string;
}

/** What an entry was shown as, and what it was like then. */
interface Shown extends Pick<LiveEntry, 'fate' | 'reason' | 'message'> {
  readonly event: LiveEvent;
}

const shownOf = { raw: new WeakMap<LiveEntry, Shown>(), masked: new WeakMap<LiveEntry, Shown>() };

/**
 * The entry as it may be shown now: the same event for all who look at it, so that its text is made once.
 * @param masks whether the looker sees no raw ids
 */
export function toEntryEvent(entry: LiveEntry, masks: boolean): LiveEvent {
  const known = shownOf[masks ? 'masked' : 'raw'];
  const { fate, reason, message } = entry;
  const last = known.get(entry);
  if (last !== undefined && last.fate === fate && last.reason === reason && last.message === message) return last.event;
  const event = makeEvent(entry, masks);
  known.set(entry, { fate, reason, message, event });
  return event;
}

function makeEvent(entry: LiveEntry, masks: boolean): LiveEvent {
  const { place, fate, receivedAt, traceId, reason, message, rejection } = entry;
  if (rejection !== null) return { kind: 'rejection', place, fate, receivedAt, traceId, reason, ...rejection };
  // Of somebody who is erased nothing is told but that it came: not the trace either, which leads to log lines.
  if (message === null) return { kind: 'message', place, fate, receivedAt, traceId: '', reason: '' };
  const { ownKeys: _own, anonymousKey: _anonymous, ...shown } = message;
  const head = { kind: 'message', place, fate, receivedAt, traceId, reason } as const;
  return { ...head, ...(masks ? toMasked(shown) : shown) };
}

/** Properties, traits and pages are texts in which anybody may be named: analysts' views leave them out as well. */
function toMasked(shown: ShownMessage): ShownMessage {
  const ids = Object.entries(shown.ids).map(([name, id]) => [name, name.endsWith('Id') ? toMask(id) : id]);
  return { ...shown, ids: Object.fromEntries(ids), pageUrl: '', properties: '', traits: '', isCut: false };
}

const SHOWN_CHARACTERS = 2;

/** The first two characters; none of an id that has no more. */
export function toMask(id: string): string {
  const characters = [...id];
  return characters.length > SHOWN_CHARACTERS ? `${characters.slice(0, SHOWN_CHARACTERS).join('')}…` : '…';
}
