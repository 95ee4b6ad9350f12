import type { Bench } from './figure.ts';

/** What a figure asks of ClickHouse, over its HTTP interface and without a client's own cost. */
export interface Engine {
  readonly port: number;
  /** @returns the answer as text, without its last line break */
  ask(sql: string): Promise<string>;
  read(sql: string): Promise<Buffer>;
  insert(sql: string, body: Buffer): Promise<void>;
}

/** Speaks to the engine about the database of a bench. */
export function createEngine({ stores, database }: Pick<Bench, 'stores' | 'database'>): Engine {
  const { url, user, password } = stores.clickhouse;
  const headers = { 'x-clickhouse-user': user, 'x-clickhouse-key': password };
  const send = async (parameters: Record<string, string>, body: string | Buffer) => {
    const target = `${url}/?${new URLSearchParams({ database, ...parameters })}`;
    const answer = await fetch(target, {
      method: 'POST',
      headers,
      body: typeof body === 'string' ? body : new Uint8Array(body),
    });
    if (!answer.ok) throw new Error(`ClickHouse: ${(await answer.text()).slice(0, 500)}`);
    return answer;
  };
  return {
    port: Number(new URL(url).port),
    ask: async (sql) => (await (await send({}, sql)).text()).trimEnd(),
    read: async (sql) => Buffer.from(await (await send({}, sql)).arrayBuffer()),
    insert: async (sql, body) => void (await (await send({ query: sql, async_insert: '0' }, body)).text()),
  };
}
