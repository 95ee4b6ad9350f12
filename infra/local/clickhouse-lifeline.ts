// A thread of the ClickHouse engine's process; see clickhouse-engine.ts.
import { readSync, writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';

const END_OF_FILE = '\x04';
const { terminal, input } = workerData as { terminal: number; input: number };

const chunk = Buffer.alloc(64);
while (readSync(input, chunk) > 0);
writeSync(terminal, END_OF_FILE);
