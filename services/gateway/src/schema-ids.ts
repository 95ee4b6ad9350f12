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

export interface EncoderSchema {
  readonly subject: string;
  /** The encoder uses this schema even if the subject has a newer version. */
  readonly schema: string;
}

/** @param topic name including the prefix */
export function encoderSchemaOf(topic: string, { schema }: { readonly schema: string }): EncoderSchema {
  return { subject: schemaSubjectOf(topic), schema };
}

export function topicNamesOf(prefix: string): { topics: string[]; schemas: Record<keyof SchemaIds, EncoderSchema> } {
  const [messages, identityLinks] = [prefix + TOPICS.messages.name, prefix + TOPICS.identityLinks.name];
  const schemas = {
    messages: encoderSchemaOf(messages, messageRecordCodec),
    identityLinks: encoderSchemaOf(identityLinks, identityLinkCodec),
  };
  return { topics: [messages, identityLinks], schemas };
}

/** Fetched separately, so that messages are accepted even if the registry lacks one of these schemas. */
export function audienceSchemasOf(prefix: string): Record<'consents' | 'erasures', EncoderSchema> {
  return {
    consents: encoderSchemaOf(prefix + TOPICS.consents.name, consentCodec),
    erasures: encoderSchemaOf(prefix + TOPICS.erasures.name, erasureRequestCodec),
  };
}

const RETRY_MS = 1000;

/** Fetches the ids, retrying until the registry returns them. `current` returns null until then. */
export function resolveSchemaIds<Name extends string>(
  registry: Pick<SchemaRegistry, 'idOf'>,
  schemas: Readonly<Record<Name, EncoderSchema>>,
  logger: Logger,
): Closable & { current(): Readonly<Record<Name, number>> | null } {
  let ids: Readonly<Record<Name, number>> | null = null;
  const closed = new AbortController();
  const fetchAll = async () => {
    const entries = Object.entries<EncoderSchema>(schemas);
    while (!closed.signal.aborted) {
      try {
        const found = entries.map(async ([name, { subject, schema }]) => [name, await registry.idOf(subject, schema)]);
        ids = Object.fromEntries(await Promise.all(found)) as Record<Name, number>;
        return;
      } catch (error) {
        logger.warn({ error }, 'fetching schema ids failed; retrying');
      }
      await pause(RETRY_MS, closed.signal);
    }
  };
  void fetchAll();
  return { current: () => ids, close: () => closed.abort() };
}
