import { CSV_LINES_MAX, CSV_TYPE, toEndedCsv, toIso } from '../../frame/csv.ts';
import type { Answer } from '../../frame/page.ts';
import { number } from '../../frame/parts.ts';
import {
  type MessageLine,
  type MessagePlace,
  type MessageSearch,
  type PortalReads,
  readManyMessages,
} from '../../reads/index.ts';

const COLUMNS = [
  ...['happened', 'received', 'type', 'name', 'surface', 'test', 'library', 'version', 'anonymous id', 'user id'],
  ...['message id', 'trace id'],
];

const toCells = (line: MessageLine): readonly string[] => [
  ...[toIso(line.happenedMs), toIso(line.receivedMs), line.type, line.name, line.surface, line.isTest ? 'yes' : 'no'],
  ...[line.library, line.libraryVersion, line.anonymousId, line.userId, line.messageId, line.traceId],
];

export interface StoredFileOptions {
  readonly search: MessageSearch;
  readonly signal: AbortSignal;
}

/** All that a search finds, as its page shows it to whoever asks; of more than it takes it says where it ended. */
export function toStoredFile(reads: Pick<PortalReads, 'messages'>, { search, signal }: StoredFileOptions): Answer {
  const messages = (each: MessageSearch) => reads.messages(each, { signal });
  const lists = readManyMessages(messages, search, CSV_LINES_MAX);
  const pieces = toEndedCsv(lists, { columns: COLUMNS, toCells, toEnd });
  return { kind: 'long file', name: `messages-${search.environmentId}.csv`, type: CSV_TYPE, pieces };
}

/** A search takes whole seconds, so the next file begins with the messages of the last second once more. */
function toEnd({ happenedMs }: MessagePlace): string {
  const until = toIso(Math.ceil(happenedMs / 1000) * 1000).slice(0, 19);
  return `This file ends here, at ${number(CSV_LINES_MAX, 'messages')}: search until ${until} for those before.`;
}
