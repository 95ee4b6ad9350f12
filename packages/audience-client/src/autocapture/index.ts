import type { AudienceClient } from '../options.ts';
import { capturePageViews } from './page-views.ts';
import { openSessions } from './sessions.ts';

export interface AutocaptureOptions {
  /** A `page` for each address that is shown: the first, and those of history navigation (true). */
  pageViews?: boolean;
  /** `session_started`, `session_ended`, and `sessionId` on every message between (true). */
  sessions?: boolean;
  /** A session ends when nothing has happened for so long (1,800,000: half an hour, as is usual). */
  inactivityTimeoutMs?: number;
}

export interface Autocapture {
  /** Somebody is there, though nothing was typed, clicked or tracked: for games that are played by gamepad. */
  touch(): void;
  /** Captures nothing more. A session that is open stays in the store: the next page goes on with it, or ends it. */
  close(): void;
}

/** Half an hour: what web analytics have in common. */
const INACTIVITY_TIMEOUT_MS = 30 * 60 * 1000;

/** Makes a client report page views and sessions by itself, within what its consent allows. */
export function openAutocapture(client: AudienceClient, options: AutocaptureOptions = {}): Autocapture {
  const { pageViews = true, sessions = true, inactivityTimeoutMs = INACTIVITY_TIMEOUT_MS } = options;
  // Sessions first: the first page view belongs to one.
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
