// A thread of the ClickHouse engine's process; see clickhouse-engine.ts.
import { closeSync, openSync, rmSync } from 'node:fs';
import { workerData } from 'node:worker_threads';

const { folder, pipe } = workerData as { folder: string; pipe: string };

// Blocks until ClickHouse has started and opens the pipe. ClickHouse starts to listen when the pipe is closed.
const end = openSync(pipe, 'w');
rmSync(folder, { recursive: true });
closeSync(end);
