import { setTimeout as delay } from 'node:timers/promises';
import type { Closable, Logger } from '@playline/runtime';

export interface SchemaIds {
  readonly messages: number;
  readonly identityLinks: number;
}

/** The registry as far as the gateway needs it. */
export interface SchemaIdSource {
  /** Id of the latest schema of a subject. */
  idOf(subject: string): Promise<number>;
}

/** The ids, once the registry has told them; null until then. */
export interface SchemaIdCache extends Closable {
  current(): SchemaIds | null;
}

/** A registry starts within seconds; asking once a second wears nobody out. */
const RETRY_MS = 1000;

/** Asks for both ids until the registry answers, then never again: a registry that is down later stops nothing. */
export function openSchemaIds(
  source: SchemaIdSource,
  subjects: Record<keyof SchemaIds, string>,
  logger: Logger,
): SchemaIdCache {
  let ids: SchemaIds | null = null;
  const closed = new AbortController();
  const ask = async () => {
    while (!closed.signal.aborted) {
      try {
        const [messages, identityLinks] = await Promise.all([
          source.idOf(subjects.messages),
          source.idOf(subjects.identityLinks),
        ]);
        ids = { messages, identityLinks };
        return;
      } catch (error) {
        logger.warn({ error }, 'the schema registry does not answer yet');
      }
      await delay(RETRY_MS, undefined, { signal: closed.signal }).catch(() => {});
    }
  };
  void ask();
  return { current: () => ids, close: () => closed.abort() };
}
