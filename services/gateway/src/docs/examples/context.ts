import { placeholderOf } from '@playline/api-docs';

/** What the documentation knows of the deployment. */
export interface DocsSettings {
  /** Without a slash at its end. */
  readonly publicUrl: string;
  readonly headerPrefix: string;
}

/** What examples are written with. */
export interface ExampleContext extends DocsSettings {
  /** Epoch milliseconds: the time of events in examples. A fixed time would soon be too old to be accepted. */
  readonly nowMs: number;
}

export type KeyKind = 'publishable' | 'secret';

/** State of the gateway. Full: there is no room for another body. Broken: the brokers acknowledge nothing. */
export type Situation = 'full' | 'broken';

/** Placeholders for the reader's own keys. */
export const KEY_OF: Readonly<Record<KeyKind, string>> = {
  publishable: placeholderOf('publishable'),
  secret: placeholderOf('secret'),
};

/** Names of the key headers of a deployment. */
export function keyHeadersOf({ headerPrefix }: DocsSettings): Readonly<Record<KeyKind, string>> {
  return { publishable: `${headerPrefix}-publishable-key`, secret: `${headerPrefix}-api-key` };
}

/** Headers with a key, and further headers. */
export function headersWith(
  context: DocsSettings,
  kind: KeyKind,
  more: Record<string, string> = {},
): Record<string, string> {
  return { [keyHeadersOf(context)[kind]]: KEY_OF[kind], ...more };
}
