import type { RejectionEntry } from '../../scan/index.ts';
import type { ReadBatch } from './read-batch.ts';

/**
 * JSON text of a MessagesResponse: specification, table "MessagesResponse"; `success` by part A. Errors are
 * put together from texts that were made once: a batch may have thousands.
 */
export function toAnswerText({ accepted, rejected, entries }: Pick<ReadBatch, 'accepted' | 'rejected' | 'entries'>) {
  let rejections = '';
  for (const entry of entries) rejections += (rejections === '' ? '' : ',') + toEntryText(entry);
  return `{"success":${accepted > 0},"accepted":${accepted},"rejected":${rejected},"rejections":[${rejections}]}`;
}

function toEntryText({ messageId, faults }: RejectionEntry): string {
  let errors = '';
  for (const { text } of faults) errors += (errors === '' ? '' : ',') + text;
  return `{"messageId":${JSON.stringify(messageId)},"errors":[${errors}]}`;
}
