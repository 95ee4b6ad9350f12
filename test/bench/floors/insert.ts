/** Floor: only inserts of prepared blocks, which are the rows of `events` read back as RowBinary. */
import { createEngine } from '../clickhouse.ts';

const [url, user, password] = [
  process.env.CLICKHOUSE_URL,
  process.env.CLICKHOUSE_USER,
  process.env.CLICKHOUSE_PASSWORD,
];
const database = process.env.CLICKHOUSE_DATABASE ?? '';
const stores = {
  kafka: [],
  redis: '',
  registry: '',
  clickhouse: { url: url ?? '', user: user ?? '', password: password ?? '' },
};
const engine = createEngine({ stores, database });
const wanted = Number(process.env.EVENTS);
/** As many rows as a block of the writer. */
const BLOCK_ROWS = 10_000;

const described = await engine.ask(
  `SELECT name, type FROM system.columns WHERE database = '${database}' AND table = 'events' AND default_kind = '' ORDER BY position FORMAT JSONCompactEachRow`,
);
const columns = described.split('\n').map((line) => JSON.parse(line) as [string, string]);
const names = columns.map(([name]) => name).join(', ');
// As the writer does, input() declares the plain type for a LowCardinality column, which is four times cheaper.
const types = columns
  .map(([name, type]) => `${name} ${type.replace(/LowCardinality\(([A-Za-z]+)\)/, '$1')}`)
  .join(', ');
const insert = `INSERT INTO events_floor (${names}) SETTINGS optimize_on_insert = 0 SELECT * FROM input('${types.replaceAll("'", "\\'")}') FORMAT RowBinary`;

await engine.ask('DROP TABLE IF EXISTS events_floor SYNC');
await engine.ask('CREATE TABLE events_floor AS events');
const blocks: Buffer[] = [];
for (let first = 0; first < wanted; first += BLOCK_ROWS) {
  const rows = `SELECT ${names} FROM events ORDER BY kafka_partition, kafka_offset LIMIT ${BLOCK_ROWS} OFFSET ${first}`;
  blocks.push(await engine.read(`${rows} FORMAT RowBinary`));
}
process.send?.('begin');
const before = process.cpuUsage();
for (const block of blocks) await engine.insert(insert, block);
const { user: userTime, system } = process.cpuUsage(before);
const events = Number(await engine.ask('SELECT count() FROM events_floor'));
process.send?.({ events, cpuSeconds: (userTime + system) / 1e6 });
process.disconnect?.();
