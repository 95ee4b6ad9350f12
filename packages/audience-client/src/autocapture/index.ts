import { host } from '../host.ts';
import { createMessageId } from '../message.ts';
import type { AudienceClient } from '../options.ts';
import { attempt } from '../store.ts';

/** Epoch milliseconds by the wall clock: a session outlives the page, whose monotonic clock restarts. */
interface Session {
  id: string;
  startedAt: number;
  lastActiveAt: number;
}

const SESSION_KEY = 'audience:session';
/** Events of an active player. */
const ACTIVITIES = ['pointerdown', 'pointermove', 'keydown', 'wheel'];
/** Pointer events come by the hundred a second. */
const TOUCH_INTERVAL_MS = 1000;
/** Timers overflow after 24 days. */
const TIMER_MAX_MS = 2 ** 31 - 1;

interface State {
  readonly client: AudienceClient;
  readonly timeoutMs: number;
  session: Session | null;
  /** False when the store failed: only this page knows the session. */
  kept: boolean;
  /** Set while a session starts or ends, because that sends messages itself. */
  busy: boolean;
  timer: ReturnType<typeof setTimeout> | undefined;
}

/**
 * One session for all tabs and pages that share a store. Input and tracked messages keep it open; a timer of an open
 * page, or the next page, ends it.
 */
function openSessions(client: AudienceClient, timeoutMs: number): Autocapture {
  const state: State = { client, timeoutMs, session: null, kept: true, busy: false, timer: undefined };
  const onActivity = () => isDue(state) && touch(state);
  for (const activity of ACTIVITIES) host.addEventListener?.(activity, onActivity, { passive: true, capture: true });
  const unsubscribe = client.subscribe((event) => {
    if (event === 'message') touch(state);
    // The next person must not continue this session.
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
  const continues = current !== null && !isOver(state, current);
  const session = continues ? { ...current, lastActiveAt: touchedAt } : createSession(touchedAt);
  state.session = session;
  state.kept = attempt(() => {
    client.store.set(SESSION_KEY, JSON.stringify(session));
    return true;
  }, false);
  client.setSessionId(session.id);
  if (!continues) client.track('session_started');
  state.busy = false;
  schedule(state);
}

function isDue({ session, timeoutMs }: State): boolean {
  const checkedAt = Date.now();
  return Math.abs(checkedAt - (session?.lastActiveAt ?? 0)) >= Math.min(TOUCH_INTERVAL_MS, timeoutMs);
}

const createSession = (startedAt: number): Session => ({ id: createMessageId(), startedAt, lastActiveAt: startedAt });

/** The session in the store; null when there is none. */
function readSession({ client, kept, session }: State): Session | null {
  if (!kept) return session;
  const stored: Partial<Session> = attempt(() => Object(JSON.parse(client.store.get(SESSION_KEY) ?? '{}')), {});
  const { id, startedAt, lastActiveAt } = stored;
  // Another script may have written anything there, and the service would reject messages with it.
  return /^[\w-]{1,64}$/.test(`${id}`) && isInstant(startedAt) && isInstant(lastActiveAt) ? (stored as Session) : null;
}

function isInstant(value: unknown): boolean {
  return typeof value === 'number' && !Number.isNaN(new Date(value).getTime());
}

/** A clock that was set back by more than the time-out also ends the session. */
function isOver({ timeoutMs }: State, { lastActiveAt }: Session): boolean {
  const checkedAt = Date.now();
  return Math.abs(checkedAt - lastActiveAt) >= timeoutMs;
}

/** Removed from the store first, so that no other tab reports the end too. */
function end(state: State, session: Session, reason: 'inactivity' | 'reset'): void {
  const { client } = state;
  attempt(() => client.store.remove(SESSION_KEY), undefined);
  client.setSessionId(session.id);
  client.track('session_ended', {
    reason,
    durationMs: Math.max(0, session.lastActiveAt - session.startedAt),
    // The message is created after the session ended.
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

/** Without a message, because consent was withdrawn. */
function forget(state: State): void {
  clearTimeout(state.timer);
  [state.timer, state.session] = [undefined, null];
  attempt(() => state.client.store.remove(SESSION_KEY), undefined);
  state.client.setSessionId(undefined);
}

/** Checks again when the session would end. */
function schedule(state: State): void {
  if (state.timer !== undefined || !state.session) return;
  const scheduledAt = Date.now();
  const waitMs = state.session.lastActiveAt + state.timeoutMs - scheduledAt;
  state.timer = setTimeout(
    () => {
      state.timer = undefined;
      const current = readSession(state);
      if (!current || isOver(state, current)) return finish(state, 'inactivity');
      // Activity here or in another tab has moved the end.
      state.session = current;
      schedule(state);
    },
    Math.min(Math.max(waitMs, 0), TIMER_MAX_MS),
  );
  // In Node the timer must not keep the process alive.
  (state.timer as { unref?(): void }).unref?.();
}

export interface AutocaptureOptions {
  /** Sends a `page` for the first address and each later address of the history (true). */
  pageViews?: boolean;
  /** Sends `session_started` and `session_ended`, and sets `sessionId` on the messages in between (true). */
  sessions?: boolean;
  /** A session ends after this long without activity (1,800,000: half an hour). */
  inactivityTimeoutMs?: number;
}

export interface Autocapture {
  /** Reports an active player without input events, for games played with a gamepad. */
  touch(): void;
  /** Stops capturing. An open session stays in the store for the next page. */
  close(): void;
}

const INACTIVITY_TIMEOUT_MS = 30 * 60 * 1000;

/** Captures page views and sessions as far as the client's consent allows. */
export function openAutocapture(client: AudienceClient, options: AutocaptureOptions = {}): Autocapture {
  const { pageViews = true, sessions = true, inactivityTimeoutMs = INACTIVITY_TIMEOUT_MS } = options;
  // Sessions first: the first page view already carries a session id.
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

/** How the page was shown; `properties.navigation`. */
type Navigation = 'load' | 'push' | 'replace' | 'traverse';

/** Sends a page view now and for each new address. Returns a function that stops it. */
function capturePageViews(client: AudienceClient): () => void {
  const { document, location, history } = host;
  if (!document || !location) return () => {};
  /** The address of the last page view; '' before the first. */
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
    // The page is shown from the back/forward cache.
    if (event.persisted) view('traverse');
  };
  const unwrap = history && [
    wrap(history, 'pushState', () => onMove('push')),
    // Games keep state in query and hash, so only another path is another page.
    wrap(history, 'replaceState', () => pathOf(location.href) !== pathOf(shown) && onMove('replace')),
  ];
  host.addEventListener?.('popstate', onTraverse);
  host.addEventListener?.('hashchange', onTraverse);
  host.addEventListener?.('pageshow', onShow);
  // Consent given later applies to the page shown at that time.
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

/** Calls `after` when a method has run; its exceptions pass through. */
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
    // A wrapper that another script added later must stay.
    if (owner[name] === wrapped) owner[name] = own;
  };
}
