import type { Random } from '@playline/testkit/random';

/** A message in a body. */
export interface Message {
  readonly messageId: string;
  readonly [field: string]: unknown;
}

/** Few, so that the same identities recur on all partitions. */
const PERSONS = 40;
const IDENTIFY_SHARE = 0.1;
const ALIAS_SHARE = 0.05;
const NOBODY_SHARE = 0.1;
/** Longest filler. Half of it is about the average of real clients. */
const FILL_CHARACTERS = 1_000;

export function uuidOf(random: Random): string {
  const digits = random.hex(32);
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-a${digits.slice(17, 20)}-${digits.slice(20)}`;
}

/**
 * A message with or without an owner: mostly events, and now and then a link of two identities.
 * @param fillMax length of the longest filler of an event
 */
export function createMessage(random: Random, fillMax = FILL_CHARACTERS): Message {
  const person = random.integer(1, PERSONS);
  const base = {
    messageId: uuidOf(random),
    eventTimestamp: new Date().toISOString(),
    sessionId: `session-${person}`,
    surface: 'web',
  };
  const anonymousId = `visitor-${person}-${random.integer(1, 3)}`;
  const user = { userId: `player-${person}`, identityType: 'passport' };
  if (random.chance(IDENTIFY_SHARE)) return { ...base, type: 'identify', anonymousId, ...user };
  if (random.chance(ALIAS_SHARE)) {
    const from = { fromId: `steam-${person}`, fromType: 'steam' };
    return { ...base, type: 'alias', ...from, toId: user.userId, toType: user.identityType };
  }
  const owner = random.chance(NOBODY_SHARE) ? {} : random.chance(0.5) ? { anonymousId } : user;
  const properties = { level: random.integer(1, 99), fill: 'x'.repeat(random.integer(0, fillMax)) };
  return { ...base, ...owner, type: 'track', eventName: random.pick(['level_started', 'level_ended']), properties };
}
