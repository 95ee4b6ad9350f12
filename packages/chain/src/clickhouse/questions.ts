import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { parseError } from '@clickhouse/client';
import { toStoreFault } from '@playline/errors';
import type { ClickHouseTarget, ConnectionLimits } from './connection.ts';

/** Texts that a statement names as `{name: String}`. */
export type TextParams = Readonly<Record<string, string>>;
export type QuestionSettings = Readonly<Record<string, string | number>>;

/** What the engine says to a question. */
export interface Answer {
  /** In the format that the statement names. */
  readonly bytes: Buffer;
  /** Rows that it has read for it. */
  readonly readRows: number;
}

/** Asks one question. @throws StoreFault */
export interface Questions {
  ask(statement: string, params: TextParams, settings: QuestionSettings): Promise<Answer>;
  close(): void;
}

/** The code of a question that reads more than it has said that it may: nothing is wrong with the store. */
export const TOO_MANY_ROWS = 'TOO_MANY_ROWS';

/** Names of some thousand rows, twice. */
const STATEMENT_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Opens what pages are asked with: connects with the first question. The client of ClickHouse takes several times the CPU
 * for a question, which would be most of what a page costs.
 */
export function openQuestions(target: ClickHouseTarget, limits: ConnectionLimits): Questions {
  const { protocol, hostname, port, pathname } = new URL(target.url);
  const isSecure = protocol === 'https:';
  const kept = { keepAlive: true, maxSockets: limits.connectionsMax };
  const agent = isSecure ? new HttpsAgent({ ...target.tls, ...kept }) : new HttpAgent(kept);
  const send = isSecure ? requestHttps : requestHttp;
  const common = new URLSearchParams({
    database: target.database,
    max_execution_time: String(limits.executionMaxS),
    max_query_size: String(STATEMENT_BYTES_MAX),
    // A fault behind the first bytes of an answer would look like an end.
    wait_end_of_query: '1',
  });
  const headers = { 'x-clickhouse-user': target.user, 'x-clickhouse-key': target.password };
  const timeout = (limits.executionMaxS + 10) * 1_000;
  const askOnce = (path: string, statement: string) => {
    const length = { 'content-length': statement.length };
    const options = { agent, hostname, port, path, timeout, method: 'POST', headers: { ...headers, ...length } };
    const sent = send(options);
    sent.end(statement, 'latin1');
    return settle(sent);
  };
  return {
    async ask(statement, params, settings) {
      const path = `${pathname}?${common}${toQuery(params, settings)}`;
      try {
        return await askOnce(path, statement).catch((fault: unknown) => {
          // The server had just ended the connection that was kept: it has not seen the question.
          if (fault instanceof StaleConnection) return askOnce(path, statement);
          throw fault;
        });
      } catch (fault) {
        const stored = toStoreFault(fault);
        if (stored.code !== TOO_MANY_ROWS) target.onFault?.(fault);
        throw stored;
      }
    },
    close: () => agent.destroy(),
  };
}

/** A kept connection that turned out to be closed. */
class StaleConnection extends Error {
  override readonly name = 'StaleConnection';
  readonly code = 'ECONNRESET';
}

function toQuery(params: TextParams, settings: QuestionSettings): string {
  const parts = Object.entries(params).map(([name, text]) => `&param_${name}=${encodeURIComponent(toEscaped(text))}`);
  return (
    parts.join('') +
    Object.entries(settings)
      .map(([name, value]) => `&${name}=${value}`)
      .join('')
  );
}

/** A parameter is read as a field of a line: what would end one is escaped. */
const toEscaped = (text: string) =>
  text.replace(/[\\\t\n]/g, (found) => ({ '\\': '\\\\', '\t': '\\t', '\n': '\\n' })[found] ?? found);

const SUMMARY = 'x-clickhouse-summary';
const toReadRows = (summary: string | string[] | undefined): number =>
  Number((JSON.parse(String(summary ?? '{}')) as { read_rows?: string }).read_rows ?? 0);

function settle(sent: ClientRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const onAnswer = (answer: IncomingMessage) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('error', reject);
      answer.on('end', () => {
        const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
        if (answer.statusCode === 200) resolve({ bytes, readRows: toReadRows(answer.headers[SUMMARY]) });
        else reject(parseError(bytes.toString()));
      });
    };
    sent.on('response', onAnswer);
    sent.on('timeout', () => sent.destroy(new Error('Timeout error.')));
    sent.on('error', (fault: NodeJS.ErrnoException) =>
      reject(sent.reusedSocket && fault.code === 'ECONNRESET' ? new StaleConnection(fault.message) : fault),
    );
  });
}
