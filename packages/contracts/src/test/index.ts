import { z } from 'zod';
import {
  BATCH_FAULT_DETAILS,
  BATCH_FAULTS,
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

/** An element of `messages` in the body. */
export interface MessageSource {
  bytes: number;
  /** JSON text; '' when absent. */
  messageIdText: string;
  /** Free-form objects deeper than `FREE_FORM_DEPTH_MAX`. */
  tooDeep?: readonly FreeFormField[];
}

interface BatchRules {
  window: TimeWindow;
  /** One per element of `messages`. */
  sources: readonly MessageSource[];
}

/** `index` in `messages`. */
interface AcceptedMessage {
  index: number;
  message: Message;
}

type BatchResult =
  /** The whole batch is refused with VALIDATION_ERROR. */
  | { kind: 'fault'; message: string; details: Record<string, unknown> }
  | {
      kind: 'validated';
      accepted: AcceptedMessage[];
      /** By index, duplicates separately; `response.rejections` merges them. */
      rejected: { index: number; errors: readonly RejectionError[] }[];
      submitted: number;
      response: MessagesResponse;
    };

const envelopeSchema = z.object({ messages: z.array(z.unknown()).min(1).max(BATCH_MESSAGES_MAX) });

function toFault(issue: z.core.$ZodIssue | undefined): BatchResult {
  const fault = (message: string) => ({ kind: 'fault', message, details: BATCH_FAULT_DETAILS }) as const;
  if (issue?.path.length === 0) return fault(BATCH_FAULTS.notAnObject);
  if (issue?.code === 'too_small') return fault(BATCH_FAULTS.tooFew);
  return fault(issue?.code === 'too_big' ? BATCH_FAULTS.tooMany : BATCH_FAULTS.noMessages);
}

/**
 * How a rejection names a message (`echo`), the `name` under which messages share an entry, and whether the id can be a
 * duplicate: contract, "messageId", "No object", "Several without an id" and "Twins".
 */
function spellingOf(value: unknown, source: MessageSource | undefined) {
  const id = isJsonObject(value) ? value.messageId : undefined;
  if (id == null) return { echo: '', name: '', isComparable: false };
  const echo = typeof id === 'string' ? id : (source?.messageIdText ?? '');
  return { echo, name: echo.toLowerCase(), isComparable: typeof id === 'string' && !isBlank(id) };
}

/**
 * Validates the messages of a batch, then duplicate ids.
 * @param document the parsed JSON body
 * @returns the accepted messages and the answer: 200 when `response.accepted` > 0, else 400
 */
export function validateBatch(document: unknown, rules: BatchRules): BatchResult {
  const envelope = envelopeSchema.safeParse(document);
  if (!envelope.success) return toFault(envelope.error.issues[0]);
  const { messages } = envelope.data;
  const spellings = messages.map((value, index) => spellingOf(value, rules.sources[index]));
  const names = spellings.filter(({ isComparable }) => isComparable).map(({ name }) => name);
  const duplicates = new Set(names.filter((name, index) => names.indexOf(name) !== index));
  const accepted: AcceptedMessage[] = [];
  const rejected: { index: number; errors: readonly RejectionError[] }[] = [];
  const entries = new Map<string, MessageRejection>();
  for (const [index, { echo, name, isComparable }] of spellings.entries()) {
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
