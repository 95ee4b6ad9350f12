/** Floor: inserts alone. The blocks are prepared RowBinary rows from `events`. */
import { createEngine, readBlocks, readColumns, WRITER_SETTINGS } from '../clickhouse.ts';
import { startMeter } from './meter.ts';

const { CLICKHOUSE_URL: url = '', CLICKHOUSE_USER: user = '', CLICKHOUSE_PASSWORD: password = '' } = process.env;
const stores = { kafka: [], redis: '', registry: '', clickhouse: { url, user, password } };
const engine = createEngine({ stores, database: process.env.CLICKHOUSE_DATABASE ?? '' });
const { names, structure } = await readColumns(engine, 'events');
const insert = `INSERT INTO events_floor (${names}) SETTINGS ${WRITER_SETTINGS}
  SELECT * FROM input('${structure}') FORMAT RowBinary`;

await engine.query('DROP TABLE IF EXISTS events_floor SYNC');
await engine.query('CREATE TABLE events_floor AS events');
const blocks = await readBlocks(engine, names, { first: 0, count: Number(process.env.EVENTS) });
process.send?.('begin');
const meter = startMeter();
for (const block of blocks) await engine.insert(insert, block);
meter.send(await engine.queryNumber('SELECT count() FROM events_floor'));
