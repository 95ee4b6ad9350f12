import type { World } from '../world.ts';
import {
  compareLists,
  countPeople,
  daysBetween,
  eventsOf,
  groupSorted,
  occurredIn,
  type RecipeParams,
  type Row,
  toDay,
  toMonday,
  toMonth,
  toMs,
} from './facts.ts';

const PERIODS: Readonly<Record<string, (day: string) => string>> = {
  day: (day) => day,
  week: toMonday,
  month: toMonth,
};

export function activePeople(world: World, params: RecipeParams): Row[] {
  const toPeriod = PERIODS[params.period ?? '']!;
  const owned = occurredIn(world, params).filter(({ person }) => person !== null);
  return groupSorted(owned, ({ message }) => [toPeriod(toDay(message.eventTime))] as const).map(
    ([[period], facts]) => ({ period, people: countPeople(facts) }),
  );
}

export function stickiness(world: World, params: RecipeParams): Row[] {
  const { since = '', until = '' } = params;
  const owned = occurredIn(world, params).filter(({ person }) => person !== null);
  return groupSorted(owned, ({ message }) => [toMonth(toDay(message.eventTime))] as const).map(([[month], facts]) => {
    const next = toMonth(toDay(toMs(month) + 31 * 24 * 60 * 60 * 1000));
    const days = daysBetween(since > month ? since : month, until < next ? until : next);
    const daily = groupSorted(facts, ({ message }) => [toDay(message.eventTime)] as const);
    const people = countPeople(facts);
    const averagePeople = daily.reduce((sum, [, dayFacts]) => sum + countPeople(dayFacts), 0) / days;
    return { month, people, days, average_daily_people: averagePeople, stickiness: averagePeople / people };
  });
}

/** Returns the time of each person's first event, ignoring test events. */
export function findFirstSeen(world: World): Map<string, number> {
  const first = new Map<string, number>();
  for (const { person, message } of eventsOf(world))
    if (person !== null) first.set(person, Math.min(first.get(person) ?? message.eventTime, message.eventTime));
  return first;
}

export function retention(world: World, params: RecipeParams): Row[] {
  const first = findFirstSeen(world);
  const [from, to] = [toMs(params.since), toMs(params.until)];
  const newcomers = occurredIn(world, params).flatMap((fact) => {
    const firstMs = first.get(fact.person ?? '') ?? Number.NaN;
    if (!(firstMs >= from && firstMs < to)) return [];
    const cohort = toMonday(toDay(firstMs));
    return [{ fact, cohort, week: daysBetween(cohort, toMonday(toDay(fact.message.eventTime))) / 7 }];
  });
  const rows = groupSorted(newcomers, ({ cohort, week }) => [cohort, week] as const).map(([[cohort, week], group]) => ({
    cohort,
    week,
    people: countPeople(group.map(({ fact }) => fact)),
  }));
  return rows.map((row) => {
    const firstWeek = rows.find(({ cohort, week }) => cohort === row.cohort && week === 0)!;
    return { ...row, share: row.people / firstWeek.people };
  });
}

export function firstTouch(world: World, params: RecipeParams): Row[] {
  const owned = eventsOf(world).filter(({ person }) => person !== null);
  const converted = new Set(
    owned
      .filter(({ message }) => message.eventName === params.event && message.eventTime >= toMs(params.since))
      .map(({ person }) => person),
  );
  const first = findFirstSeen(world);
  const touches = groupSorted(owned, ({ person }) => [person!] as const).flatMap(([[person], facts]) => {
    const firstMs = first.get(person)!;
    if (firstMs < toMs(params.since) || firstMs >= toMs(params.until)) return [];
    const pageEvents = facts.filter(({ message }) => message.type === 'page');
    const [touch] = (pageEvents.length > 0 ? pageEvents : facts).toSorted((a, b) =>
      compareLists([a.message.eventTime, a.receivedAt], [b.message.eventTime, b.receivedAt]),
    );
    const { pageUrl, pageReferrer } = touch!.message.context ?? {};
    const campaign = (pageUrl && new URL(pageUrl).searchParams.get('utm_campaign')) || '';
    const referrer = pageReferrer ? new URL(pageReferrer).hostname.replace(/^www\./, '') : '';
    return [{ person, key: [campaign, referrer, touch!.message.surface ?? ''] as const }];
  });
  return groupSorted(touches, ({ key }) => key)
    .map(([[campaign, referrer, surface], group]) => {
      const counts = { people: group.length, converted: group.filter(({ person }) => converted.has(person)).length };
      return { campaign, referrer_domain: referrer, surface, ...counts, share: counts.converted / counts.people };
    })
    .sort((a, b) => b.people - a.people);
}
