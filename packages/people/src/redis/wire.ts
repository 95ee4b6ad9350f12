/** Binary formats of the graph's scripts. */
import { IDENTITY_KEY_BYTES, type IdentityKind, ZERO_KEY } from '@playline/contracts';
import type { Applied, DecidedFact, LoggedSuspect, Member, Override, Suspect, UnlinkSide } from '../graph.ts';
import type { LoggedFact, RefusalReason, RulingReason, SplitSide, StepDecision } from '../identities/decisions.ts';
import type { GraphStep, NamedIdentity } from '../identities/steps.ts';
import { COMPONENT_HEADER_BYTES, KIND_CODES, MEMBER_BYTES, NUMBER_BYTES } from './layout.ts';

// These codes are stored in Redis and must not change.
const LINK_CODES: Readonly<Record<StepDecision['link'], string>> = {
  identify: 'i',
  alias: 'a',
  same_id: 's',
  unlink: 'x',
  allow: 'w',
  block: 'k',
};
const OUTCOME_CODES: Readonly<Record<StepDecision['outcome'], string>> = {
  linked: 'l',
  unchanged: 'n',
  refused: 'r',
  ambiguous: 'm',
  unlinked: 'x',
};
const REASON_CODES: Readonly<Record<RefusalReason | RulingReason | '', string>> = {
  '': '-',
  blocked: 'b',
  fenced: 'f',
  shared_device: 's',
  two_known_users: 'u',
  too_many_identities: 'i',
  too_many_anonymous_ids: 'a',
  unlinked: 'x',
  not_one_person: 'o',
  suspect: 'h',
  operator_allowed: 'w',
  operator_blocked: 'k',
};
const SUSPECT_CODES: Readonly<Record<Suspect['state'], string>> = { held: 'h', allowed: 'w', blocked: 'k' };
const SIDE_CODES: Readonly<Record<UnlinkSide['side'], string>> = { split: 's', stayed: 't', none: 'n' };

function invert<T extends string>(codes: Readonly<Record<T, string>>): (code: number) => T {
  const values = new Map((Object.keys(codes) as T[]).map((value) => [codes[value].charCodeAt(0), value]));
  return (code) => {
    const value = values.get(code);
    if (value === undefined) throw new Error(`unknown code ${code} in the identity graph`);
    return value;
  };
}
const toKind = invert(KIND_CODES);
const toLink = invert(LINK_CODES);
const toOutcome = invert(OUTCOME_CODES);
const toReason = invert(REASON_CODES);
const toSide = invert(SIDE_CODES);
const toSuspectState = invert(SUSPECT_CODES);

const byteOf = (code: string): number => code.charCodeAt(0);

export function toKindCodes(kinds: readonly IdentityKind[]): string {
  return kinds.map((kind) => KIND_CODES[kind]).join('');
}

/** Timestamps before 1970 are stored as 0. */
function toNumberBytes(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(NUMBER_BYTES);
  bytes.writeUIntBE(Math.max(0, value), 0, NUMBER_BYTES);
  return bytes;
}

function toShortText(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.of(bytes.length), bytes]);
}

/** Sizes of a fact header and of a step without its other keys. facts.lua depends on them. */
const FACT_BYTES = 3 * NUMBER_BYTES + 2;
const STEP_HEAD_BYTES = 4 + 2 * IDENTITY_KEY_BYTES + 1;

/** Replaces the number of other keys if the keys are omitted. */
const OTHER_KEYS_OMITTED = 255;

/** Replaces the number of steps in an unlink. Followed by the number of identities (2 bytes) and the identities. */
const IS_UNLINK = 255;
const NAMED_BYTES = 1 + IDENTITY_KEY_BYTES;

/**
 * Precedes the step count in a fact that has logged decisions. Followed by the entry's length (4 bytes) and the entry.
 */
const IS_LOGGED = 254;
const LOGGED_HEAD_BYTES = 1 + 4;

function factBytes({ steps, unlink }: LoggedFact, withOtherKeys: boolean): number {
  if (unlink !== undefined) return FACT_BYTES + 2 + unlink.length * NAMED_BYTES;
  let bytes = FACT_BYTES + steps.length * STEP_HEAD_BYTES;
  if (withOtherKeys) for (const step of steps) bytes += step.otherKeys.length * IDENTITY_KEY_BYTES;
  return bytes;
}

function writeKey(target: Buffer, at: number, key: Buffer): number {
  for (let index = 0; index < IDENTITY_KEY_BYTES; index++) target[at + index] = key[index]!;
  return at + IDENTITY_KEY_BYTES;
}

function writeStep(
  target: Buffer,
  start: number,
  { step, withOtherKeys }: { step: GraphStep; withOtherKeys: boolean },
) {
  let at = start;
  target[at++] = byteOf(LINK_CODES[step.link]);
  target[at++] = byteOf(KIND_CODES[step.aKind]);
  target[at++] = byteOf(KIND_CODES[step.bKind]);
  target[at++] = step.blocked ? 1 : 0;
  at = writeKey(target, at, step.aKey);
  at = writeKey(target, at, step.bKey);
  const others = withOtherKeys ? step.otherKeys : [];
  target[at++] = withOtherKeys || step.link !== 'same_id' ? others.length : OTHER_KEYS_OMITTED;
  for (const key of others) at = writeKey(target, at, key);
  return at;
}

function writeUnlink(target: Buffer, start: number, named: readonly NamedIdentity[]): number {
  target[start] = IS_UNLINK;
  let at = target.writeUInt16BE(named.length, start + 1);
  for (const { key, kind } of named) {
    target[at] = byteOf(KIND_CODES[kind]);
    at = writeKey(target, at + 1, key);
  }
  return at;
}

/**
 * Encodes facts: offset, receipt time, event time, environment index, logged decisions if any, number of steps, then
 * the steps or the identities to split off.
 * @param withOtherKeys false to omit the other keys of `same_id` steps, which are rarely needed and slow to compute
 */
export function toFactsBlob(
  facts: readonly LoggedFact[],
  withOtherKeys: boolean,
): { blob: Buffer; environmentIds: string[] } {
  const indexes = new Map<string, number>();
  const entries = facts.some(({ logged }) => logged !== undefined)
    ? facts.map(({ logged }) => toLoggedBytes(logged))
    : [];
  const entryBytes = entries.reduce((sum, entry) => sum + entry.length, 0);
  const blob = Buffer.allocUnsafe(facts.reduce((sum, fact) => sum + factBytes(fact, withOtherKeys), entryBytes));
  let at = 0;
  for (const [factIndex, { environmentId, offset, receivedAt, eventTime, steps, unlink }] of facts.entries()) {
    const index = indexes.get(environmentId) ?? indexes.size;
    indexes.set(environmentId, index);
    for (const value of [offset, receivedAt, eventTime]) {
      blob.writeUIntBE(Math.max(0, value), at, NUMBER_BYTES);
      at += NUMBER_BYTES;
    }
    blob[at++] = index;
    at += entries[factIndex]?.copy(blob, at) ?? 0;
    if (unlink !== undefined) {
      at = writeUnlink(blob, at, unlink);
      continue;
    }
    blob[at++] = steps.length;
    for (const step of steps) at = writeStep(blob, at, { step, withOtherKeys });
  }
  return { blob, environmentIds: [...indexes.keys()] };
}

/** Encodes a rebuild row: environment, identity key, root, kind and link time. */
export function toOverrideBlob(row: Override): Buffer {
  const kind = Buffer.from(KIND_CODES[row.kind]);
  return Buffer.concat([toShortText(row.environmentId), row.key, row.root, kind, toNumberBytes(row.linkedAt)]);
}

function toSideBytes({ generation, offset, unlinkedAt, side }: UnlinkSide): Buffer {
  return Buffer.concat([
    Buffer.of(generation),
    ...[offset, unlinkedAt].map(toNumberBytes),
    Buffer.from(SIDE_CODES[side]),
  ]);
}

/** Encodes a rebuild row: environment, identity key and side. */
export function toUnlinkSideBlob(row: UnlinkSide): Buffer {
  return Buffer.concat([toShortText(row.environmentId), row.key, toSideBytes(row)]);
}

/** Encodes a rebuild row: environment, generation and offset. */
export function toDecidedBlob({ environmentId, generation, offset }: DecidedFact): Buffer {
  return Buffer.concat([toShortText(environmentId), Buffer.of(generation), toNumberBytes(offset)]);
}

/** Encodes a rebuild row: environment, identity key and stored value. */
export function toSuspectBlob({ environmentId, key, state, since, generation, offset }: LoggedSuspect): Buffer {
  const position = Buffer.concat([Buffer.of(generation), toNumberBytes(offset)]);
  const value = Buffer.concat([Buffer.from(SUSPECT_CODES[state]), toNumberBytes(since), position]);
  return Buffer.concat([toShortText(environmentId), key, value]);
}

export function fromSuspect(environmentId: string, key: Buffer, value: Buffer): Suspect {
  return { environmentId, key, state: toSuspectState(value[0]!), since: value.readUIntBE(1, NUMBER_BYTES) };
}

const SIDE_BYTES = 1 + 2 * NUMBER_BYTES + 1;

export function fromSides(environmentId: string, key: Buffer, bytes: Buffer): UnlinkSide[] {
  const sides: UnlinkSide[] = [];
  for (let at = 0; at < bytes.length; at += SIDE_BYTES)
    sides.push({
      environmentId,
      key,
      generation: bytes[at]!,
      offset: bytes.readUIntBE(at + 1, NUMBER_BYTES),
      unlinkedAt: bytes.readUIntBE(at + 1 + NUMBER_BYTES, NUMBER_BYTES),
      side: toSide(bytes[at + SIDE_BYTES - 1]!),
    });
  return sides;
}

function memberAt(bytes: Buffer, at: number): Member {
  const kindAt = at + IDENTITY_KEY_BYTES;
  const key = bytes.subarray(at, kindAt);
  return { key, kind: toKind(bytes[kindAt]!), linkedAt: bytes.readUIntBE(kindAt + 1, NUMBER_BYTES) };
}

/** Decodes members, which Redis stores unordered, and sorts them by key. */
function toMembers(bytes: Buffer, start: number, end: number): Member[] {
  const members: Member[] = [];
  for (let at = start; at < end; at += MEMBER_BYTES) members.push(memberAt(bytes, at));
  return members.length < 2 ? members : members.sort((a, b) => Buffer.compare(a.key, b.key));
}

/** Decodes the members of a component, sorted by key. */
export function fromComponent(component: Buffer): Member[] {
  return toMembers(component, COMPONENT_HEADER_BYTES, component.length);
}

/**
 * A step entry: five codes (link, kinds, outcome, reason), three keys, the number of moved identities, and the
 * identities.
 */
const STEP_CODES = 5;
const STEP_BYTES = STEP_CODES + 3 * IDENTITY_KEY_BYTES + 2;
const PARKED = 'P'.charCodeAt(0);

/** Each entry in a reply is preceded by its offset and length. */
const LENGTH_AT = NUMBER_BYTES;
const ENTRY_HEAD_BYTES = NUMBER_BYTES + 4;

/** Decodes the reply of facts.lua, which ends before the first fact that needs its other keys. */
export function fromReply(reply: Buffer): Applied[] {
  const applied: Applied[] = [];
  let at = 0;
  while (at < reply.length) {
    const start = at + ENTRY_HEAD_BYTES;
    at = start + reply.readUInt32BE(at + LENGTH_AT);
    applied.push(fromEntry(reply, start, at));
  }
  return applied;
}

function fromEntry(reply: Buffer, start: number, end: number): Applied {
  if (start === end) return { kind: 'done' };
  if (reply[start] === PARKED) return { kind: 'parked', person: reply.subarray(start + 1, end) };
  const decisions: StepDecision[] = [];
  let at = start;
  while (at < end) {
    const movedAt = at + STEP_BYTES;
    const next = movedAt + reply.readUInt16BE(movedAt - 2) * MEMBER_BYTES;
    const decision = fromStep(reply, at, next);
    decisions.push(decision.link === 'unlink' ? { ...decision, stayed: fromStayed(reply, next, end) } : decision);
    at = decision.link === 'unlink' ? end : next;
  }
  return { kind: 'decided', decisions };
}

/** Decodes the end of an unlink entry: root, number and members of the side that stays. */
function fromStayed(reply: Buffer, at: number, end: number): SplitSide | null {
  const members = toMembers(reply, at + IDENTITY_KEY_BYTES + 2, end);
  return members.length === 0 ? null : { root: reply.subarray(at, at + IDENTITY_KEY_BYTES), members };
}

function fromStep(reply: Buffer, at: number, end: number): StepDecision {
  const keyAt = (index: number) => {
    const start = at + STEP_CODES + index * IDENTITY_KEY_BYTES;
    return reply.subarray(start, start + IDENTITY_KEY_BYTES);
  };
  return {
    link: toLink(reply[at]!),
    aKind: toKind(reply[at + 1]!),
    bKind: toKind(reply[at + 2]!),
    outcome: toOutcome(reply[at + 3]!),
    reason: toReason(reply[at + 4]!),
    aKey: keyAt(0),
    bKey: keyAt(1),
    root: keyAt(2),
    moved: toMembers(reply, at + STEP_BYTES, end),
    stayed: null,
  };
}

const EMPTY_BUFFER = Buffer.alloc(0);

function toLoggedBytes(logged: LoggedFact['logged']): Buffer {
  if (logged === undefined) return EMPTY_BUFFER;
  const entry = logged === 'parked' ? Buffer.of(PARKED) : Buffer.concat(logged.map(toEntry));
  const head = Buffer.allocUnsafe(LOGGED_HEAD_BYTES);
  head[0] = IS_LOGGED;
  head.writeUInt32BE(entry.length, 1);
  return Buffer.concat([head, entry]);
}

/** Encodes a step entry in the format of facts.lua; the inverse of `fromEntry`. */
function toEntry(decision: StepDecision): Buffer {
  const { link, aKind, bKind, outcome, reason, aKey, bKey, root, moved, stayed } = decision;
  const codes = [LINK_CODES[link], KIND_CODES[aKind], KIND_CODES[bKind], OUTCOME_CODES[outcome]];
  const step = [Buffer.from([...codes, REASON_CODES[reason]].join('')), aKey, bKey, root, toMembersBytes(moved)];
  if (link !== 'unlink') return Buffer.concat(step);
  return Buffer.concat([...step, stayed?.root ?? ZERO_KEY, toMembersBytes(stayed?.members ?? [])]);
}

function toMembersBytes(members: readonly Member[]): Buffer {
  const count = Buffer.allocUnsafe(2);
  count.writeUInt16BE(members.length);
  const each = members.flatMap(({ key, kind, linkedAt }) => [
    key,
    Buffer.from(KIND_CODES[kind]),
    toNumberBytes(linkedAt),
  ]);
  return Buffer.concat([count, ...each]);
}
