// A thread of the ClickHouse engine's process; see clickhouse-engine.ts.
import { closeSync, openSync, rmSync } from 'node:fs';
import { workerData } from 'node:worker_threads';

const { folder, pipe } = workerData as { folder: string; pipe: string };

// Returns when ClickHouse has started and opens the pipe; it listens once the pipe ends.
const end = openSync(pipe, 'w');
rmSync(folder, { recursive: true });
closeSync(end);
