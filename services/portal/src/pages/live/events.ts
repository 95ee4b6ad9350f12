import type { AccountRecord, ProjectEnvironment, Sessions } from '@playline/access-keys';
import { isSessionOf, mayDo } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import { pageNotFound } from '../../frame/not-found.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf, signedInOf } from '../../frame/scope.ts';
import { claimantOf, type PortalShares, type Release } from '../../frame/shares.ts';
import { EVENT_STREAM_TYPE, parseFilter, sendEvents } from '../../live/index.ts';
import type { PortalParts } from '../../portal-parts.ts';

export type LiveEventsParts = Pick<PortalParts, 'accounts' | 'projects' | 'live'> & {
  readonly sessions: Pick<Sessions, 'list'>;
  readonly frame: { readonly shares: Pick<PortalShares, 'streams'> };
};

/** No proxy may keep events back to fill a buffer. */
const HEADERS = ['cache-control', 'no-store', 'x-content-type-options', 'nosniff', 'x-accel-buffering', 'no'];

/** The stream behind the page of live messages, with the same filter. A `last-event-id` is of no use: nothing is kept. */
export function createLiveEventsPage(parts: LiveEventsParts): PortalPage {
  /** Looks that are open, by account id. */
  const open = new Map<string, number>();
  return {
    path: '/projects/:project/environments/:environment/live/events',
    access: 'live.read',
    show: async (visit) => {
      const [{ environment }, { account }] = [scopeOf(visit), signedInOf(visit)];
      // A HEAD would hold a look whose events nobody reads.
      if (visit.exchange.request.method === 'HEAD') throw pageNotFound();
      const looks = open.get(account.id) ?? 0;
      if (looks >= STREAMS_OF_ACCOUNT_MAX) throw tooManyStreams();
      const filter = parseFilter(visit.query, !isMasked(visit));
      const isStillAllowed = createPermission(parts, visit);
      // Counted before anything is awaited: tabs that open at once must not all see the same count.
      open.set(account.id, looks + 1);
      let leave: Release = () => {};
      try {
        leave = await parts.frame.shares.streams.acquire(claimantOf(visit));
        const looker = parts.live.subscribe({
          environmentId: environment.id,
          filter,
          masks: isMasked(visit),
          isStillAllowed,
        });
        const stream = visit.exchange.openStream(EVENT_STREAM_TYPE, HEADERS);
        if (stream === null) looker.close();
        else await sendEvents(looker, stream);
      } finally {
        leave();
        const left = (open.get(account.id) ?? 1) - 1;
        if (left === 0) open.delete(account.id);
        else open.set(account.id, left);
      }
      return { kind: 'answered' };
    },
  };
}

/** Tabs of one person; one account alone must not take the looks of all others. */
const STREAMS_OF_ACCOUNT_MAX = 8;

const tooManyStreams = () =>
  new PublicError('TOO_MANY_REQUESTS_ERROR', {
    message: `You look at ${STREAMS_OF_ACCOUNT_MAX} live pages already: close one.`,
    retryAfterS: 5,
  });

export const isMasked = (visit: Visit): boolean => !visit.mayDo('people.raw-ids');

/**
 * Whether everything still holds that the look began with: the session, the account and its rights, raw ids included, and the
 * environment. It does not count as use of the session, which would otherwise never be idle.
 */
function createPermission({ accounts, projects, sessions }: LiveEventsParts, visit: Visit) {
  const place = { ...scopeOf(visit), ...signedInOf(visit) };
  const masked = isMasked(visit);
  return async (): Promise<boolean> => {
    const [known, standing, open] = await Promise.all([
      accounts.all(),
      projects.all(),
      sessions.list(place.account.id),
    ]);
    const account = known.find((each) => isSessionOf(place.session, each));
    const project = standing.find(({ id }) => id === place.project.id);
    if (account === undefined || project === undefined || !open.some(({ id }) => id === place.session.id)) return false;
    const isThere = project.environments.some((each) => isSame(each, place.environment));
    return isThere && may(account, project.id, 'live.read') && may(account, project.id, 'people.raw-ids') !== masked;
  };
}

const isSame = (a: ProjectEnvironment, b: ProjectEnvironment) => a.id === b.id && a.name === b.name;

function may(account: AccountRecord, projectId: string, action: 'live.read' | 'people.raw-ids'): boolean {
  return mayDo({ account, action, projectId });
}
