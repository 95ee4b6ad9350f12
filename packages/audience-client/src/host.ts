/** Browser APIs that the client uses. Each API is missing in some environments. */
export interface Host {
  document?: { readonly title: string; readonly referrer: string; readonly visibilityState: string } & EventSource;
  location?: { readonly href: string; readonly pathname: string };
  history?: { pushState(...args: unknown[]): void; replaceState(...args: unknown[]): void };
  screen?: { readonly width: number; readonly height: number };
  navigator?: { readonly userAgent: string; readonly language: string; readonly onLine?: boolean };
  devicePixelRatio?: number;
  localStorage?: WebStorage;
  CompressionStream?: typeof CompressionStream;
}

/** The web platform's `Storage` interface. */
export interface WebStorage {
  readonly length: number;
  key(index: number): string | null;
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** `persisted` is a property of PageTransitionEvent. */
type Listener = (event: { persisted?: boolean }) => void;

interface EventSource {
  addEventListener?(event: string, listener: Listener, options?: object): void;
  removeEventListener?(event: string, listener: Listener, options?: object): void;
}

export const host: Host & EventSource = globalThis as unknown as Host & EventSource;
