/** The parts of a browser that the client uses. Each is missing in some environment. */
export interface Host {
  document?: {
    readonly title: string;
    readonly referrer: string;
    readonly visibilityState: string;
  } & EventSource;
  location?: { readonly href: string; readonly pathname: string };
  history?: { pushState(...given: unknown[]): void; replaceState(...given: unknown[]): void };
  screen?: { readonly width: number; readonly height: number };
  navigator?: { readonly userAgent: string; readonly language: string; readonly onLine?: boolean };
  devicePixelRatio?: number;
  localStorage?: WebStorage;
  CompressionStream?: typeof CompressionStream;
}

/** `Storage` of the web platform. */
export interface WebStorage {
  readonly length: number;
  key(index: number): string | null;
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** `persisted` as in a PageTransitionEvent. */
type Listener = (event: { persisted?: boolean }) => void;

interface EventSource {
  addEventListener?(event: string, listener: Listener, options?: object): void;
  removeEventListener?(event: string, listener: Listener, options?: object): void;
}

export const host: Host & EventSource = globalThis as unknown as Host & EventSource;
