import { Readable } from 'node:stream';
import { ClickHouseLogLevel, type ClickHouseSettings, createClient } from '@clickhouse/client';
import {
  type ClickHouseLimits,
  type ClickHouseTarget,
  createClickHouseClientSetup,
  oneBlockSettings,
} from '@playline/errors';

const QUERY_BYTES_MAX = 1_048_576;

/** Connects with the first call; every fault of one is a `StoreFault`. */
export function openMintConnection(target: ClickHouseTarget, limits: ClickHouseLimits) {
  const setup = createClickHouseClientSetup(target, limits);
  // Off, because the client's log lines quote data that the server could not read. Faults are thrown without it.
  const client = createClient({ ...setup.options, log: { level: ClickHouseLogLevel.OFF } });
  const { executionMaxS } = limits;
  return {
    read: <T>(query: string, query_params: Record<string, unknown>): Promise<T[]> =>
      setup.call(async () => {
        const clickhouse_settings: ClickHouseSettings = {
          max_execution_time: executionMaxS,
          max_query_size: String(QUERY_BYTES_MAX),
          // Safe as numbers: times in milliseconds and revisions are below 2^53.
          output_format_json_quote_64bit_integers: 0,
        };
        return (await client.query({ query, query_params, format: 'JSONEachRow', clickhouse_settings })).json();
      }),
    /** @param lines JSON texts, one per row */
    insert: (query: string, lines: readonly string[], options: { token: string; signal: AbortSignal }) =>
      setup.call(async () => {
        const { stream } = await client.exec({
          query,
          values: Readable.from([lines.join('\n')], { objectMode: false }),
          abort_signal: options.signal,
          clickhouse_settings: oneBlockSettings(options.token, executionMaxS),
        });
        // The connection is not free until the answer has been read to its end.
        for await (const _ of stream);
      }),
    ready: () => setup.ready(client),
    close: () => client.close(),
  };
}

export type MintConnection = ReturnType<typeof openMintConnection>;
