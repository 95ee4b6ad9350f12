import { type KeyRecord, type KeyUse, MINUTE_MS, NO_USE } from '@playline/access-keys';
import { type ActiveAlert, advance, keyOfAlert, PROJECT_RULES, type ProjectRuleName } from '@playline/alerts';
import { describe, expect, it } from 'vitest';
import { type AlertCounts, NO_COUNTS } from '../reads/index.ts';
import { COUNTED_MINUTES, type Readings } from './readings.ts';
import { findAlerts } from './rules.ts';

const NOW_MS = Date.parse('2026-11-20T10:00:30Z');
const ID = 'demo-production';
const environment = { id: ID, name: 'production', kind: 'production', cap: null, limit: null, createdAt: 1 } as const;

/** @param counts accepted and rejected messages of each minute, the oldest first */
const toMinutes = (counts: readonly (readonly [accepted: number, rejected: number])[]) =>
  new Map([[ID, counts.map(([accepted, rejected], at) => ({ minuteAt: at * MINUTE_MS, accepted, rejected }))]]);
const steady = (accepted: number, rejected = 0) =>
  toMinutes(Array.from({ length: COUNTED_MINUTES + 1 }, () => [accepted, rejected] as const));
const toCounts = (changes: Partial<AlertCounts>) => new Map([[ID, { ...NO_COUNTS, ...changes }]]);
const toErasures = (ageMs: number) =>
  new Map([[ID, { environmentId: ID, count: 1, oldestMs: NOW_MS - ageMs, oldestId: 'an id' }]]);

function toKeys(key: Partial<KeyRecord>, use: Partial<KeyUse>): Readings['keys'] {
  const record = { kind: 'publishable', name: 'iOS 2.4', first4: 'abcd', last4: 'wxyz', revokedAt: null, endsAt: null };
  return new Map([[ID, [{ key: { ...record, ...key } as KeyRecord, use: { ...NO_USE, ...use } }]]]);
}

const QUIET: Readings = {
  nowMs: NOW_MS,
  environments: [{ ...environment, projectId: 'demo' }],
  minutes: steady(0),
  counts: new Map(),
  erasures: new Map(),
  deadLetters: { byEnvironment: new Map(), isComplete: true },
  keys: new Map(),
};

const namesOf = (readings: Partial<Readings>) =>
  [...findAlerts({ ...QUIET, ...readings })].flatMap(([rule, found]) =>
    (found ?? []).flatMap((each) => ('isUndecided' in each ? [] : [rule])),
  );

const toDeadLetters = (count: number, isComplete = true) => ({ byEnvironment: new Map([[ID, count]]), isComplete });
const endsAt = NOW_MS + 86_400_000;
const silentAfter = (minute: number) => toMinutes(Array.from({ length: 16 }, (_, at) => [at < minute ? 100 : 0, 0]));

const FOUND: readonly (readonly [ProjectRuleName, Partial<Readings>, string])[] = [
  [
    'MessagesRejected',
    { minutes: steady(95, 5), counts: toCounts({ stored: 950 }) },
    '5.0\u00a0% of the messages were rejected: 80 of 1,600 messages in 15 minutes.',
  ],
  [
    'NoMessages',
    { counts: toCounts({ 'same minutes of yesterday': 50, 'day before': 50 }) },
    'No message for 15 minutes; 50 in the same 15 minutes yesterday.',
  ],
  ['NoMessages', { counts: toCounts({ 'hour before': 200 }) }, 'No message for 15 minutes; 200 in the hour before.'],
  [
    'MessagesDelayed',
    { minutes: steady(100), counts: toCounts({ stored: 1_000, 'delay in ms': 181_000 }) },
    '1 % of the messages are stored after 3\u00a0min or later.',
  ],
  [
    'MessagesDelayed',
    { minutes: steady(120), counts: toCounts({ stored: 1_100 }) },
    '100 of 1,200 messages are not stored after five minutes.',
  ],
  ['MessagesDelayed', { minutes: silentAfter(3) }, 'None of 300 messages is stored after five minutes.'],
  ['DeadLettersOpen', { deadLetters: toDeadLetters(1) }, '1 dead letter is open.'],
  ['DeadLettersOpen', { deadLetters: toDeadLetters(1_000, false) }, 'At least 1,000 dead letters are open.'],
  ['ErasureLate', { erasures: toErasures(3 * 3_600_000) }, 'The oldest open erasure was requested 3\u00a0h ago.'],
  ['MintsPending', { counts: toCounts({ 'pending mints': 1 }) }, '1 mint request pending for more than 30 minutes.'],
  ['MintsFailed', { counts: toCounts({ 'failed mints': 3 }) }, '3 mint requests failed in the last hour.'],
  [
    'KeyEndsSoon',
    { keys: toKeys({ endsAt }, { messagesOfDay: 7 }) },
    'The publishable key iOS 2.4 ends on 2026-11-21, 7 messages in 24 hours.',
  ],
  [
    'EndedKeyInUse',
    { keys: toKeys({ revokedAt: 1, name: '' }, { refusalsOfHour: 7 }) },
    'The publishable key abcd…wxyz has ended, 7 refused requests in the last hour.',
  ],
];

describe('the rules about projects', () => {
  it.each(FOUND.map(([rule, readings, text]) => [rule, text, readings] as const))(
    '%s finds: %s',
    (rule, text, readings) => {
      const findings = findAlerts({ ...QUIET, ...readings });
      expect(namesOf(readings)).toEqual([rule]);
      expect(findings.get(rule)).toMatchObject([{ projectId: 'demo', environmentId: ID, text }]);
    },
  );

  it.each<[string, Partial<Readings>]>([
    ['few messages are rejected', { minutes: steady(0, 3) }],
    ['a small share of the messages is rejected', { minutes: steady(1_000, 50), counts: toCounts({ stored: 10_000 }) }],
    [
      'an environment without messages had few on the day before',
      { counts: toCounts({ 'same minutes of yesterday': 49, 'day before': 49 }) },
    ],
    [
      'messages stopped at a time at which none arrived yesterday',
      { counts: toCounts({ 'hour before': 900, 'day before': 9_000 }) },
    ],
    [
      'a development environment receives no messages',
      {
        environments: [{ ...environment, kind: 'development', projectId: 'demo' }],
        counts: toCounts({ 'same minutes of yesterday': 900 }),
      },
    ],
    [
      'messages of the last five minutes are not stored yet',
      { minutes: toMinutes(Array.from({ length: 16 }, (_, at) => [at < 10 ? 0 : 100, 0])) },
    ],
    ['few messages were slow', { minutes: steady(1), counts: toCounts({ stored: 10, 'delay in ms': 900_000 }) }],
    ['few messages of erased persons are not stored', { minutes: steady(20), counts: toCounts({ stored: 151 }) }],
    ['a small share is not stored', { minutes: steady(1_000), counts: toCounts({ stored: 9_500 }) }],
    ['an erasure is in progress', { erasures: toErasures(3_500_000) }],
    ['a single mint failed', { counts: toCounts({ 'failed mints': 2 }) }],
    ['an unused key ends soon', { keys: toKeys({ endsAt }, {}) }],
    ['an ended key is not used any more', { keys: toKeys({ revokedAt: 1 }, { messagesOfDay: 7 }) }],
  ])('find nothing if %s', (_, readings) => {
    expect(namesOf(readings)).toEqual([]);
  });

  it('NoMessages fires once in an outage of 30 hours, and clears when messages are accepted again', () => {
    const [hour, day, end] = [60, 1_440, 1_800];
    /** Messages from a minute to another one, of ten per minute before and after the outage. */
    const messages = (since: number, until: number) =>
      10 * (Math.max(0, Math.min(until, 0) - since) + Math.max(0, until - Math.max(since, end)));
    let active: readonly ActiveAlert[] = [];
    const changes: [minute: number, state: string][] = [];
    for (let now = 0; now < end + hour; now++) {
      const counts = toCounts({
        'same minutes of yesterday': messages(now - day - 15, now - day),
        'day before': messages(now - 2 * day, now - day),
        'hour before': messages(now - 75, now - 15),
        stored: messages(now - 15, now - 5),
      });
      const minutes = toMinutes(Array.from({ length: 16 }, (_, at) => [messages(now - 15 + at, now - 14 + at), 0]));
      const step = advance(active, findAlerts({ ...QUIET, minutes, counts }), now * MINUTE_MS);
      const changed = new Set([...step.removed, ...step.changed.map(keyOfAlert)]);
      active = [...active.filter((alert) => !changed.has(keyOfAlert(alert))), ...step.changed];
      for (const { state } of step.changes) changes.push([now, state]);
    }
    expect(changes).toEqual([
      [16, 'fired'],
      [end + 1, 'cleared'],
    ]);
  });

  it('DeadLettersOpen does not clear if only some dead letters were read', () => {
    const deadLetters = { byEnvironment: new Map(), isComplete: false };
    const found = findAlerts({ ...QUIET, deadLetters }).get('DeadLettersOpen');
    expect(found).toEqual([{ rule: 'DeadLettersOpen', environmentId: ID, isUndecided: true }]);
  });

  it('are not evaluated if a reading that they need has failed', () => {
    const failed = { minutes: null, counts: null, erasures: null, deadLetters: null, keys: null };
    const names = PROJECT_RULES.map(({ name }) => name);
    expect([...findAlerts({ ...QUIET, ...failed })]).toEqual(expect.arrayContaining(names.map((name) => [name, null])));
    expect(findAlerts(QUIET).size).toBe(names.length);
  });
});
