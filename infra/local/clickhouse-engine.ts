// The ClickHouse process. It runs clickhouse-local from a shared library until standard input ends, which also happens
// when the parent dies. The statement SYSTEM START LISTEN opens the HTTP listener.
//
// Standard input must be a terminal; otherwise, clickhouse-local before 26.8 exits when a client resets a connection.
// This process therefore creates a pseudo-terminal, and a thread writes end-of-file to it when the real input ends.
import { constants, mkdirSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { DataType, load, open } from 'ffi-rs';

const STANDARD_INPUT = 0;

function callC(funcName: string, paramsValue: number[]): number {
  const paramsType = paramsValue.map(() => DataType.I32);
  const result = load({ library: 'libc', funcName, retType: DataType.I32, paramsType, paramsValue });
  if (result < 0) throw new Error(`${funcName} failed: no terminal for the ClickHouse engine`);
  return result;
}

/** Replaces standard input with a pseudo-terminal. @returns the terminal's other end and the real input */
function openTerminal(): { terminal: number; input: number } {
  open({ library: 'libc', path: '' }); // '' refers to this process
  // A controlling terminal would send SIGHUP when it is closed.
  const mode = constants.O_RDWR | constants.O_NOCTTY;
  const terminal = openSync('/dev/ptmx', mode);
  if (process.platform === 'darwin') callC('grantpt', [terminal]);
  callC('unlockpt', [terminal]);
  const name = load({
    library: 'libc',
    funcName: 'ptsname',
    retType: DataType.String,
    paramsType: [DataType.I32],
    paramsValue: [terminal],
  });
  const input = callC('dup', [STANDARD_INPUT]);
  callC('dup2', [openSync(name, mode), STANDARD_INPUT]);
  return { terminal, input };
}

/**
 * In clickhouse-local, every account can read this user's files with the function `file`, unless the working directory
 * of the process is removed. ClickHouse needs the directory during startup. The engine's first statement therefore
 * reads from a pipe, and a thread removes the directory when the pipe is opened.
 */
function createRemovedFolder(dataFolder: string): { statement: string; thread: Worker } {
  const folder = join(dataFolder, '..', 'nowhere');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const pipe = join(folder, 'pipe');
  const result = load({
    library: 'libc',
    funcName: 'mkfifo',
    retType: DataType.I32,
    paramsType: [DataType.String, DataType.I32],
    paramsValue: [pipe, 0o600],
  });
  if (result < 0) throw new Error(`mkfifo failed: no pipe in ${folder}`);
  process.chdir(folder);
  const thread = new Worker(new URL('./clickhouse-folder-removal.ts', import.meta.url), {
    workerData: { folder, pipe },
  });
  return { statement: `SELECT file('pipe') FORMAT Null`, thread };
}

function runEngine(library: string, flags: string[]): void {
  open({ library: 'engine', path: library });
  const args = ['clickhouse-local', ...flags];
  const result = load({
    library: 'engine',
    funcName: 'chdb_query_cmdline',
    retType: DataType.External,
    paramsType: [DataType.I32, DataType.StringArray],
    paramsValue: [args.length, args],
  });
  const error = {
    library: 'engine',
    funcName: 'chdb_result_error',
    paramsType: [DataType.External],
    paramsValue: [result],
  };
  if (load({ ...error, retType: DataType.U64 })) throw new Error(load({ ...error, retType: DataType.String }));
}

const [library = '', dataFolder = '', statement = '', ...flags] = process.argv.slice(2);
// ClickHouse cannot recreate tables of `system` while folders of the last run exist.
rmSync(join(dataFolder, 'data', 'system'), { recursive: true, force: true });
const workerData = openTerminal();
const lifeline = new Worker(new URL('./clickhouse-lifeline.ts', import.meta.url), { workerData });
const removal = createRemovedFolder(dataFolder);
const whenOnline = (thread: Worker) => new Promise((done, fail) => thread.once('online', done).once('error', fail));
// The engine blocks the main thread, so the threads must be running first.
await Promise.all([whenOnline(lifeline), whenOnline(removal.thread)]);
runEngine(library, [...flags, '--query', `${removal.statement}; ${statement}`]);
process.exit(0);
