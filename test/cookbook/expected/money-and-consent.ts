import type { World } from '../world.ts';
import { countPeople, groupSorted, occurredIn, type RecipeParams, type Row, toDay, toMs, toTime } from './facts.ts';

export function revenue(world: World, params: RecipeParams): Row[] {
  const purchases = occurredIn(world, params).flatMap((fact) => {
    const { price, currency } = (fact.message.properties ?? {}) as { price?: number; currency?: string };
    const isPurchase = fact.message.eventName === params.event && price !== undefined;
    return isPurchase ? [{ fact, price, currency: currency ?? '' }] : [];
  });
  return groupSorted(purchases, ({ fact, currency }) => [toDay(fact.message.eventTime), currency] as const).map(
    ([[day, currency], group]) => {
      const payers = countPeople(group.map(({ fact }) => fact));
      const sum = group.reduce((cents, { price }) => cents + Math.round(price * 100), 0) / 100;
      return { day, currency, purchases: group.length, payers, revenue: sum, revenue_per_payer: sum / payers };
    },
  );
}

export function consentShares({ consents }: World): Row[] {
  const latest = new Map(consents.map(({ identityKey, status }) => [identityKey.toString('hex'), status]));
  return groupSorted([...latest.values()], (status) => [status] as const).map(([[status], group]) => ({
    status,
    identities: group.length,
    share: group.length / latest.size,
  }));
}

export function personTimeline({ facts }: World, params: RecipeParams): Row[] {
  const events = facts.filter(({ person, message: { eventTime } }) => {
    return person === params.person && eventTime >= toMs(params.since) && eventTime < toMs(params.until);
  });
  return groupSorted(events, ({ message, idOrder }) => [message.eventTime, idOrder] as const).flatMap(([, group]) =>
    group.map(({ message, id }) => ({
      event_time: toTime(message.eventTime),
      type: message.type,
      event_name: message.eventName ?? '',
      test: message.test ?? false,
      surface: message.surface ?? '',
      session_id: message.sessionId ?? '',
      page_path: message.context?.pagePath ?? '',
      properties: message.properties === undefined ? '' : JSON.stringify(message.properties),
      message_id: id,
    })),
  );
}
