import { openClickHouseHarness, openMemoryHarness } from './test/open-rows.ts';
import { describeErasureRows } from './test/rows-contract.ts';

describeErasureRows('memory', openMemoryHarness);
describeErasureRows('clickhouse', openClickHouseHarness);
