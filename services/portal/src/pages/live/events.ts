/** The event stream for the Live page, filtered like the page. Ignores `last-event-id`: events are not stored. */
import { type Action, isSessionOf, mayDo } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import { claimantOf, type Release } from '../../frame/limiters.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { pageNotFound, scopeOf, signedInOf } from '../../frame/scope.ts';
import { EVENT_STREAM_TYPE, parseFilter, sendEvents } from '../../live/index.ts';
import type { PageParts } from '../index.ts';

type Parts = Pick<PageParts, 'accounts' | 'projects' | 'live' | 'sessions' | 'frame'>;

const HEADERS = ['cache-control', 'no-store', 'x-content-type-options', 'nosniff', 'x-accel-buffering', 'no'];

const ACCOUNT_STREAMS_MAX = 8;

export function createLiveEventsPage(parts: Parts): PortalPage {
  const streamCounts = new Map<string, number>();
  return {
    path: '/projects/:project/environments/:environment/live/events',
    access: 'live.read',
    show: async (visit) => {
      const [{ environment }, { account }] = [scopeOf(visit), signedInOf(visit)];
      // No client reads the stream after a HEAD request.
      if (visit.exchange.request.method === 'HEAD') throw pageNotFound();
      const streams = streamCounts.get(account.id) ?? 0;
      if (streams >= ACCOUNT_STREAMS_MAX)
        throw new PublicError('TOO_MANY_REQUESTS_ERROR', {
          message: `You have ${ACCOUNT_STREAMS_MAX} Live pages open. Close a page to open another.`,
          retryAfterS: 5,
        });
      const shouldMask = shouldMaskIds(visit);
      const filter = parseFilter(visit.query, !shouldMask);
      const isStillAllowed = createPermissionCheck(parts, visit);
      // Incremented before the first await, because several tabs may open at the same time.
      streamCounts.set(account.id, streams + 1);
      let release: Release = () => {};
      try {
        release = await parts.frame.limiters.streams.acquire(claimantOf(visit));
        const subscriber = parts.live.subscribe({ environmentId: environment.id, filter, shouldMask, isStillAllowed });
        const stream = visit.exchange.openStream(EVENT_STREAM_TYPE, HEADERS);
        if (stream === null) subscriber.close();
        else await sendEvents(subscriber, stream);
      } finally {
        release();
        const remaining = (streamCounts.get(account.id) ?? 1) - 1;
        if (remaining === 0) streamCounts.delete(account.id);
        else streamCounts.set(account.id, remaining);
      }
      return { kind: 'handled' };
    },
  };
}

export const shouldMaskIds = (visit: Visit): boolean => !visit.can('people.raw-ids');

/**
 * Checks that the session, the account's permissions (including raw ids) and the environment are unchanged since the
 * stream started. The check does not renew the session, so the session can still expire.
 */
function createPermissionCheck({ accounts, projects, sessions }: Parts, visit: Visit) {
  const { project: visited, environment } = scopeOf(visit);
  const { account: visitor, session } = signedInOf(visit);
  const shouldMask = shouldMaskIds(visit);
  return async (): Promise<boolean> => {
    const [allAccounts, allProjects, active] = await Promise.all([
      accounts.all(),
      projects.all(),
      sessions.list(visitor.id),
    ]);
    const account = allAccounts.find((each) => isSessionOf(session, each));
    const project = allProjects.find(({ id }) => id === visited.id);
    if (account === undefined || project === undefined || !active.some(({ id }) => id === session.id)) return false;
    const exists = project.environments.some(({ id, name }) => id === environment.id && name === environment.name);
    const can = (action: Action) => mayDo({ account, action, projectId: visited.id });
    return exists && can('live.read') && can('people.raw-ids') !== shouldMask;
  };
}
