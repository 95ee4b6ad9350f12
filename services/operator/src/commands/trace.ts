import { GROUPS } from '@playline/runtime';
import { createQueryRows, overAllNodes } from '@playline/stores';
import { awaitClickHouse, awaitLog, nullIfUnreachable, withScope } from '../await-store.ts';
import {
  type CreateCommand,
  EXIT,
  endWith,
  jsonCommand,
  printResult,
  UsageError,
  wholeNumberFrom,
} from '../command.ts';
import { toTimeText } from '../identity/context.ts';
import { type FoundTrace, findTrace, parseTraceSubject } from '../trace/find-trace.ts';
import type { VerifyContext } from './verify.ts';

export type TraceContext = Pick<VerifyContext, 'openLog' | 'openPeople' | 'clickhouse' | 'topicPrefix'>;

const HELP = `
Follows a request by its trace id (the header x-trace-id of the response) or a message by its message id: the position in
the log, the row, the person, links, rejections, and consent changes, erasures and mints of the request. Prints identity
keys, never raw ids. Searches unread records and dead letters for a message without a row.

A trace id is searched in messages of the last --days, which reads 32 bytes per message. A message id is found by an
index. For log lines, run npm run logs -- --trace <id>.

Requires CLICKHOUSE_URL and its credentials and KAFKA_BROKERS, or a local stack. Persons require REDIS_URL.

Exit codes: 0 found, 1 not found, 2 invalid arguments, 3 store not responding.`;

export const createTraceCommand =
  (context: TraceContext): CreateCommand =>
  (terminal) =>
    jsonCommand('trace', 'follow a request or a message: log, row, person, links, rejections')
      .argument('<id>', 'trace id or message id')
      .option('--days <number>', 'days to search for a trace id, up to 400', wholeNumberFrom(1, 400), 7)
      .option('--group <name>', 'consumer group of the event writer', GROUPS.writer)
      .addHelpText('after', HELP)
      .action(async (id, { days, group, ...output }) => {
        const subject = parseTraceSubject(id);
        if (subject === null)
          throw new UsageError('expected a trace id (32 hexadecimal digits) or a message id (a UUID with hyphens)');
        const { topicPrefix } = context;
        const found = await withScope(async (open) => {
          const query = createQueryRows(overAllNodes(context.clickhouse()));
          const log = await open(context.openLog());
          const people = await nullIfUnreachable(context.openPeople);
          if (people !== null) await open(Promise.resolve(people));
          await awaitClickHouse(query);
          await awaitLog(log);
          return findTrace({ query, log, people, topicPrefix, group, days }, subject);
        });
        const lines = toLines(found);
        printResult(terminal, output, found, lines.length > 0 ? lines : toNotFound(found, days));
        endWith(lines.length > 0 ? EXIT.ok : EXIT.failed);
      });

function toLines({ messages, links, rejections, unstored, requests }: FoundTrace): string[] {
  const messageLines = messages.flatMap((message) => {
    const { messageId, type, name, environmentId, receivedAt, traceId, position, isInLog, identityKey, person } =
      message;
    const linkLines = links
      .filter((link) => link.messageId === messageId)
      .map(({ link, outcome, reason }) => `  link      ${link} ${outcome}${reason === '' ? '' : `: ${reason}`}`);
    return [
      `message     ${messageId}  ${name === '' ? type : `${type} ${name}`}`,
      `  gateway   ${toTimeText(receivedAt)}  ${environmentId}  trace ${traceId}`,
      `  log       ${position}${isInLog ? '' : '  deleted by retention'}`,
      `  row       events  identity ${identityKey ?? 'none'}`,
      ...(person === null ? [] : [`  person    ${person.personKey}  ${person.isLinked ? 'linked' : 'not linked'}`]),
      ...linkLines,
    ];
  });
  const rejectionLines = rejections.map(
    ({ code, field, environmentId, receivedAt, library, libraryVersion, position }) => {
      const client = library === '' ? '' : `  ${library} ${libraryVersion}`.trimEnd();
      return `rejected    ${code} ${field}  ${toTimeText(receivedAt)}  ${environmentId}${client}  log ${position}`;
    },
  );
  const requestLines = requests.map(
    ({ kind, detail, environmentId, receivedAt }) =>
      `${kind.padEnd(10)}  ${detail}  ${toTimeText(receivedAt)}  ${environmentId}`,
  );
  const unstoredLines = unstored.map(({ position, reason }) => `log         ${position}  ${reason}`);
  return [...messageLines, ...unstoredLines, ...rejectionLines, ...requestLines];
}

function toNotFound({ kind }: FoundTrace, days: number): string {
  const older = kind === 'trace' ? `, or the messages are older than ${days} days (--days)` : '';
  return `Not found: the gateway did not accept the request (npm run logs -- --trace), the data was erased${older}.`;
}
