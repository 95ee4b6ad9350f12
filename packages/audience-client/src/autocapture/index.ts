import type { AudienceClient } from '../options.ts';
import { capturePageViews } from './page-views.ts';
import { openSessions } from './sessions.ts';

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
