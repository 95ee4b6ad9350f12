/** The event stream of the Live page, with the same filter. `last-event-id` has no effect, because nothing is stored. */
import { type Action, isSessionOf, mayDo } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { pageNotFound, scopeOf, signedInOf } from '../../frame/scope.ts';
import { claimantOf, type Release } from '../../frame/shares.ts';
import { EVENT_STREAM_TYPE, parseFilter, sendEvents } from '../../live/index.ts';
import type { PagesParts } from '../index.ts';

type Parts = Pick<PagesParts, 'accounts' | 'projects' | 'live' | 'sessions' | 'frame'>;

/** Proxies must not buffer events. */
const HEADERS = ['cache-control', 'no-store', 'x-content-type-options', 'nosniff', 'x-accel-buffering', 'no'];

/** Browser tabs of one person. */
const STREAMS_OF_ACCOUNT_MAX = 8;

export function createLiveEventsPage(parts: Parts): PortalPage {
  /** Number of open streams by account id. */
  const open = new Map<string, number>();
  return {
    path: '/projects/:project/environments/:environment/live/events',
    access: 'live.read',
    show: async (visit) => {
      const [{ environment }, { account }] = [scopeOf(visit), signedInOf(visit)];
      // No client reads the events of a HEAD request.
      if (visit.exchange.request.method === 'HEAD') throw pageNotFound();
      const streams = open.get(account.id) ?? 0;
      if (streams >= STREAMS_OF_ACCOUNT_MAX)
        throw new PublicError('TOO_MANY_REQUESTS_ERROR', {
          message: `You have ${STREAMS_OF_ACCOUNT_MAX} live pages open. Close one.`,
          retryAfterS: 5,
        });
      const masks = isMasked(visit);
      const filter = parseFilter(visit.query, !masks);
      const isStillAllowed = createPermission(parts, visit);
      // Counted before the first await, so that tabs opened together do not all see the same count.
      open.set(account.id, streams + 1);
      let release: Release = () => {};
      try {
        release = await parts.frame.shares.streams.acquire(claimantOf(visit));
        const subscriber = parts.live.subscribe({ environmentId: environment.id, filter, masks, isStillAllowed });
        const stream = visit.exchange.openStream(EVENT_STREAM_TYPE, HEADERS);
        if (stream === null) subscriber.close();
        else await sendEvents(subscriber, stream);
      } finally {
        release();
        const left = (open.get(account.id) ?? 1) - 1;
        if (left === 0) open.delete(account.id);
        else open.set(account.id, left);
      }
      return { kind: 'answered' };
    },
  };
}

export const isMasked = (visit: Visit): boolean => !visit.mayDo('people.raw-ids');

/**
 * Whether session, account, rights (raw ids included) and environment are unchanged since the stream began. The check
 * does not count as use of the session, so the session can still become idle.
 */
function createPermission({ accounts, projects, sessions }: Parts, visit: Visit) {
  const {
    project: { id: projectId },
    environment,
  } = scopeOf(visit);
  const {
    account: { id: accountId },
    session,
  } = signedInOf(visit);
  const masked = isMasked(visit);
  return async (): Promise<boolean> => {
    const [allAccounts, allProjects, open] = await Promise.all([
      accounts.all(),
      projects.all(),
      sessions.list(accountId),
    ]);
    const account = allAccounts.find((each) => isSessionOf(session, each));
    const project = allProjects.find(({ id }) => id === projectId);
    if (account === undefined || project === undefined || !open.some(({ id }) => id === session.id)) return false;
    const exists = project.environments.some(({ id, name }) => id === environment.id && name === environment.name);
    const may = (action: Action) => mayDo({ account, action, projectId });
    return exists && may('live.read') && may('people.raw-ids') !== masked;
  };
}
