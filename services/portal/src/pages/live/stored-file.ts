/** The stored messages of a search as CSV. */
import { number } from '../../frame/components.ts';
import { CSV_LINES_MAX, CSV_TYPE, toIso, toLimitedCsv } from '../../frame/csv.ts';
import type { Answer } from '../../frame/page.ts';
import {
  type MessageLine,
  type MessagePosition,
  type MessageSearch,
  type PortalReads,
  readManyMessages,
} from '../../reads/index.ts';

const COLUMNS = [
  'happened',
  'received',
  'type',
  'name',
  'surface',
  'test',
  'library',
  'version',
  'anonymous id',
  'user id',
  'message id',
  'trace id',
];

const toCells = (line: MessageLine): readonly string[] => [
  toIso(line.happenedMs),
  toIso(line.receivedMs),
  line.type,
  line.name,
  line.surface,
  line.isTest ? 'yes' : 'no',
  line.library,
  line.libraryVersion,
  line.anonymousId,
  line.userId,
  line.messageId,
  line.traceId,
];

/** A search takes whole seconds, so the next file repeats the messages of the last second. */
function toLastLine({ happenedMs }: MessagePosition): string {
  const until = toIso(Math.ceil(happenedMs / 1000) * 1000).slice(0, 19);
  return `This file ends here, at ${number(CSV_LINES_MAX, 'messages')}: search until ${until} for older ones.`;
}

export function toStoredFile(
  reads: Pick<PortalReads, 'messages'>,
  search: MessageSearch,
  signal: AbortSignal,
): Extract<Answer, { kind: 'streamed file' }> {
  const lists = readManyMessages((each) => reads.messages(each, { signal }), search, CSV_LINES_MAX);
  const pieces = toLimitedCsv(lists, { columns: COLUMNS, toCells, toLastLine });
  return { kind: 'streamed file', name: `messages-${search.environmentId}.csv`, type: CSV_TYPE, pieces };
}
