import { setTimeout as delay } from 'node:timers/promises';
import { TOPICS } from '@playline/contracts';
import type { Closable, Logger } from '@playline/runtime';

export interface SchemaIds {
  readonly messages: number;
  readonly identityLinks: number;
}

/** What the records of messages are called on the log and in the registry. */
export function topicNamesOf(prefix: string): { topics: string[]; subjects: Record<keyof SchemaIds, string> } {
  const [messages, identityLinks] = [prefix + TOPICS.messages.name, prefix + TOPICS.identityLinks.name];
  const subjects = { messages: `${messages}-value`, identityLinks: `${identityLinks}-value` };
  return { topics: [messages, identityLinks], subjects };
}

/** The registry as far as the gateway needs it. */
export interface SchemaIdSource {
  /** Id of the latest schema of a subject. */
  idOf(subject: string): Promise<number>;
}

/** The ids, once the registry has told them; null until then. */
export interface SchemaIdCache<Name extends string = keyof SchemaIds> extends Closable {
  current(): Readonly<Record<Name, number>> | null;
}

/** A registry starts within seconds; asking once a second wears nobody out. */
const RETRY_MS = 1000;

/** Asks for all ids until the registry answers, then never again: a registry that is down later stops nothing. */
export function openSchemaIds<Name extends string>(
  source: SchemaIdSource,
  subjects: Readonly<Record<Name, string>>,
  logger: Logger,
): SchemaIdCache<Name> {
  const names = Object.keys(subjects) as Name[];
  let ids: Readonly<Record<Name, number>> | null = null;
  const closed = new AbortController();
  const ask = async () => {
    while (!closed.signal.aborted) {
      try {
        const found = await Promise.all(names.map(async (name) => [name, await source.idOf(subjects[name])]));
        ids = Object.fromEntries(found) as Record<Name, number>;
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
