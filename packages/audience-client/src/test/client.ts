import { setImmediate } from 'node:timers/promises';
import { vi } from 'vitest';
import {
  type AudienceClient,
  type AudienceClientOptions,
  createMemoryStore,
  type DroppedMessages,
  type MessageRejection,
  openAudienceClient,
} from '../index.ts';
import type { Service } from './service.ts';

export interface Reports {
  rejected: MessageRejection[];
  dropped: DroppedMessages[];
}

export const createReports = (): Reports => ({ rejected: [], dropped: [] });

/** Creates a client with full consent and without compression, and collects its reports. */
export function createClient(
  service: Service,
  options: Partial<AudienceClientOptions> = {},
): { client: AudienceClient; reports: Reports } {
  const reports = createReports();
  const client = openAudienceClient({
    baseUrl: 'https://events.example',
    publishableKey: 'pk_svcapik-1',
    consent: 'full',
    compress: false,
    store: createMemoryStore(),
    fetch: service.fetch,
    onRejected: (rejection) => reports.rejected.push(rejection),
    onDropped: (dropped) => reports.dropped.push(dropped),
    ...options,
  });
  return { client, reports };
}

/** Fakes timers and dates only, so that streams run normally. */
export function useFakeTime(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
}

/** Advances fake time and runs all timers that are due, including the work that they start. */
export async function pass(ms: number): Promise<void> {
  await drain();
  await vi.advanceTimersByTimeAsync(ms);
  await drain();
}

/** Reading a body takes a few event loop iterations. */
const ITERATIONS = 5;

async function drain(): Promise<void> {
  for (let iteration = 0; iteration < ITERATIONS; iteration += 1) await setImmediate();
}

/** A fake page with the browser APIs that the client uses. */
export interface FakePage {
  hide(): void;
  show(): void;
  setOnline(online: boolean): void;
  remove(): void;
}

export function createPage(): FakePage {
  const document = Object.assign(new EventTarget(), { visibilityState: 'visible', title: 'Page', referrer: '' });
  const events = new EventTarget();
  const navigator = { userAgent: 'Tester/1', language: 'de', onLine: true };
  vi.stubGlobal('document', document);
  vi.stubGlobal('navigator', navigator);
  vi.stubGlobal('addEventListener', events.addEventListener.bind(events));
  vi.stubGlobal('removeEventListener', events.removeEventListener.bind(events));
  return {
    hide: () => {
      document.visibilityState = 'hidden';
      document.dispatchEvent(new Event('visibilitychange'));
      events.dispatchEvent(new Event('pagehide'));
    },
    show: () => {
      document.visibilityState = 'visible';
      document.dispatchEvent(new Event('visibilitychange'));
    },
    setOnline: (online) => {
      navigator.onLine = online;
      if (online) events.dispatchEvent(new Event('online'));
    },
    remove: () => vi.unstubAllGlobals(),
  };
}
