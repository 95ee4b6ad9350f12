import { z } from 'zod';
import { BATCH_MESSAGES_MAX, FREE_FORM_DEPTH_MAX, MESSAGE_BYTES_MAX } from './limits.ts';
import {
  distinctErrors,
  isBlank,
  type Message,
  type MessageRejection,
  messageRejectionSchema,
  messageSchema,
  parseMessage,
  type RejectionError,
  WHOLE_MESSAGE,
} from './message.ts';
import type { TimeWindow } from './texts.ts';

/** Contract, "MessagesRequest". */
export const messagesRequestSchema = z
  .object({ messages: z.array(messageSchema).min(1).max(BATCH_MESSAGES_MAX) })
  .meta({ id: 'MessagesRequest' });

/** Contract, "MessagesResponse" and "Success". */
export const messagesResponseSchema = z
  .object({
    success: z.boolean().meta({ description: 'true when at least one message was accepted' }),
    accepted: z.int().min(0),
    rejected: z.int().min(0),
    rejections: z.array(messageRejectionSchema),
  })
  .meta({ id: 'MessagesResponse' });

export interface MessagesResponse {
  success: boolean;
  accepted: number;
  rejected: number;
  rejections: MessageRejection[];
}

/** What one element of `messages` looks like in the body. */
export interface MessageSource {
  /** Its size in the body. */
  bytes: number;
  /** JSON text of its `messageId`; '' when it has none. */
  messageIdText: string;
  /** Those of its free-form objects that are nested deeper than `FREE_FORM_DEPTH_MAX`. */
  tooDeep?: readonly FreeFormField[];
}

export type FreeFormField = 'properties' | 'traits';

export interface BatchRules {
  window: TimeWindow;
  /** One per element of `messages`, in order. */
  sources: readonly MessageSource[];
}

export interface AcceptedMessage {
  /** Place in `messages`. */
  index: number;
  message: Message;
}

/** What was wrong with one message that was not accepted. */
export interface RejectedMessage {
  /** Place in `messages`. */
  index: number;
  errors: readonly RejectionError[];
}

export type BatchResult =
  /** The whole batch is refused: an error envelope with VALIDATION_ERROR. */
  | { kind: 'fault'; message: string; details: Record<string, unknown> }
  | {
      kind: 'judged';
      accepted: AcceptedMessage[];
      /** By index, twins separately; `response.rejections` merges them. */
      rejected: RejectedMessage[];
      submitted: number;
      response: MessagesResponse;
    };

type BatchFault = Extract<BatchResult, { kind: 'fault' }>;

/** The batch without a rule about its messages: each of them is judged separately. */
const envelopeSchema = z.object({ messages: z.array(z.unknown()).min(1).max(BATCH_MESSAGES_MAX) });

function toFault(issue: z.core.$ZodIssue | undefined): BatchFault {
  const limits = { field: 'messages', messagesMin: 1, messagesMax: BATCH_MESSAGES_MAX };
  if (issue?.path.length === 0) return { kind: 'fault', message: 'the body must be a JSON object', details: limits };
  if (issue?.code === 'too_small') return { kind: 'fault', message: 'messages must not be empty', details: limits };
  if (issue?.code === 'too_big') {
    return { kind: 'fault', message: `messages must hold at most ${BATCH_MESSAGES_MAX} items`, details: limits };
  }
  return { kind: 'fault', message: 'messages must be an array of messages', details: limits };
}

/** How a rejection names a message, and whether its id can make it a duplicate. */
interface IdSpelling {
  /** Echoed to the client. */
  echo: string;
  /** Messages with the same `name` share one entry of `rejections`. */
  name: string;
  isComparable: boolean;
}

/** Contract, "messageId", "No object", "Several without an id" and "Twins". */
function spellingOf(value: unknown, source: MessageSource | undefined): IdSpelling {
  const id = typeof value === 'object' && value !== null && 'messageId' in value ? value.messageId : undefined;
  if (Array.isArray(value) || id == null) return { echo: '', name: '', isComparable: false };
  const echo = typeof id === 'string' ? id : (source?.messageIdText ?? '');
  return { echo, name: echo.toLowerCase(), isComparable: typeof id === 'string' && !isBlank(id) };
}

function findDuplicateIds(spellings: readonly IdSpelling[]): Set<string> {
  const seen = new Set<string>();
  const twins = new Set<string>();
  for (const { name, isComparable } of spellings) {
    if (!isComparable) continue;
    if (seen.has(name)) twins.add(name);
    seen.add(name);
  }
  return twins;
}

/** Contract, "Twins". */
export const DUPLICATE_ID: RejectionError = {
  field: 'messageId',
  code: 'DUPLICATE_MESSAGE_ID',
  message: 'messageId occurs more than once in the batch',
};
/** Contract, "Size of a message". */
export const TOO_LARGE: RejectionError = {
  field: WHOLE_MESSAGE,
  code: 'INVALID_VALUE',
  message: `message is larger than ${MESSAGE_BYTES_MAX} bytes`,
};

/** Contract, "Free-form objects". */
export function tooDeepError(field: FreeFormField): RejectionError {
  const message = `${field}: is nested deeper than ${FREE_FORM_DEPTH_MAX} levels`;
  return { field, code: 'INVALID_VALUE', message };
}

/**
 * Judges each message of a batch, and then twins together. Pure.
 * @param document the parsed JSON body
 * @returns the accepted messages with their indexes and the answer to the client, or why the whole batch is refused.
 * Status 200 when `response.accepted` > 0, else 400 with the same body: contract, "Status".
 */
export function validateBatch(document: unknown, rules: BatchRules): BatchResult {
  const envelope = envelopeSchema.safeParse(document);
  if (!envelope.success) return toFault(envelope.error.issues[0]);
  const { messages } = envelope.data;
  const spellings = messages.map((value, index) => spellingOf(value, rules.sources[index]));
  const twins = findDuplicateIds(spellings);
  const accepted: AcceptedMessage[] = [];
  const rejected: RejectedMessage[] = [];
  const entries = new Map<string, MessageRejection>();
  for (const [index, { echo, name, isComparable }] of spellings.entries()) {
    const parsed = parseMessage(messages[index], rules.window);
    const errors = parsed.ok ? [] : [...parsed.errors];
    if (isComparable && twins.has(name)) errors.unshift(DUPLICATE_ID);
    for (const field of rules.sources[index]?.tooDeep ?? []) errors.push(tooDeepError(field));
    if ((rules.sources[index]?.bytes ?? 0) > MESSAGE_BYTES_MAX) errors.push(TOO_LARGE);
    if (parsed.ok && errors.length === 0) {
      accepted.push({ index, message: parsed.message });
      continue;
    }
    rejected.push({ index, errors });
    const entry = entries.get(name);
    entries.set(name, {
      messageId: entry?.messageId ?? echo,
      errors: distinctErrors([...(entry?.errors ?? []), ...errors]),
    });
  }
  return {
    kind: 'judged',
    accepted,
    rejected,
    submitted: messages.length,
    response: {
      success: accepted.length > 0,
      accepted: accepted.length,
      rejected: messages.length - accepted.length,
      rejections: [...entries.values()],
    },
  };
}
