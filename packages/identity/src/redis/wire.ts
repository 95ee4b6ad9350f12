import type { IdentityKind } from '@playline/contracts';
import type { MovedIdentity, RefusalReason, StepDecision } from '../decisions.ts';
import type { Applied, Member, Override } from '../graph.ts';
import { IDENTITY_KEY_BYTES } from '../keyer.ts';
import type { GraphFact, GraphStep } from '../steps.ts';
import { MEMBER_BYTES, MOVED_BYTES } from './layout.ts';

// Letters that stand in Redis: they stay what they are when a list is reordered.
const KIND_LETTERS: Readonly<Record<IdentityKind, string>> = {
  anonymous: 'a',
  passport: 'p',
  steam: 's',
  epic: 'e',
  google: 'g',
  apple: 'l',
  discord: 'd',
  email: 'm',
  custom: 'c',
  untyped: 'u',
};
const LINK_LETTERS: Readonly<Record<GraphStep['link'], string>> = { identify: 'i', alias: 'a', same_id: 's' };
const OUTCOME_LETTERS: Readonly<Record<StepDecision['outcome'], string>> = {
  linked: 'l',
  unchanged: 'n',
  refused: 'r',
  ambiguous: 'm',
};
const REASON_LETTERS: Readonly<Record<RefusalReason | '', string>> = {
  '': '-',
  blocked: 'b',
  fenced: 'f',
  shared_device: 's',
  two_known_users: 'u',
  too_many_identities: 'i',
  too_many_anonymous_ids: 'a',
};

function invert<T extends string>(letters: Readonly<Record<T, string>>): (letter: number) => T {
  const words = new Map((Object.keys(letters) as T[]).map((word) => [letters[word].charCodeAt(0), word]));
  return (letter) => {
    const word = words.get(letter);
    if (word === undefined) throw new Error(`unknown letter ${letter} in the identity graph`);
    return word;
  };
}
const toKind = invert(KIND_LETTERS);
const toLink = invert(LINK_LETTERS);
const toOutcome = invert(OUTCOME_LETTERS);
const toReason = invert(REASON_LETTERS);

export function toKindLetters(kinds: readonly IdentityKind[]): string {
  return kinds.map((kind) => KIND_LETTERS[kind]).join('');
}

/** Offsets and times: six bytes reach the year 10,889. A time before 1970 counts as 1970. */
const NUMBER_BYTES = 6;

function toNumberBytes(...values: number[]): Buffer {
  const bytes = Buffer.allocUnsafe(values.length * NUMBER_BYTES);
  values.forEach((value, at) => {
    bytes.writeUIntBE(Math.max(0, value), at * NUMBER_BYTES, NUMBER_BYTES);
  });
  return bytes;
}

function toShortText(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.of(bytes.length), bytes]);
}

/** Blob of a fact: offset, received at, event time, environment, number of steps, then per step what `read_step` of apply.lua takes. */
export function toFactBlob(fact: GraphFact): Buffer {
  const steps = fact.steps.flatMap((step) => [
    Buffer.from(LINK_LETTERS[step.link] + toKindLetters([step.aKind, step.bKind])),
    Buffer.of(step.blocked ? 1 : 0),
    step.aKey,
    step.bKey,
    Buffer.of(step.otherKeys.length),
    ...step.otherKeys,
  ]);
  return Buffer.concat([
    toNumberBytes(fact.offset, fact.receivedAt, fact.eventTime),
    toShortText(fact.environmentId),
    Buffer.of(fact.steps.length),
    ...steps,
  ]);
}

/** Blob of a row of a rebuild: environment, identity key, root, kind and link time. */
export function toOverrideBlob(row: Override): Buffer {
  const kind = Buffer.from(KIND_LETTERS[row.kind]);
  return Buffer.concat([toShortText(row.environmentId), row.key, row.root, kind, toNumberBytes(row.linkedAt)]);
}

export function fromMember(key: Buffer, value: Buffer): Member {
  return { key, kind: toKind(value[0]!), linkedAt: value.readUIntBE(1, NUMBER_BYTES) };
}

/** An entry of a step: five letters (link, kinds, outcome, reason), three keys, the number of moved identities. */
const STEP_LETTERS = 5;
const STEP_BYTES = STEP_LETTERS + 3 * IDENTITY_KEY_BYTES + 2;
const PARKED = 'P'.charCodeAt(0);

/** Reads an entry of the outbox or of the script's reply. */
export function fromEntry(entry: Buffer): Applied {
  if (entry.length === 0) return { kind: 'done' };
  if (entry.length === 1 && entry[0] === PARKED) return { kind: 'parked' };
  const decisions: StepDecision[] = [];
  let at = 0;
  while (at < entry.length) {
    const step = entry.subarray(at);
    const moved = step.readUInt16BE(STEP_BYTES - 2);
    decisions.push(fromStep(step, moved));
    at += STEP_BYTES + moved * MOVED_BYTES;
  }
  return { kind: 'decided', decisions };
}

function fromStep(step: Buffer, moved: number): StepDecision {
  const keyAt = (at: number) => step.subarray(at, at + IDENTITY_KEY_BYTES);
  const identities: MovedIdentity[] = [];
  for (let index = 0; index < moved; index++) {
    const at = STEP_BYTES + index * MOVED_BYTES;
    const valueAt = at + IDENTITY_KEY_BYTES;
    identities.push(fromMember(keyAt(at), step.subarray(valueAt, valueAt + MEMBER_BYTES)));
  }
  return {
    link: toLink(step[0]!),
    aKind: toKind(step[1]!),
    bKind: toKind(step[2]!),
    outcome: toOutcome(step[3]!),
    reason: toReason(step[4]!),
    aKey: keyAt(STEP_LETTERS),
    bKey: keyAt(STEP_LETTERS + IDENTITY_KEY_BYTES),
    root: keyAt(STEP_LETTERS + 2 * IDENTITY_KEY_BYTES),
    // Redis gives a large hash in no order.
    moved: identities.sort((a, b) => Buffer.compare(a.key, b.key)),
  };
}
