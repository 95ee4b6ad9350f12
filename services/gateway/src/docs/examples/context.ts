import { placeholderOf } from '@playline/api-docs';

export interface DocsSettings {
  /** Without a trailing slash. */
  readonly publicUrl: string;
  readonly headerPrefix: string;
}

export interface ExampleContext extends DocsSettings {
  /** Epoch milliseconds of the events; a fixed time would soon be rejected. */
  readonly nowMs: number;
}

export type KeyKind = 'publishable' | 'secret';

/** Full: no memory for another body. Broken: the brokers acknowledge nothing. */
export type Situation = 'full' | 'broken';

export const KEY_OF: Readonly<Record<KeyKind, string>> = {
  publishable: placeholderOf('publishable'),
  secret: placeholderOf('secret'),
};

export function keyHeadersOf({ headerPrefix }: DocsSettings): Readonly<Record<KeyKind, string>> {
  return { publishable: `${headerPrefix}-publishable-key`, secret: `${headerPrefix}-api-key` };
}

export function headersWith(
  context: DocsSettings,
  kind: KeyKind,
  more: Record<string, string> = {},
): Record<string, string> {
  return { [keyHeadersOf(context)[kind]]: KEY_OF[kind], ...more };
}
