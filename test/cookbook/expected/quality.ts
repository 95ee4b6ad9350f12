import type { World } from '../world.ts';
import {
  groupSorted,
  occurredIn,
  quantile,
  type RecipeParams,
  type Row,
  receivedIn,
  toDay,
  toMs,
  toTime,
} from './facts.ts';

const HOUR_MS = 60 * 60 * 1000;

function rejectedIn({ rejections }: World, { since, until }: RecipeParams): World['rejections'] {
  return rejections.filter(({ receivedAt }) => receivedAt >= toMs(since) && receivedAt < toMs(until));
}

export function errorRates(world: World, params: RecipeParams): Row[] {
  const events = receivedIn(world, params).map(({ message: { context } }) => ({
    error: 0,
    client: [context?.library ?? '', context?.libraryVersion ?? ''] as const,
  }));
  const errors = rejectedIn(world, params).map(({ library, libraryVersion }) => ({
    error: 1,
    client: [library, libraryVersion] as const,
  }));
  const rateOf = ({ errors_per_thousand: rate }: { errors_per_thousand: number | null }) =>
    rate ?? Number.POSITIVE_INFINITY;
  return groupSorted([...events, ...errors], ({ client }) => client)
    .map(([[library, version], group]) => {
      const errorCount = group.filter(({ error }) => error === 1).length;
      const eventCount = group.length - errorCount;
      const rate = eventCount === 0 ? null : (1000 * errorCount) / eventCount;
      return { library, library_version: version, events: eventCount, errors: errorCount, errors_per_thousand: rate };
    })
    .sort((a, b) => (rateOf(a) === rateOf(b) ? 0 : rateOf(b) - rateOf(a)));
}

export function rejections(world: World, params: RecipeParams): Row[] {
  return groupSorted(
    rejectedIn(world, params),
    ({ code, field, library, libraryVersion }) => [code, field, library, libraryVersion] as const,
  )
    .map(([[code, field, library, version], group]) => {
      const times = group.map(({ receivedAt }) => receivedAt);
      return {
        code,
        field,
        library,
        library_version: version,
        errors: group.length,
        requests: new Set(group.map(({ traceId }) => traceId)).size,
        first_at: toTime(Math.min(...times)),
        last_at: toTime(Math.max(...times)),
      };
    })
    .sort((a, b) => b.errors - a.errors)
    .slice(0, 200);
}

export function lateEvents(world: World, params: RecipeParams): Row[] {
  return groupSorted(receivedIn(world, params), ({ receivedAt }) => [toDay(receivedAt)] as const).map(
    ([[day], facts]) => {
      const lateBy = (ms: number) =>
        facts.filter(({ message, receivedAt }) => receivedAt - message.eventTime > ms).length;
      const seconds = facts.map(
        ({ message, receivedAt }) => Math.floor(receivedAt / 1000) - Math.floor(message.eventTime / 1000),
      );
      return {
        receipt_day: day,
        events: facts.length,
        over_one_hour_late: lateBy(HOUR_MS),
        over_one_day_late: lateBy(24 * HOUR_MS),
        in_future: facts.filter(({ message, receivedAt }) => message.eventTime > receivedAt).length,
        delay_seconds_p99: quantile(seconds, 0.99),
      };
    },
  );
}

export function conflictingIds(world: World, params: RecipeParams): Row[] {
  const toSortedSet = (texts: readonly string[]) => [...new Set(texts)].sort();
  return groupSorted(occurredIn(world, params), ({ idOrder }) => [idOrder] as const)
    .filter(([, group]) => group.length > 1)
    .map(([, group]) => {
      const times = group.map(({ message }) => message.eventTime);
      return {
        message_id: group[0]!.id,
        messages: group.length,
        owners: new Set(group.flatMap(({ identity }) => identity ?? [])).size,
        names: toSortedSet(group.map(({ message }) => message.eventName || message.type)),
        clients: toSortedSet(
          group.map(({ message: { context } }) => `${context?.library ?? ''} ${context?.libraryVersion ?? ''}`),
        ),
        first_at: toTime(Math.min(...times)),
        last_at: toTime(Math.max(...times)),
      };
    })
    .sort((a, b) => b.messages - a.messages)
    .slice(0, Number(params.ids));
}
