import { wordsOfLink } from '@playline/people';
import { toTimeText } from './question.ts';
import type { LinkRow, Side } from './tables.ts';

/** A row as lines for people. */
export function toLinkLines(row: LinkRow, asked: readonly string[]): string[] {
  const { receivedAt, link, outcome, messageId, traceId, place } = row;
  const toSide = ({ kind, key }: Side) => `  ${kind.padEnd(9)}  ${key}${asked.includes(key) ? '  <- asked for' : ''}`;
  const { generation, partition, offset, step } = place;
  return [
    `${toTimeText(receivedAt)}  ${link}  ${outcome}: ${wordsOfLink(row)}`,
    toSide(row.a),
    toSide(row.b),
    `  message ${messageId}  trace ${traceId}  fact ${generation}/${partition}/${offset} step ${step}`,
  ];
}

/** A row as one JSON line. */
export function toLinkJson(row: LinkRow): string {
  return JSON.stringify({ ...row, says: wordsOfLink(row) });
}
