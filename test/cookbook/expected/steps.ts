import type { Fact, World } from '../world.ts';
import {
  compareLists,
  countPeople,
  DAY_MS,
  groupSorted,
  occurredIn,
  quantile,
  type RecipeParams,
  type Row,
  toDay,
  toMs,
} from './facts.ts';

function toSteps({ first = '', second = '', third = '' }: RecipeParams): string[] {
  return [first, second, third];
}

/** Counts the people who reached each step. */
function toFunnel(names: readonly string[], reached: readonly number[]): Row[] {
  const atLeast = (step: number) => reached.filter((steps) => steps >= step).length;
  return names.map((event, index) => {
    const people = atLeast(index + 1);
    return { step: index + 1, event, people, share: people / atLeast(1) };
  });
}

export function funnelInOrder(world: World, params: RecipeParams): Row[] {
  const names = toSteps(params);
  const windowMs = Number(params.seconds) * 1000;
  const owned = occurredIn(world, params).filter(({ person }) => person !== null);
  const reached = groupSorted(owned, ({ person }) => [person!] as const).map(([, facts]) => {
    const times = names.map((name) =>
      facts.filter(({ message }) => message.eventName === name).map(({ message }) => message.eventTime),
    );
    // Starts at every occurrence of the first step and continues with the earliest occurrence of each next step.
    const countSteps = (start: number) => {
      let [at, steps] = [start, 1];
      for (const later of times.slice(1)) {
        const next = Math.min(...later.filter((time) => time >= at && time <= start + windowMs));
        if (next === Number.POSITIVE_INFINITY) break;
        [at, steps] = [next, steps + 1];
      }
      return steps;
    };
    return Math.max(0, ...times[0]!.map(countSteps));
  });
  return toFunnel(names, reached);
}

export function funnelInAnyOrder(world: World, params: RecipeParams): Row[] {
  const names = toSteps(params);
  const owned = occurredIn(world, params).filter(({ person }) => person !== null);
  const reached = groupSorted(owned, ({ person }) => [person!] as const).map(([, facts]) => {
    const done = new Set(facts.map(({ message }) => message.eventName));
    const missing = names.findIndex((name) => !done.has(name));
    return missing === -1 ? names.length : missing;
  });
  return toFunnel(names, reached);
}

/** The event time as in the sessions view: at most a minute after the event was received. */
const cappedTimeOf = ({ message, receivedAt }: Fact) => Math.min(message.eventTime, receivedAt + 60_000);
const eventTimeOf = ({ message }: Fact) => message.eventTime;

/** Returns the ordered events of each session that started from `since` to `until` (exclusive). */
export function sessionsOf(
  facts: readonly Fact[],
  params: RecipeParams,
  timeOf: (fact: Fact) => number = eventTimeOf,
): Fact[][] {
  const inSession = facts.filter(({ message }) => (message.sessionId ?? '') !== '');
  return groupSorted(inSession, ({ message, person }) => [message.sessionId!, person ?? ''] as const)
    .map(([, facts]) => facts.toSorted((a, b) => compareLists([timeOf(a), a.idOrder], [timeOf(b), b.idOrder])))
    .filter(([first]) => timeOf(first!) >= toMs(params.since) && timeOf(first!) < toMs(params.until));
}

/** Returns the label of an event in a path. */
function toLabel({ message: { eventName, type, context } }: Fact): string {
  const route = (context?.pagePath ?? '')
    .split('/')
    .map((segment, index) => (index > 0 && /[0-9@%]/.test(segment) ? ':id' : segment))
    .join('/');
  return eventName || route || type;
}

export function paths(world: World, params: RecipeParams): Row[] {
  const sessions = sessionsOf(occurredIn(world, params, 1), params);
  return groupSorted(sessions, (facts) => facts.slice(0, Number(params.steps)).map(toLabel))
    .map(([path, group]) => ({ path, sessions: group.length, share: group.length / sessions.length }))
    .sort((a, b) => b.sessions - a.sessions)
    .slice(0, Number(params.paths));
}

export function sessions(world: World, params: RecipeParams): Row[] {
  // The view reads two days after the last one, because the clock of a client may be a day ahead.
  const until = toDay(toMs(params.until) + DAY_MS);
  const active = occurredIn(world, { ...params, until }, 1).filter(({ message }) => message.type !== 'alias');
  return groupSorted(sessionsOf(active, params, cappedTimeOf), ([first]) => [toDay(cappedTimeOf(first!))] as const).map(
    ([[day], daySessions]) => {
      const seconds = daySessions.map((facts) => {
        const leadMs = Math.max(...facts.map((fact) => eventTimeOf(fact) - cappedTimeOf(fact)));
        const startedAt = cappedTimeOf(facts[0]!);
        const endedAt = Math.max(startedAt, Math.max(...facts.map(eventTimeOf)) - leadMs);
        return Math.floor(endedAt / 1000) - Math.floor(startedAt / 1000);
      });
      return {
        day,
        sessions: daySessions.length,
        people: countPeople(daySessions.flat()),
        median_seconds: quantile(seconds, 0.5),
        events_per_session: daySessions.flat().length / daySessions.length,
      };
    },
  );
}
