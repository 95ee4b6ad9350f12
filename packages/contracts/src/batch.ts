import { z } from 'zod';
import { BATCH_MESSAGES_MAX, FREE_FORM_DEPTH_MAX, MESSAGE_BYTES_MAX } from './limits.ts';
import { messageRejectionSchema, messageSchema, type RejectionError, WHOLE_MESSAGE } from './message.ts';

/** Contract, "MessagesRequest". */
export const messagesRequestSchema = z
  .object({ messages: z.array(messageSchema).min(1).max(BATCH_MESSAGES_MAX) })
  .meta({ id: 'MessagesRequest' });

/** Contract, "MessagesResponse" and "Success". */
export const messagesResponseSchema = z
  .object({
    success: z.boolean().meta({ description: 'true if at least one message was accepted' }),
    accepted: z.int().min(0).meta({ description: 'Number of accepted messages' }),
    rejected: z.int().min(0).meta({ description: 'Number of rejected messages' }),
    rejections: z
      .array(messageRejectionSchema)
      .meta({ description: 'One entry for each rejected id; messages with the same id share an entry' }),
  })
  .meta({ id: 'MessagesResponse' });

/** Fields of a message that contain any JSON object. */
export type FreeFormField = 'properties' | 'traits';

/** Reasons to refuse a whole batch: contract, "MessagesRequest". */
export const BATCH_ERRORS = {
  notAnObject: 'body is not a JSON object',
  noMessages: 'messages is not an array',
  tooFew: 'messages is empty',
  tooMany: `messages has more than ${BATCH_MESSAGES_MAX} items`,
} as const;
export const BATCH_ERROR_DETAILS = { field: 'messages', messagesMin: 1, messagesMax: BATCH_MESSAGES_MAX } as const;

/** Contract, "Duplicate ids". */
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
  const message = `${field} is nested deeper than ${FREE_FORM_DEPTH_MAX} levels`;
  return { field, code: 'INVALID_VALUE', message };
}
