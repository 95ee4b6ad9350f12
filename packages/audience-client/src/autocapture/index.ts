import { host } from '../host.ts';
import { createMessageId } from '../message.ts';
import type { AudienceClient } from '../options.ts';
import { attempt } from '../store.ts';

/** Times are epoch milliseconds, because a session outlives the page and its monotonic clock. */
interface Session {
  id: string;
  startedAt: number;
  lastActiveAt: number;
}

const SESSION_KEY = 'audience:session';
/** Input events that keep a session active. */
const INPUT_EVENTS = ['pointerdown', 'pointermove', 'keydown', 'wheel'];
/** Pointer events can fire hundreds of times per second. */
const TOUCH_INTERVAL_MS = 1000;
/** Longer timers would overflow (24 days). */
const TIMER_MAX_MS = 2 ** 31 - 1;

interface State {
  readonly client: AudienceClient;
  readonly timeoutMs: number;
  session: Session | null;
  /** False if the store failed and only this page has the session. */
  stored: boolean;
  /** True while a session starts or ends, because starting and ending send messages that would count as activity. */
  busy: boolean;
  timer: ReturnType<typeof setTimeout> | undefined;
}

/**
 * Manages one session for all tabs and pages that share a store. Input and messages keep the session active. A timer
 * on an open page, or the next page, ends the session.
 */
function openSessions(client: AudienceClient, timeoutMs: number): Autocapture {
  const state: State = { client, timeoutMs, session: null, stored: true, busy: false, timer: undefined };
  const onActivity = () => isDue(state) && touch(state);
  for (const activity of INPUT_EVENTS) host.addEventListener?.(activity, onActivity, { passive: true, capture: true });
  const unsubscribe = client.subscribe((event) => {
    if (event === 'message') touch(state);
    // The next player must not continue this session.
    if (event === 'reset') finish(state, 'reset');
    if (event === 'consent' && client.consent === 'none') discard(state);
    else if (event === 'consent') touch(state);
  });
  touch(state);
  return {
    touch: () => touch(state),
    close: () => {
      clearTimeout(state.timer);
      for (const activity of INPUT_EVENTS) host.removeEventListener?.(activity, onActivity, { capture: true });
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
  if (current && isExpired(state, current)) end(state, current, 'inactivity');
  const isContinued = current !== null && !isExpired(state, current);
  const session = isContinued ? { ...current, lastActiveAt: touchedAt } : createSession(touchedAt);
  state.session = session;
  state.stored = attempt(() => {
    client.store.set(SESSION_KEY, JSON.stringify(session));
    return true;
  }, false);
  client.setSessionId(session.id);
  if (!isContinued) client.track('session_started');
  state.busy = false;
  schedule(state);
}

function isDue({ session, timeoutMs }: State): boolean {
  const checkedAt = Date.now();
  return Math.abs(checkedAt - (session?.lastActiveAt ?? 0)) >= Math.min(TOUCH_INTERVAL_MS, timeoutMs);
}

const createSession = (startedAt: number): Session => ({ id: createMessageId(), startedAt, lastActiveAt: startedAt });

/** Returns the stored session; null if there is none. */
function readSession({ client, stored, session }: State): Session | null {
  if (!stored) return session;
  const parsed: Partial<Session> = attempt(() => Object(JSON.parse(client.store.get(SESSION_KEY) ?? '{}')), {});
  const { id, startedAt, lastActiveAt } = parsed;
  // Another script may have overwritten the entry, and the service would reject messages with an invalid session.
  return /^[\w-]{1,64}$/.test(`${id}`) && isEpochMs(startedAt) && isEpochMs(lastActiveAt) ? (parsed as Session) : null;
}

function isEpochMs(value: unknown): boolean {
  return typeof value === 'number' && !Number.isNaN(new Date(value).getTime());
}

/** Setting the clock back by more than the timeout also ends the session. */
function isExpired({ timeoutMs }: State, { lastActiveAt }: Session): boolean {
  const checkedAt = Date.now();
  return Math.abs(checkedAt - lastActiveAt) >= timeoutMs;
}

/** Removes the session from the store first, so that no other tab reports its end. */
function end(state: State, session: Session, reason: 'inactivity' | 'reset'): void {
  const { client } = state;
  attempt(() => client.store.remove(SESSION_KEY), undefined);
  client.setSessionId(session.id);
  client.track('session_ended', {
    reason,
    durationMs: Math.max(0, session.lastActiveAt - session.startedAt),
    // Included, because the timestamp of this message is later than the end of the session.
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

/** Ends the session without sending a message, because consent was withdrawn. */
function discard(state: State): void {
  clearTimeout(state.timer);
  [state.timer, state.session] = [undefined, null];
  attempt(() => state.client.store.remove(SESSION_KEY), undefined);
  state.client.setSessionId(undefined);
}

/** Schedules a check for the time at which the session would end. */
function schedule(state: State): void {
  if (state.timer !== undefined || !state.session) return;
  const scheduledAt = Date.now();
  const waitMs = state.session.lastActiveAt + state.timeoutMs - scheduledAt;
  state.timer = setTimeout(
    () => {
      state.timer = undefined;
      const current = readSession(state);
      if (!current || isExpired(state, current)) return finish(state, 'inactivity');
      // Activity in this or another tab has extended the session.
      state.session = current;
      schedule(state);
    },
    Math.min(Math.max(waitMs, 0), TIMER_MAX_MS),
  );
  // In Node the timer must not keep the process alive.
  (state.timer as { unref?(): void }).unref?.();
}

export interface AutocaptureOptions {
  /** Sends a `page` event for the initial URL and for each history navigation. Default: true. */
  pageViews?: boolean;
  /** Sends `session_started` and `session_ended`, and sets `sessionId` on all messages in between. Default: true. */
  sessions?: boolean;
  /** Ends a session after this time without activity. Default: 1,800,000 (half an hour). */
  inactivityTimeoutMs?: number;
}

export interface Autocapture {
  /** Reports player activity that causes no input events, such as gamepad input. */
  touch(): void;
  /** Stops capturing. The current session stays in the store for the next page. */
  close(): void;
}

const INACTIVITY_TIMEOUT_MS = 30 * 60 * 1000;

/** Captures page views and sessions, within the limits of the client's consent level. */
export function openAutocapture(client: AudienceClient, options: AutocaptureOptions = {}): Autocapture {
  const { pageViews = true, sessions = true, inactivityTimeoutMs = INACTIVITY_TIMEOUT_MS } = options;
  // Sessions start first, so that the first page view already has a session id.
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

/** Value of `properties.navigation`: how the page was reached. */
type Navigation = 'load' | 'push' | 'replace' | 'traverse';

/** Sends a page view now and for each new URL. Returns a function that stops capturing. */
function capturePageViews(client: AudienceClient): () => void {
  const { document, location, history } = host;
  if (!document || !location) return () => {};
  /** URL of the last page view; empty before the first page view. */
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
    // The page was restored from the back/forward cache.
    if (event.persisted) view('traverse');
  };
  const unwrap = history && [
    wrap(history, 'pushState', () => onMove('push')),
    // Games store state in query and hash, so only a different path counts as a new page.
    wrap(history, 'replaceState', () => pathOf(location.href) !== pathOf(shown) && onMove('replace')),
  ];
  host.addEventListener?.('popstate', onTraverse);
  host.addEventListener?.('hashchange', onTraverse);
  host.addEventListener?.('pageshow', onShow);
  // If consent is given later, the current page becomes the first page view.
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

type Method = (...args: unknown[]) => void;

/** Calls `after` when a method has returned. The method's exceptions are passed through. */
function wrap<Name extends string>(owner: Record<Name, Method>, name: Name, after: () => void): () => void {
  const original = owner[name];
  let stopped = false;
  const wrapped: Method = function (this: unknown, ...args) {
    original.apply(this, args);
    if (!stopped) after();
  };
  owner[name] = wrapped as Record<Name, Method>[Name];
  return () => {
    stopped = true;
    // Do not remove a wrapper that another script added later.
    if (owner[name] === wrapped) owner[name] = original;
  };
}
