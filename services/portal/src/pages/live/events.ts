/** The Live page's event stream, with the same filter. Ignores `last-event-id`, because events are not stored. */
import { type Action, isSessionOf, mayDo } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { pageNotFound, scopeOf, signedInOf } from '../../frame/scope.ts';
import { claimantOf, type Release } from '../../frame/shares.ts';
import { EVENT_STREAM_TYPE, parseFilter, sendEvents } from '../../live/index.ts';
import type { PagesParts } from '../index.ts';

type Parts = Pick<PagesParts, 'accounts' | 'projects' | 'live' | 'sessions' | 'frame'>;

const HEADERS = ['cache-control', 'no-store', 'x-content-type-options', 'nosniff', 'x-accel-buffering', 'no'];

const ACCOUNT_STREAMS_MAX = 8;

export function createLiveEventsPage(parts: Parts): PortalPage {
  const open = new Map<string, number>();
  return {
    path: '/projects/:project/environments/:environment/live/events',
    access: 'live.read',
    show: async (visit) => {
      const [{ environment }, { account }] = [scopeOf(visit), signedInOf(visit)];
      // A client that sends a HEAD request never reads the stream.
      if (visit.exchange.request.method === 'HEAD') throw pageNotFound();
      const streams = open.get(account.id) ?? 0;
      if (streams >= ACCOUNT_STREAMS_MAX)
        throw new PublicError('TOO_MANY_REQUESTS_ERROR', {
          message: `You have ${ACCOUNT_STREAMS_MAX} Live pages open. Close a page to open another.`,
          retryAfterS: 5,
        });
      const masks = isMasked(visit);
      const filter = parseFilter(visit.query, !masks);
      const isStillAllowed = createPermissionCheck(parts, visit);
      // Incremented before the first await, because several tabs may open at the same time.
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
        const remaining = (open.get(account.id) ?? 1) - 1;
        if (remaining === 0) open.delete(account.id);
        else open.set(account.id, remaining);
      }
      return { kind: 'answered' };
    },
  };
}

export const isMasked = (visit: Visit): boolean => !visit.mayDo('people.raw-ids');

/**
 * Checks that the session, the account's permissions (including raw ids) and the environment have not changed since the
 * stream started. The check does not refresh the session, so the session can still expire.
 */
function createPermissionCheck({ accounts, projects, sessions }: Parts, visit: Visit) {
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
