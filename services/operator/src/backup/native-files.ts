/** Streams rows between ClickHouse and files in ClickHouse's compressed Native format, which contains checksums. */
import { createHash } from 'node:crypto';
import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { PassThrough, type Readable, Transform } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { type ClickHouseAccount, ClickHouseFault } from '@playline/stores';
import type { Content } from './backup-store.ts';

export interface FileSum {
  readonly bytes: number;
  readonly sha256: string;
}

interface NativeRequest {
  readonly query: string;
  readonly settings: Readonly<Record<string, string>>;
  /** Rows to insert. */
  readonly body?: Readable;
  readonly signal: AbortSignal;
}

/** Passes the rows of a query to `write`. A query that fails halfway breaks the connection, and therefore rejects. */
export async function dumpRows(
  account: ClickHouseAccount,
  { query, write, signal }: { query: string; write: (content: Content) => Promise<void>; signal: AbortSignal },
): Promise<FileSum> {
  const settings = { compress: '1', max_execution_time: '0' };
  const response = await send(account, { query: `${query} FORMAT Native`, settings, signal });
  const sum = createFileSum();
  await pipeline(response, sum.stream, write, { signal });
  return sum.read();
}

/** Queries with this prefix belong to a restore, so that a repeated restore can stop those of a killed one. */
export const RESTORE_QUERY_PREFIX = 'playline-restore-';

/** Inserts the rows of a file. Larger blocks make fewer parts to merge. @throws Error if the file was changed */
export async function loadRows(
  account: ClickHouseAccount,
  { query, name, content, expected, queryId, signal }: LoadedFile & { readonly signal: AbortSignal },
): Promise<void> {
  const sum = createFileSum();
  const settings = {
    decompress: '1',
    query_id: RESTORE_QUERY_PREFIX + queryId,
    max_execution_time: '0',
    wait_end_of_query: '1',
    async_insert: '0',
    insert_deduplicate: '0',
    optimize_on_insert: '0',
    min_insert_block_size_rows: '1000000',
    min_insert_block_size_bytes: '268435456',
    max_insert_threads: '1',
    // For other nodes of a cluster: a node that is busy with a large block must not fail it.
    receive_timeout: '300',
    send_timeout: '300',
    // Views of one block run one after the other, which needs less memory.
    parallel_view_processing: '0',
  };
  const body = new PassThrough();
  const reading = pipeline(content, sum.stream, body, { signal });
  const sending = send(account, { query: `${query} FORMAT Native`, settings, body, signal });
  const [response] = await Promise.all([sending, reading]).finally(() => body.destroy());
  response.resume();
  assertSameSum(name, sum.read(), expected);
}

/** @throws Error if the content of a file was changed */
export async function assertUnchanged(name: string, content: Content, expected: FileSum): Promise<void> {
  const sum = createFileSum();
  await pipeline(content, sum.stream.resume());
  assertSameSum(name, sum.read(), expected);
}

function assertSameSum(name: string, found: FileSum, expected: FileSum): void {
  if (found.sha256 !== expected.sha256)
    throw new Error(
      `${name} was changed after the backup: ${found.bytes} bytes instead of ${expected.bytes}. Use another backup.`,
    );
}

export interface LoadedFile {
  /** INSERT without its format. */
  readonly query: string;
  /** Path or URL, for errors. */
  readonly name: string;
  readonly content: Content;
  readonly expected: FileSum;
  readonly queryId: string;
}

/** Creates a stream that computes the checksum of what passes through. */
export function createFileSum() {
  const hash = createHash('sha256');
  let bytes = 0;
  const stream = new Transform({
    transform(chunk: Buffer, _, done) {
      hash.update(chunk);
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  return { stream, read: (): FileSum => ({ bytes, sha256: hash.digest('hex') }) };
}

/** @throws ClickHouseFault, or a network error */
async function send(
  account: ClickHouseAccount,
  { query, settings, body, signal }: NativeRequest,
): Promise<IncomingMessage> {
  const url = new URL(account.url);
  for (const [name, value] of Object.entries({ database: account.database, query, ...settings }))
    url.searchParams.set(name, value);
  const headers = { 'X-ClickHouse-User': account.user, 'X-ClickHouse-Key': account.password };
  const open = url.protocol === 'https:' ? requestHttps : requestHttp;
  const request: ClientRequest = open(url, { ...account.tls, method: 'POST', headers, agent: false, signal });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).on('error', reject);
  });
  const sent = body === undefined ? void request.end() : pipeline(body, request, { signal });
  // ClickHouse may respond with an error before it has read the body.
  sent?.catch(() => {});
  const response = await answered;
  if (response.statusCode !== 200)
    throw new ClickHouseFault(
      response.statusCode ?? 0,
      String(response.headers['x-clickhouse-exception-code'] ?? ''),
      await text(response),
    );
  await sent;
  return response;
}
