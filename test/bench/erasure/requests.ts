import { type ErasureReceipt, LOG_EXPIRES_AFTER_MS } from '@playline/erasure';
import type { Engine } from '../clickhouse.ts';
import type { Bench } from '../figure.ts';
import type { Server } from '../gateway-servers.ts';
import { waitFor } from '../processes.ts';
import type { People, Range } from './people.ts';

/** Concurrent requests. With these, a thousand are accepted within a second or two. */
const CONNECTIONS = 32;
const ACCEPTED = 202;
const RECEIPTS_MAX_MS = 600_000;

export interface Asked {
  /** UUIDs, as the gateway writes them. */
  readonly erasureIds: ReadonlySet<string>;
  /** Duration until the last one was accepted. */
  readonly ms: number;
}

/** Requests the erasure of people, each by their anonymous id. @throws Error when one is refused */
export async function requestErasures(
  { server, bench, people }: { server: Server; bench: Bench; people: People },
  { first, count }: Range,
): Promise<Asked> {
  const erasureIds = new Set<string>();
  const startMs = performance.now();
  let next = first;
  const ask = async () => {
    while (next < first + count) {
      const target = `http://127.0.0.1:${server.port}/v1/audience/data?anonymousId=${people.anonymousIdOf(next++)}`;
      const answer = await fetch(target, { method: 'DELETE', headers: { 'x-service-api-key': bench.secretKey } });
      if (answer.status !== ACCEPTED) throw new Error(`an erasure was answered with ${answer.status}`);
      erasureIds.add(answer.headers.get('x-erasure-id') ?? '');
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONNECTIONS, count) }, ask));
  return { erasureIds, ms: performance.now() - startMs };
}

/**
 * Waits until each erasure has its receipt and no batch is in work. Its queries are excluded from ClickHouse's query
 * log.
 */
export async function awaitReceipts(engine: Engine, { erasureIds }: Asked): Promise<void> {
  const ask = async (sql: string) => Number(await engine.ask(`${sql} SETTINGS log_queries = 0`));
  const receipts = `SELECT uniqExact(erasure_id) FROM erasure_receipts WHERE erasure_id IN (
    SELECT arrayJoin(JSONExtract('${JSON.stringify([...erasureIds])}', 'Array(UUID)')))`;
  const areThere = async () => (await ask(receipts)) === erasureIds.size;
  await waitFor(`${erasureIds.size} receipts`, areThere, { maxMs: RECEIPTS_MAX_MS });
  const isOver = async () => (await ask('SELECT count() FROM erasure_progress')) === 0;
  await waitFor('no batch is worked on', isOver, { maxMs: RECEIPTS_MAX_MS });
}

/** The phases of an erasure, in milliseconds. */
export interface Times {
  /** From the acceptance of the request until no query finds a row. */
  readonly all: number;
  /**
   * Parts of it: until the fence is in force; then until everything before the noted ends of the log is stored; and the
   * rest.
   */
  readonly fenced: number;
  readonly stored: number;
  readonly swept: number;
}

export function timesOf({ acceptedAt, fencedAt, visiblyErasedAt, logExpiresAt }: ErasureReceipt): Times {
  const storedAt = logExpiresAt - LOG_EXPIRES_AFTER_MS;
  return {
    all: visiblyErasedAt - acceptedAt,
    fenced: fencedAt - acceptedAt,
    stored: storedAt - fencedAt,
    swept: visiblyErasedAt - storedAt,
  };
}
