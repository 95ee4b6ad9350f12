import type { Fact, World } from '../world.ts';
import {
  compareLists,
  groupSorted,
  occurredIn,
  peopleOf,
  quantile,
  type RecipeParams,
  type Row,
  toDay,
  toMs,
} from './facts-of.ts';

function stepsOf({ first = '', second = '', third = '' }: RecipeParams): string[] {
  return [first, second, third];
}

/** Counts how many people reached at least each step. */
function toFunnel(names: readonly string[], reached: readonly number[]): Row[] {
  const atLeast = (step: number) => reached.filter((steps) => steps >= step).length;
  return names.map((event, index) => {
    const people = atLeast(index + 1);
    return { step: index + 1, event, people, share: people / atLeast(1) };
  });
}

export function funnelInOrder(world: World, params: RecipeParams): Row[] {
  const names = stepsOf(params);
  const windowMs = Number(params.seconds) * 1000;
  const owned = occurredIn(world, params).filter(({ person }) => person !== null);
  const reached = groupSorted(owned, ({ person }) => [person!] as const).map(([, facts]) => {
    const times = names.map((name) =>
      facts.filter(({ message }) => message.eventName === name).map(({ message }) => message.eventTime),
    );
    // Tries every occurrence of the first step, and after it the earliest occurrence of each next step.
    const reach = (begin: number) => {
      let [at, steps] = [begin, 1];
      for (const later of times.slice(1)) {
        const next = Math.min(...later.filter((time) => time >= at && time <= begin + windowMs));
        if (next === Number.POSITIVE_INFINITY) break;
        [at, steps] = [next, steps + 1];
      }
      return steps;
    };
    return Math.max(0, ...times[0]!.map(reach));
  });
  return toFunnel(names, reached);
}

export function funnelInAnyOrder(world: World, params: RecipeParams): Row[] {
  const names = stepsOf(params);
  const owned = occurredIn(world, params).filter(({ person }) => person !== null);
  const reached = groupSorted(owned, ({ person }) => [person!] as const).map(([, facts]) => {
    const done = new Set(facts.map(({ message }) => message.eventName));
    const missing = names.findIndex((name) => !done.has(name));
    return missing === -1 ? names.length : missing;
  });
  return toFunnel(names, reached);
}

/** The time of an event in the view of sessions: at most a minute after it was received. */
const seenAt = ({ message, receivedAt }: Fact) => Math.min(message.eventTime, receivedAt + 60_000);
const happenedAt = ({ message }: Fact) => message.eventTime;

/** The events, in order, of each session of a person that began in the span. */
export function sessionsOf(world: World, params: RecipeParams, timeOf: (fact: Fact) => number = happenedAt): Fact[][] {
  const inSession = occurredIn(world, params, 1).filter(({ message }) => (message.sessionId ?? '') !== '');
  return groupSorted(inSession, ({ message, person }) => [message.sessionId!, person ?? ''] as const)
    .map(([, facts]) => facts.toSorted((a, b) => compareLists([timeOf(a), a.idOrder], [timeOf(b), b.idOrder])))
    .filter(([first]) => timeOf(first!) >= toMs(params.since) && timeOf(first!) < toMs(params.until));
}

/** The name of an event in a path. */
function toThing({ message: { eventName, type, context } }: Fact): string {
  const route = (context?.pagePath ?? '')
    .split('/')
    .map((segment, index) => (index > 0 && /[0-9@%]/.test(segment) ? ':id' : segment))
    .join('/');
  return eventName || route || type;
}

export function paths(world: World, params: RecipeParams): Row[] {
  const sessions = sessionsOf(world, params);
  return groupSorted(sessions, (facts) => facts.slice(0, Number(params.steps)).map(toThing))
    .map(([path, group]) => ({ path, sessions: group.length, share: group.length / sessions.length }))
    .sort((a, b) => b.sessions - a.sessions)
    .slice(0, Number(params.paths));
}

export function sessions(world: World, params: RecipeParams): Row[] {
  return groupSorted(sessionsOf(world, params, seenAt), ([first]) => [toDay(seenAt(first!))] as const).map(
    ([[day], ofDay]) => {
      const seconds = ofDay.map((facts) => {
        const [from, to] = [facts[0]!, facts.at(-1)!].map((fact) => Math.floor(seenAt(fact) / 1000));
        return to! - from!;
      });
      return {
        day,
        sessions: ofDay.length,
        people: peopleOf(ofDay.flat()),
        seconds_of_half: quantile(seconds, 0.5),
        events_of_one: ofDay.flat().length / ofDay.length,
      };
    },
  );
}
