import { z } from 'zod';
import {
  BATCH_ERROR_DETAILS,
  BATCH_ERRORS,
  DUPLICATE_ID,
  type FreeFormField,
  TOO_LARGE,
  tooDeepError,
} from '../batch.ts';
import { BATCH_MESSAGES_MAX, MESSAGE_BYTES_MAX } from '../limits.ts';
import {
  distinctErrors,
  isBlank,
  type Message,
  type MessageRejection,
  parseMessage,
  type RejectionError,
} from '../message.ts';
import { isJsonObject, type TimeWindow } from '../texts.ts';

interface MessagesResponse {
  success: boolean;
  accepted: number;
  rejected: number;
  rejections: MessageRejection[];
}

/** How an element of `messages` was written in the body. */
export interface MessageSource {
  bytes: number;
  /** The id as JSON; '' if absent. */
  messageIdText: string;
  /** The free-form objects that exceed `FREE_FORM_DEPTH_MAX`. */
  tooDeep?: readonly FreeFormField[];
}

interface BatchRules {
  window: TimeWindow;
  /** One source per element of `messages`. */
  sources: readonly MessageSource[];
}

interface AcceptedMessage {
  /** Index in `messages`. */
  index: number;
  message: Message;
}

type BatchResult =
  /** The whole batch is refused with VALIDATION_ERROR. */
  | { kind: 'refused'; message: string; details: Record<string, unknown> }
  | {
      kind: 'validated';
      accepted: AcceptedMessage[];
      /** In batch order. Duplicate ids are listed separately here, but merged in `response.rejections`. */
      rejected: { index: number; errors: readonly RejectionError[] }[];
      submitted: number;
      response: MessagesResponse;
    };

const envelopeSchema = z.object({ messages: z.array(z.unknown()).min(1).max(BATCH_MESSAGES_MAX) });

function toRefusal(issue: z.core.$ZodIssue | undefined): BatchResult {
  const refuse = (message: string) => ({ kind: 'refused', message, details: BATCH_ERROR_DETAILS }) as const;
  if (issue?.path.length === 0) return refuse(BATCH_ERRORS.notAnObject);
  if (issue?.code === 'too_small') return refuse(BATCH_ERRORS.tooFew);
  return refuse(issue?.code === 'too_big' ? BATCH_ERRORS.tooMany : BATCH_ERRORS.noMessages);
}

/**
 * Returns the id to report in a rejection (`echo`), the id under which rejections are merged (`name`), and whether the
 * id can be a duplicate: contract, "messageId", "Not an object", "Several messages without an id" and "Duplicate ids".
 */
function readMessageId(value: unknown, source: MessageSource | undefined) {
  const id = isJsonObject(value) ? value.messageId : undefined;
  if (id == null) return { echo: '', name: '', isComparable: false };
  const echo = typeof id === 'string' ? id : (source?.messageIdText ?? '');
  return { echo, name: echo.toLowerCase(), isComparable: typeof id === 'string' && !isBlank(id) };
}

/**
 * Validates the messages of a batch and detects duplicate ids.
 * @param document the parsed JSON body
 * @returns the accepted messages and the response, with status 200 if `response.accepted` > 0, otherwise 400
 */
export function validateBatch(document: unknown, rules: BatchRules): BatchResult {
  const envelope = envelopeSchema.safeParse(document);
  if (!envelope.success) return toRefusal(envelope.error.issues[0]);
  const { messages } = envelope.data;
  const ids = messages.map((value, index) => readMessageId(value, rules.sources[index]));
  const names = ids.filter(({ isComparable }) => isComparable).map(({ name }) => name);
  const duplicates = new Set(names.filter((name, index) => names.indexOf(name) !== index));
  const accepted: AcceptedMessage[] = [];
  const rejected: { index: number; errors: readonly RejectionError[] }[] = [];
  const entries = new Map<string, MessageRejection>();
  for (const [index, { echo, name, isComparable }] of ids.entries()) {
    const parsed = parseMessage(messages[index], rules.window);
    const errors = parsed.ok ? [] : [...parsed.errors];
    if (isComparable && duplicates.has(name)) errors.unshift(DUPLICATE_ID);
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
    kind: 'validated',
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
