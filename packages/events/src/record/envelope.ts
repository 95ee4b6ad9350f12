import type { IdentityKind, Message } from '@playline/contracts';

/** What the caller adds to every message of a request. */
export interface RecordEnvelope {
  /** Id of the message schema in the registry. */
  schemaId: number;
  environmentId: string;
  /** Epoch milliseconds. */
  receivedAt: number;
  /** 32 lower-case hex characters. */
  traceId: string;
}

/** Computes the 16-byte key of an identity; `id` comes trimmed and is not blank. Nobody writes into the key later. */
export type KeyOf = (kind: IdentityKind, id: string) => Buffer;

/** As `KeyOf`, of an id in UTF-8. */
export type KeyOfBytes = (kind: IdentityKind, id: Uint8Array) => Buffer;

/** One record for `audience.messages.v1`. */
export interface EncodedRecord {
  /** Bytes of the environment id, then the 16 bytes of the owner's key; null when nobody owns the message. */
  key: Buffer | null;
  /** Confluent frame and Avro body. */
  value: Buffer;
}

/** An accepted message with its free-form objects as they stood in the body, where the caller knows that. */
export interface SourcedMessage {
  message: Message;
  /** JSON text; without it the object is written by JSON.stringify. */
  propertiesText?: string;
  /** JSON text; without it the object is written by JSON.stringify. */
  traitsText?: string;
}
