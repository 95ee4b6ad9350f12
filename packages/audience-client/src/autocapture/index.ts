import { host } from '../host.ts';
import { createMessageId } from '../message.ts';
import type { AudienceClient } from '../options.ts';
import { attempt } from '../store.ts';

/**
 * Times are epoch milliseconds by the wall clock: a session outlives the page, and a monotonic clock starts again with
 * each page.
 */
interface Session {
  id: string;
  startedAt: number;
  lastActiveAt: number;
}

interface Sessions {
  touch(): void;
  close(): void;
}

const SESSION_KEY = 'audience:session';
/** Events that show that the player is active. */
const ACTIVITIES = ['pointerdown', 'pointermove', 'keydown', 'wheel'];
/** Pointer events come by the hundred a second. The end of a session need not be more exact than this. */
const TOUCH_INTERVAL_MS = 1000;
/** Timers overflow after 24 days. */
const TIMER_MAX_MS = 2 ** 31 - 1;

interface State {
  readonly client: AudienceClient;
  readonly timeoutMs: number;
  session: Session | null;
  /** False when the store refused the session: then only this page knows of it. */
  kept: boolean;
  /** True while a session is being started or ended, since that sends messages itself. */
  busy: boolean;
  timer: ReturnType<typeof setTimeout> | undefined;
}

/**
 * One session for all tabs and pages that share a store. The first activity starts it. It ends when there was no
 * activity for long enough: a timer of an open page notices that, or else the next page. A tracked message counts as
 * activity too.
 */
function openSessions(client: AudienceClient, timeoutMs: number): Sessions {
  const state: State = { client, timeoutMs, session: null, kept: true, busy: false, timer: undefined };
  const onActivity = () => isDue(state) && touch(state);
  for (const activity of ACTIVITIES) host.addEventListener?.(activity, onActivity, { passive: true, capture: true });
  const unsubscribe = client.subscribe((event) => {
    if (event === 'message') touch(state);
    // The next person must not continue the last person's session.
    if (event === 'reset') finish(state, 'reset');
    if (event === 'consent' && client.consent === 'none') forget(state);
    else if (event === 'consent') touch(state);
  });
  touch(state);
  return {
    touch: () => touch(state),
    close: () => {
      clearTimeout(state.timer);
      for (const activity of ACTIVITIES) host.removeEventListener?.(activity, onActivity, { capture: true });
      unsubscribe();
      client.setSessionId(undefined);
    },
  };
}

function touch(state: State): void {
  const { client } = state;
  if (client.consent === 'none' || state.busy) return;
  const touchedAt = Date.now();
  state.busy = true;
  const current = readSession(state);
  if (current && isOver(state, current)) end(state, current, 'inactivity');
  const goesOn = current !== null && !isOver(state, current);
  const session = goesOn ? { ...current, lastActiveAt: touchedAt } : createSession(touchedAt);
  state.session = session;
  state.kept = attempt(() => {
    client.store.set(SESSION_KEY, JSON.stringify(session));
    return true;
  }, false);
  client.setSessionId(session.id);
  if (!goesOn) client.track('session_started');
  state.busy = false;
  schedule(state);
}

function isDue({ session, timeoutMs }: State): boolean {
  const askedAt = Date.now();
  return Math.abs(askedAt - (session?.lastActiveAt ?? 0)) >= Math.min(TOUCH_INTERVAL_MS, timeoutMs);
}

const createSession = (startedAt: number): Session => ({ id: createMessageId(), startedAt, lastActiveAt: startedAt });

/** The session in the store, which all tabs share; null when there is none. */
function readSession({ client, kept, session }: State): Session | null {
  if (!kept) return session;
  const stored: Partial<Session> = attempt(() => Object(JSON.parse(client.store.get(SESSION_KEY) ?? '{}')), {});
  const { id, startedAt, lastActiveAt } = stored;
  // Another script may have written nonsense there. That must not make the service reject messages.
  return /^[\w-]{1,64}$/.test(`${id}`) && isInstant(startedAt) && isInstant(lastActiveAt) ? (stored as Session) : null;
}

function isInstant(value: unknown): boolean {
  return typeof value === 'number' && !Number.isNaN(new Date(value).getTime());
}

/**
 * A clock that was set back by more than the time-out makes the age meaningless, so the session counts as over then
 * too.
 */
function isOver({ timeoutMs }: State, { lastActiveAt }: Session): boolean {
  const askedAt = Date.now();
  return Math.abs(askedAt - lastActiveAt) >= timeoutMs;
}

/** Reports that a session is over. It is removed from the store first, so that no other tab reports it as well. */
function end(state: State, session: Session, reason: 'inactivity' | 'reset'): void {
  const { client } = state;
  attempt(() => client.store.remove(SESSION_KEY), undefined);
  client.setSessionId(session.id);
  client.track('session_ended', {
    reason,
    durationMs: Math.max(0, session.lastActiveAt - session.startedAt),
    // The message is created later than the session ended: by a timer, or by the next page.
    lastActiveAt: new Date(session.lastActiveAt).toISOString(),
  });
  client.setSessionId(undefined);
  state.session = null;
}

function finish(state: State, reason: 'inactivity' | 'reset'): void {
  clearTimeout(state.timer);
  state.timer = undefined;
  if (state.client.consent === 'none' || state.busy) return;
  state.busy = true;
  const current = readSession(state);
  if (current) end(state, current, reason);
  state.session = null;
  state.client.setSessionId(undefined);
  state.busy = false;
}

/** Forgets the session without sending a message, since the consent was withdrawn. */
function forget(state: State): void {
  clearTimeout(state.timer);
  [state.timer, state.session] = [undefined, null];
  attempt(() => state.client.store.remove(SESSION_KEY), undefined);
  state.client.setSessionId(undefined);
}

/** Looks again at the time at which the session would be over. */
function schedule(state: State): void {
  if (state.timer !== undefined || !state.session) return;
  const scheduledAt = Date.now();
  const waitMs = state.session.lastActiveAt + state.timeoutMs - scheduledAt;
  state.timer = setTimeout(
    () => {
      state.timer = undefined;
      const current = readSession(state);
      if (!current || isOver(state, current)) return finish(state, 'inactivity');
      // Another tab, or activity in this one, has moved the end.
      state.session = current;
      schedule(state);
    },
    Math.min(Math.max(waitMs, 0), TIMER_MAX_MS),
  );
  // In Node a process that has nothing else to do may exit.
  (state.timer as { unref?(): void }).unref?.();
}

export interface AutocaptureOptions {
  /** Sends a `page` for the first address and for each address that the page's history shows later (true). */
  pageViews?: boolean;
  /** Sends `session_started` and `session_ended`, and puts `sessionId` on every message in between (true). */
  sessions?: boolean;
  /** A session ends after this long without any activity (1,800,000: half an hour, the usual value). */
  inactivityTimeoutMs?: number;
}

export interface Autocapture {
  /**
   * Reports that the player is active although nothing was typed, clicked or tracked. For games that are played with a
   * gamepad.
   */
  touch(): void;
  /** Stops capturing. An open session stays in the store: the next page continues it or ends it. */
  close(): void;
}

/** Half an hour, as in most web analytics. */
const INACTIVITY_TIMEOUT_MS = 30 * 60 * 1000;

/** Makes a client report page views and sessions by itself, as far as its consent allows. */
export function openAutocapture(client: AudienceClient, options: AutocaptureOptions = {}): Autocapture {
  const { pageViews = true, sessions = true, inactivityTimeoutMs = INACTIVITY_TIMEOUT_MS } = options;
  // Sessions first, so that the first page view already carries a session id.
  const session = sessions ? openSessions(client, inactivityTimeoutMs) : null;
  const stopPageViews = pageViews ? capturePageViews(client) : () => {};
  const close = () => {
    stopPageViews();
    session?.close();
    unsubscribe();
  };
  const unsubscribe = client.subscribe((event) => event === 'close' && close());
  return { touch: () => session?.touch(), close };
}

/** How the page came to be shown; `properties.navigation` of each page view. */
type Navigation = 'load' | 'push' | 'replace' | 'traverse';

/**
 * Sends a page view now, and again whenever the address changes without a new page, once the consent allows it.
 * @returns a function that stops this
 */
function capturePageViews(client: AudienceClient): () => void {
  const { document, location, history } = host;
  if (!document || !location) return () => {};
  /** The address of the last page view; '' when there was none. */
  let shown = '';
  const view = (navigation: Navigation) => {
    if (client.consent === 'none') return;
    shown = location.href;
    client.page({ navigation });
  };
  const onMove = (navigation: Navigation) => {
    if (location.href !== shown) view(navigation);
  };
  const onTraverse = () => onMove('traverse');
  const onShow = (event: { persisted?: boolean }) => {
    // The browser had kept the whole page in its back/forward cache and shows it again.
    if (event.persisted) view('traverse');
  };
  const unwrap = history && [
    wrap(history, 'pushState', () => onMove('push')),
    // Games keep their state in the query and the hash, so only a different path counts as a different page.
    wrap(history, 'replaceState', () => pathOf(location.href) !== pathOf(shown) && onMove('replace')),
  ];
  host.addEventListener?.('popstate', onTraverse);
  host.addEventListener?.('hashchange', onTraverse);
  host.addEventListener?.('pageshow', onShow);
  // Consent that is given later counts for the page that is shown at that moment.
  const unsubscribe = client.subscribe((event) => {
    if (event !== 'consent') return;
    if (client.consent === 'none') shown = '';
    else if (shown === '') view('load');
  });
  view('load');
  return () => {
    for (const restore of unwrap ?? []) restore();
    host.removeEventListener?.('popstate', onTraverse);
    host.removeEventListener?.('hashchange', onTraverse);
    host.removeEventListener?.('pageshow', onShow);
    unsubscribe();
  };
}

const pathOf = (href: string): string => href.replace(/[?#].*$/s, '');

type Method = (...given: unknown[]) => void;

/** Makes a method call `after` when it has run. Its result and its exceptions stay as they are. */
function wrap<Name extends string>(owner: Record<Name, Method>, name: Name, after: () => void): () => void {
  const own = owner[name];
  let stopped = false;
  const wrapped: Method = function (this: unknown, ...given) {
    own.apply(this, given);
    if (!stopped) after();
  };
  owner[name] = wrapped as Record<Name, Method>[Name];
  return () => {
    stopped = true;
    // If another script has wrapped the method after us, its wrapper must stay.
    if (owner[name] === wrapped) owner[name] = own;
  };
}
