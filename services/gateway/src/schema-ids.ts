import {
  consentCodec,
  erasureRequestCodec,
  identityLinkCodec,
  messageRecordCodec,
  schemaSubjectOf,
  TOPICS,
} from '@playline/contracts';
import type { Closable, Logger } from '@playline/runtime';
import { pause } from '@playline/stores';
import type { SchemaRegistry } from '@playline/stream';

export interface SchemaIds {
  readonly messages: number;
  readonly identityLinks: number;
}

/** A schema that this process writes, and where it is registered. */
export interface WrittenSchema {
  readonly subject: string;
  /** Its text. The encoder uses it even if the subject has a newer version. */
  readonly schema: string;
}

/** @param topic with its prefix */
export function writtenSchemaOf(topic: string, { schema }: { readonly schema: string }): WrittenSchema {
  return { subject: schemaSubjectOf(topic), schema };
}

/** Topics and schemas of the records of messages. */
export function topicNamesOf(prefix: string): { topics: string[]; schemas: Record<keyof SchemaIds, WrittenSchema> } {
  const [messages, identityLinks] = [prefix + TOPICS.messages.name, prefix + TOPICS.identityLinks.name];
  const schemas = {
    messages: writtenSchemaOf(messages, messageRecordCodec),
    identityLinks: writtenSchemaOf(identityLinks, identityLinkCodec),
  };
  return { topics: [messages, identityLinks], schemas };
}

/**
 * The schemas of consents and erasure requests. They are requested apart from those of messages, so that messages are
 * accepted even if the registry lacks one of these.
 */
export function audienceSchemasOf(prefix: string): Record<'consents' | 'erasures', WrittenSchema> {
  return {
    consents: writtenSchemaOf(prefix + TOPICS.consents.name, consentCodec),
    erasures: writtenSchemaOf(prefix + TOPICS.erasures.name, erasureRequestCodec),
  };
}

/** The ids, once the registry has returned them; null until then. */
export interface SchemaIdCache<Name extends string = keyof SchemaIds> extends Closable {
  current(): Readonly<Record<Name, number>> | null;
}

/** A registry starts within seconds, and one request per second is no load. */
const RETRY_MS = 1000;

/** Asks for all ids until the registry answers, then never again, so a later outage of the registry has no effect. */
export function openSchemaIds<Name extends string>(
  registry: Pick<SchemaRegistry, 'idOf'>,
  schemas: Readonly<Record<Name, WrittenSchema>>,
  logger: Logger,
): SchemaIdCache<Name> {
  const names = Object.keys(schemas) as Name[];
  let ids: Readonly<Record<Name, number>> | null = null;
  const closed = new AbortController();
  const askAll = async () => {
    while (!closed.signal.aborted) {
      try {
        const ask = async (name: Name) => [name, await registry.idOf(schemas[name].subject, schemas[name].schema)];
        const found = await Promise.all(names.map(ask));
        ids = Object.fromEntries(found) as Record<Name, number>;
        return;
      } catch (error) {
        logger.warn({ error }, 'the schema registry does not give the ids yet');
      }
      await pause(RETRY_MS, closed.signal);
    }
  };
  void askAll();
  return { current: () => ids, close: () => closed.abort() };
}
