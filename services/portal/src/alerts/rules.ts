/** Evaluates the rules about projects, whose texts are in packages/alerts. */
import type { EnvironmentMinute } from '@playline/access-keys';
import type { Finding, Findings, ProjectRuleName, Undecided } from '@playline/alerts';
import { duration, number, percentage } from '../frame/format.ts';
import { NO_COUNTS } from '../reads/index.ts';
import type { KeyReading, Readings } from './readings.ts';

type Environment = Readings['environments'][number];
type Found = Pick<Finding, 'value' | 'text'> | 'undecided' | null;
/**
 * Returns what a rule finds in an environment, null for nothing. Returns null instead of a function if a reading that the
 * rule needs has failed.
 */
type Rule = (readings: Readings) => ((environment: Environment) => Found) | null;

/** A share that a single client version with a few percent of the players can cause. */
const REJECTED_SHARE_MIN = 0.05;
/** Fewer can come from one developer. */
const REJECTED_MIN = 50;
/** With this many messages in the same 15 minutes, silence by chance is practically impossible. */
const USUAL_MIN = 50;
/** The hour before has four times as many minutes. */
const HOUR_BEFORE_MIN = 4 * USUAL_MIN;
/** Messages are queryable within seconds. Two minutes is far more than a restart of a writer takes. */
const DELAY_MS_MAX = 120_000;
/** Below, a quantile depends on single messages. */
const STORED_MIN = 100;
/** Accepted messages of which none is stored after five minutes. Fewer may all belong to erased persons. */
const ACCEPTED_MIN = 10;
/** One blocked partition of twelve is missing 8 %. Messages of erased persons are not stored. */
const STORED_SHARE_MIN = 0.95;
const MISSING_MIN = 50;
/** Minutes that are too recent to expect all their messages to be stored. */
const RECENT_MINUTES = 5;
/** Erasures take less than a minute; an hour includes a restart of all stores. */
const ERASURE_MS_MAX = 3_600_000;
/** Single failures are usually errors in requests. */
const FAILED_MINTS_MIN = 3;

const sum = (minutes: readonly EnvironmentMinute[], name: 'accepted' | 'rejected') =>
  minutes.reduce((total, minute) => total + minute[name], 0);

const RULES: Readonly<Record<ProjectRuleName, Rule>> = {
  MessagesRejected: ({ minutes }) =>
    minutes &&
    (({ id }) => {
      const all = minutes.get(id) ?? [];
      const [accepted, rejected] = [sum(all, 'accepted'), sum(all, 'rejected')];
      const share = rejected / (accepted + rejected);
      if (rejected < REJECTED_MIN || share < REJECTED_SHARE_MIN) return null;
      const counts = `${number(rejected)} of ${number(accepted + rejected)} messages`;
      const text = `${percentage(rejected, accepted + rejected)} of the messages were rejected: ${counts} in 15 minutes.`;
      return { value: share, text };
    }),

  NoMessages: ({ minutes, counts }) =>
    minutes &&
    counts &&
    (({ id, kind }) => {
      if (kind !== 'production' || sum(minutes.get(id) ?? [], 'accepted') > 0) return null;
      const {
        'same minutes of yesterday': usual,
        'day before': dayBefore,
        'hour before': hourBefore,
      } = counts.get(id) ?? NO_COUNTS;
      if (usual >= USUAL_MIN)
        return { value: usual, text: `No message for 15 minutes; ${number(usual)} in the same 15 minutes yesterday.` };
      // Without messages on the day before, the usual number at this time is not known.
      // A firing alert clears only when messages are accepted again, although its reference moves during a long outage.
      if (dayBefore > 0 || hourBefore < HOUR_BEFORE_MIN) return 'undecided';
      return { value: hourBefore, text: `No message for 15 minutes; ${number(hourBefore)} in the hour before.` };
    }),

  MessagesDelayed: ({ minutes, counts }) =>
    minutes &&
    counts &&
    (({ id }) => {
      const { stored, 'delay in ms': delayMs } = counts.get(id) ?? NO_COUNTS;
      const accepted = sum((minutes.get(id) ?? []).slice(0, -RECENT_MINUTES - 1), 'accepted');
      if (accepted >= ACCEPTED_MIN && stored === 0)
        return { value: accepted, text: `None of ${number(accepted)} messages is stored after five minutes.` };
      const missing = accepted - stored;
      if (missing >= MISSING_MIN && stored < STORED_SHARE_MIN * accepted) {
        const text = `${number(missing)} of ${number(accepted)} messages are not stored after five minutes.`;
        return { value: missing, text };
      }
      if (stored < STORED_MIN || delayMs <= DELAY_MS_MAX) return null;
      return { value: delayMs / 1000, text: `1 % of the messages are stored after ${duration(delayMs)} or later.` };
    }),

  DeadLettersOpen: ({ deadLetters }) =>
    deadLetters &&
    (({ id }) => {
      const open = deadLetters.byEnvironment.get(id) ?? 0;
      if (open === 0) return deadLetters.isComplete ? null : 'undecided';
      const count = `${deadLetters.isComplete ? '' : 'At least '}${number(open)}`;
      return { value: open, text: `${count} ${open === 1 ? 'dead letter is' : 'dead letters are'} open.` };
    }),

  ErasureLate: ({ erasures, nowMs }) =>
    erasures &&
    (({ id }) => {
      const open = erasures.get(id);
      if (open === undefined || nowMs - open.oldestMs <= ERASURE_MS_MAX) return null;
      const age = nowMs - open.oldestMs;
      return { value: age / 1000, text: `The oldest open erasure was requested ${duration(age)} ago.` };
    }),

  MintsPending: countRule('pending mints', 1, (count) => `${count} pending for more than 30 minutes.`),
  MintsFailed: countRule('failed mints', FAILED_MINTS_MIN, (count) => `${count} failed in the last hour.`),

  KeyEndsSoon: keyRule(
    ({ key: { revokedAt }, use }) => revokedAt === null && use.usesOfHour + use.messagesOfDay > 0,
    ({ key: { endsAt }, use }) =>
      `ends on ${new Date(endsAt ?? 0).toISOString().slice(0, 10)}, ${number(use.messagesOfDay)} messages in 24 hours`,
  ),
  EndedKeyInUse: keyRule(
    ({ key: { revokedAt }, use }) => revokedAt !== null && use.refusalsOfHour > 0,
    ({ use }) => `has ended, ${number(use.refusalsOfHour)} refused requests in the last hour`,
  ),
};

function countRule(part: 'pending mints' | 'failed mints', min: number, toText: (count: string) => string): Rule {
  return ({ counts }) =>
    counts &&
    (({ id }) => {
      const value = counts.get(id)?.[part] ?? 0;
      return value < min
        ? null
        : { value, text: toText(`${number(value)} mint ${value === 1 ? 'request' : 'requests'}`) };
    });
}

/** Names one key; the page Keys shows all. */
function keyRule(applies: (reading: KeyReading) => boolean, toText: (reading: KeyReading) => string): Rule {
  return ({ keys }) =>
    keys &&
    (({ id }) => {
      const [first, ...others] = (keys.get(id) ?? []).filter(applies);
      if (first === undefined) return null;
      const { kind, name, first4, last4 } = first.key;
      const more = others.length === 0 ? '' : ` ${number(others.length)} more ${others.length === 1 ? 'key' : 'keys'}.`;
      const text = `The ${kind} key ${name || `${first4}…${last4}`} ${toText(first)}.${more}`;
      return { value: 1 + others.length, text };
    });
}

export function findAlerts(readings: Readings): Findings {
  const rules = Object.entries(RULES) as [ProjectRuleName, Rule][];
  return new Map(
    rules.map(([rule, prepare]) => {
      const find = prepare(readings);
      return [rule, find && readings.environments.flatMap((environment) => toFinding(rule, environment, find))];
    }),
  );
}

function toFinding(
  rule: ProjectRuleName,
  environment: Environment,
  find: (environment: Environment) => Found,
): (Finding | Undecided)[] {
  const found = find(environment);
  const scope = { rule, environmentId: environment.id };
  if (found === 'undecided') return [{ ...scope, isUndecided: true }];
  return found === null ? [] : [{ ...scope, projectId: environment.projectId, ...found }];
}
