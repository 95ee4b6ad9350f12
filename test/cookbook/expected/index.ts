import type { World } from '../world.ts';
import type { RecipeParams, Row } from './facts.ts';
import { consentShares, personTimeline, revenue } from './money-and-consent.ts';
import { activePeople, firstTouch, retention, stickiness } from './people.ts';
import { conflictingIds, errorRates, lateEvents, rejections } from './quality.ts';
import { funnelInAnyOrder, funnelInOrder, paths, sessions } from './steps.ts';

export type { RecipeParams, Row } from './facts.ts';

/** Functions that compute the expected rows of each recipe, in order, without SQL. */
export const EXPECTED_ROWS: Readonly<Record<string, (world: World, params: RecipeParams) => Row[]>> = {
  '01-active-people.sql': activePeople,
  '02-stickiness.sql': stickiness,
  '03-retention.sql': retention,
  '04-funnel-in-order.sql': funnelInOrder,
  '05-funnel-in-any-order.sql': funnelInAnyOrder,
  '06-paths.sql': paths,
  '07-sessions.sql': sessions,
  '08-revenue.sql': revenue,
  '09-revenue-of-safe-properties.sql': revenue,
  '10-first-touch.sql': firstTouch,
  '11-person-timeline.sql': personTimeline,
  '12-consent-shares.sql': consentShares,
  '13-error-rates-by-client-version.sql': errorRates,
  '14-rejections.sql': rejections,
  '15-late-events.sql': lateEvents,
  '16-conflicting-ids.sql': conflictingIds,
};
